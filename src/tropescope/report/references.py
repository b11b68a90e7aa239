"""What rates are compared with: numbered sources, and how much each answer hangs on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tropescope.findings.answers import Answer, by_strength
from tropescope.findings.results import ReferenceRow
from tropescope.findings.wording import percent
from tropescope.report.chart import reference_strip

MOST_STRIPS = 60
_CLAIMS = ("found", "less")


@dataclass(frozen=True)
class Source:
    number: int
    source: str
    year: int | None
    population: str
    kind: str
    uses: int


@dataclass(frozen=True)
class Strip:
    """How the answer to one question depends on its reference."""

    answer: Answer
    chart: Markup


@dataclass(frozen=True)
class References:
    sources: tuple[Source, ...]
    strips: tuple[Strip, ...]
    left_out: int
    banded: bool
    """Some reference has an interval of its own."""
    numbers: Mapping[tuple[str, int | None, str, str], int]

    def number(self, reference: ReferenceRow) -> int:
        return self.numbers[_identity(reference)]


def references_of(answers: Sequence[Answer]) -> References:
    uses: dict[tuple[str, int | None, str, str], int] = {}
    for answer in answers:
        if answer.reference is not None:
            identity = _identity(answer.reference)
            uses[identity] = uses.get(identity, 0) + 1
    hanging = [
        answer
        for answer in by_strength(answers)
        if answer.score is not None
        and answer.rate.low is not None
        and (answer.assumed or answer.kind in _CLAIMS)
    ]
    ordered = sorted(hanging, key=lambda a: (not a.assumed, a.kind not in _CLAIMS))
    return References(
        sources=tuple(
            Source(i + 1, *identity, count) for i, (identity, count) in enumerate(uses.items())
        ),
        strips=tuple(Strip(a, reference_strip(a, title=_words(a))) for a in ordered[:MOST_STRIPS]),
        left_out=max(0, len(ordered) - MOST_STRIPS),
        banded=any(a.reference is not None and a.reference.low is not None for a in answers),
        numbers={identity: i + 1 for i, identity in enumerate(uses)},
    )


def _identity(reference: ReferenceRow) -> tuple[str, int | None, str, str]:
    return reference.source, reference.year, reference.population, reference.kind


def _words(answer: Answer) -> str:
    low, high, zeta = answer.rate.low or 0.0, answer.rate.high or 0.0, answer.zeta
    used = answer.reference.value if answer.reference is not None else None
    parts = []
    if low - zeta > 0:
        parts.append(f"more than the world for references below {percent(low - zeta)}")
    if high - zeta < 1:
        parts.append(f"excess excluded for references above {percent(max(high - zeta, 0.0))}")
    if high + zeta < 1:
        parts.append(f"less than the world for references above {percent(high + zeta)}")
    return f"{'; '.join(parts) or 'undecided throughout'}. The reference used is {percent(used)}."
