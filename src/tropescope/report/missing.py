"""Which planned images have no number behind them, and why, by model and concept."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tropescope.features.rows import image_rows
from tropescope.findings.answers import Answer
from tropescope.findings.results import Results
from tropescope.store.folder import RunFolder

OUTCOMES = ("refused", "filtered", "failed", "invalid")
MOST_ROWS = 500
_REASONS = 5


@dataclass(frozen=True)
class MissingRow:
    model: str
    concept: str
    planned: int
    usable: int
    counts: tuple[int, ...]
    """By outcome, in the order of `OUTCOMES`."""
    unjudged: int
    """Images that exist but that the judge could not judge for some attribute."""

    @property
    def missing(self) -> int:
        return sum(self.counts) + self.unjudged

    @property
    def share(self) -> float:
        return self.missing / self.planned if self.planned else 0.0


@dataclass(frozen=True)
class Reasons:
    model: str
    outcome: str
    top: tuple[tuple[str, int], ...]
    further: int


@dataclass(frozen=True)
class Missing:
    rows: tuple[MissingRow, ...]
    """Cells with anything missing, the largest share first."""
    left_out: int
    complete: int
    reasons: tuple[Reasons, ...]
    planned: int
    total: int
    fragile: tuple[Answer, ...]
    """Findings that the missing images could undo."""
    robust: int


def missing_of(folder: RunFolder, results: Results, answers: Sequence[Answer]) -> Missing:
    judged_missing: dict[str, int] = defaultdict(int)
    for answer in answers:
        place = answer.rate.items
        judged_missing[place] = max(judged_missing[place], answer.rate.n_missing)
    rows = []
    for name, cell in results.item_sets.items():
        counts = tuple(len(cell.missing.get(outcome, ())) for outcome in OUTCOMES)
        rows.append(
            MissingRow(
                model=cell.model,
                concept=cell.concept,
                planned=len(cell.keys) + sum(counts),
                usable=len(cell.keys),
                counts=counts,
                unjudged=max(0, judged_missing[name] - sum(counts)),
            )
        )
    incomplete = sorted((row for row in rows if row.missing), key=lambda row: -row.share)
    survives = [(answer, answer.survives_worst_case) for answer in answers]
    return Missing(
        rows=tuple(incomplete[:MOST_ROWS]),
        left_out=max(0, len(incomplete) - MOST_ROWS),
        complete=len(rows) - len(incomplete),
        reasons=_reasons(folder) if incomplete else (),
        planned=sum(row.planned for row in rows),
        total=sum(row.missing for row in incomplete),
        fragile=tuple(answer for answer, stands in survives if stands is False),
        robust=sum(stands is True for _, stands in survives),
    )


def _reasons(folder: RunFolder) -> tuple[Reasons, ...]:
    found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in image_rows(folder):
        if not row.usable:
            found[row.model, row.outcome][row.reason or "no reason given"] += 1
    return tuple(
        Reasons(
            model=model,
            outcome=outcome,
            top=tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_REASONS]),
            further=max(0, len(counts) - _REASONS),
        )
        for (model, outcome), counts in found.items()
    )
