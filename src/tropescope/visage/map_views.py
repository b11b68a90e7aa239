"""The maps of the page: which country gets which colour and which words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tropescope.findings.wording import MINUS, points, points_range
from tropescope.statistics.estimate import Estimate
from tropescope.visage.analysis import Analysis, IdentityRow
from tropescope.visage.maps import Mark, Step, step_of, world_map
from tropescope.visage.views import display, number_words, range_words, theta_words

COUNT_STEPS = (
    Step(1, "m1", "1"),
    Step(2, "m2", "2–4"),
    Step(5, "m3", "5–9"),
    Step(10, "m4", "10–19"),
    Step(20, "m5", "20 and more"),
)
TENDENCY_STEPS = (
    Step(-1.0, "b2", f"below {MINUS}2 points"),
    Step(-0.02, "m0", f"{MINUS}2 to 2"),
    Step(0.02, "m1", "2–5"),
    Step(0.05, "m2", "5–10"),
    Step(0.10, "m4", "10–20"),
    Step(0.20, "m5", "20 and more"),
)
PRINTED_STEPS = (
    Step(0.0, "m1", "below .05"),
    Step(0.05, "m2", ".05–.15"),
    Step(0.15, "m3", ".15–.3"),
    Step(0.3, "m4", ".3–.5"),
    Step(0.5, "m5", ".5 and more"),
)
LISTED_STEPS = (
    Step(0.0, "m1", "below .5"),
    Step(0.5, "m2", ".5–1"),
    Step(1.0, "m3", "1–2"),
    Step(2.0, "m4", "2–3"),
    Step(3.0, "m5", "3–4"),
)


@dataclass(frozen=True)
class MapView:
    name: str
    title: str
    text: str
    map: Markup
    steps: tuple[Step, ...]
    hatched: bool


def _by_outline(
    rows: Sequence[IdentityRow], mark_of: Callable[[IdentityRow], Mark | None]
) -> dict[str, Mark]:
    """One mark for each shape; of several terms for one country, the one with most stereotypes."""
    marks: dict[str, Mark] = {}
    owners: dict[str, list[str]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (-row.listed_stereotypes, row.identity)):
        if row.place is None:
            continue
        mark = mark_of(row)
        if mark is None:
            continue
        key = row.place.outline
        owners[key].append(mark.tip)
        first = marks.get(key, mark)
        marks[key] = Mark(first.style, "\n".join(owners[key]), first.hatched, first.point)
    return marks


def map_views(analysis: Analysis) -> tuple[MapView, ...]:
    """Number of stereotypes, tendency, and offensiveness in two readings."""

    def count(row: IdentityRow) -> Mark:
        step = step_of(COUNT_STEPS, row.listed_stereotypes)
        words = f"{display(row.identity)}: {row.listed_stereotypes}"
        if row.examples:
            words += f" ({', '.join(row.examples[:4])})"
        return Mark(step.style, words, point=_point(row))

    def tendency(row: IdentityRow) -> Mark | None:
        difference = row.tendency.difference
        if difference.value is None or not row.scored:
            return None
        step = step_of(TENDENCY_STEPS, difference.value)
        words = (
            f"{display(row.identity)}: {points(difference.value)} points "
            f"({points_range(difference.low, difference.high)}), θ "
            f"{theta_words(row.tendency.theta)}"
        )
        return Mark(step.style, words, row.verdict == "undecided", _point(row))

    def offence(steps: tuple[Step, ...], name: str) -> Callable[[IdentityRow], Mark | None]:
        def mark(row: IdentityRow) -> Mark | None:
            estimate: Estimate = getattr(row.offensiveness, name)
            if estimate.value is None:
                return None
            words = (
                f"{display(row.identity)}: {number_words(estimate.value)} ({range_words(estimate)})"
            )
            return Mark(step_of(steps, estimate.value).style, words, point=_point(row))

        return mark

    rows = analysis.identities
    parts = (
        (
            "count",
            "Visual stereotypes in the resource",
            "How many visual attributes are known as stereotypes of each identity.",
            count,
            COUNT_STEPS,
            False,
        ),
        (
            "tendency",
            "Tendency",
            "How many points more often stereotypes are marked than random attributes. "
            "Hatched where undecided.",
            tendency,
            TENDENCY_STEPS,
            True,
        ),
        (
            "printed",
            "Offensiveness of what images show",
            "Reading (a), as printed: likelihood of the stereotypes times the mean offensiveness "
            "of those found present.",
            offence(PRINTED_STEPS, "as_printed"),
            PRINTED_STEPS,
            False,
        ),
        (
            "listed",
            "Offensiveness of the stereotypes themselves",
            "Reading (b): mean offensiveness of all visual stereotypes of the identity, seen or "
            "not, on a scale up to 4.",
            offence(LISTED_STEPS, "of_stereotypes"),
            LISTED_STEPS,
            False,
        ),
    )
    return tuple(
        MapView(
            name,
            title,
            text,
            world_map(_by_outline(rows, mark_of), title=title, description=text),
            steps,
            hatched,
        )
        for name, title, text, mark_of, steps, hatched in parts
    )


def _point(row: IdentityRow) -> tuple[float, float] | None:
    return row.place.point if row.place else None
