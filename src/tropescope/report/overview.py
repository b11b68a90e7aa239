"""All answers at a glance: concepts in rows, attributes in columns, one table per model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tropescope.findings.answers import Answer
from tropescope.report.chart import CLASSES

#: Cells in all tables together; beyond this only the concepts with the strongest answers stand.
MOST_CELLS = 12_000


@dataclass(frozen=True)
class Cell:
    """One answer as a sign, a number and a tint from 0 to 4."""

    answer: Answer
    css: str


@dataclass(frozen=True)
class OverviewRow:
    concept: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class Overview:
    model: str
    attributes: tuple[str, ...]
    rows: tuple[OverviewRow, ...]
    left_out: int


def overviews(answers: Sequence[Answer], *, strongest: Sequence[str]) -> list[Overview]:
    """`strongest` lists the concepts by their strongest answer."""
    models = list(dict.fromkeys(a.model for a in answers))
    attributes = tuple(dict.fromkeys(a.attribute for a in answers))
    concepts = list(dict.fromkeys(a.concept for a in answers))
    room = max(1, MOST_CELLS // max(1, len(models) * len(attributes)))
    kept = set(strongest[:room])
    cells: Mapping[tuple[str, str, str], Cell] = {
        (a.model, a.concept, a.attribute): Cell(a, _css(a)) for a in answers
    }
    return [
        Overview(
            model=model,
            attributes=attributes,
            rows=tuple(
                OverviewRow(c, tuple(cells.get((model, c, a)) for a in attributes))
                for c in concepts
                if c in kept
            ),
            left_out=len(concepts) - len(kept),
        )
        for model in models
    ]


def _css(answer: Answer) -> str:
    name = CLASSES[answer.kind]
    if answer.difference is None or answer.difference.value is None:
        return name
    size = abs(answer.difference.value)
    tint = sum(size >= limit for limit in (0.10, 0.25, 0.40, 0.60))
    side = "o" if answer.difference.value > 0 else "w"
    return f"{name} {side}{tint}" + (" a" if answer.assumed else "")
