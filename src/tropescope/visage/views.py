"""What the page shows, in the order and words of a reader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tropescope.annotations.identities import REGIONS
from tropescope.findings.wording import MINUS, percent, percent_range, points, points_range
from tropescope.statistics.estimate import Estimate
from tropescope.visage.analysis import Analysis, AttributeRow, IdentityRow
from tropescope.visage.charts import SHARES, Dot, Scale, dot_chart
from tropescope.visage.maps import Mark, Step, step_of, world_map
from tropescope.visage.pooling import group_mean

STYLES = {"found": "f", "excluded": "l", "undecided": "u", "none": "n"}
SIGNS = {"found": "▲", "excluded": "▼", "undecided": "?", "none": "·"}
WORDS = {
    "found": "more than random",
    "excluded": "less than random",
    "undecided": "undecided",
    "none": "not scored",
}
_STRONGEST = 24
_MOST_ATTRIBUTES = 14
_MOST_RANDOM = 6

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


@dataclass(frozen=True)
class RegionView:
    name: str
    identities: int
    difference: Estimate
    as_printed: Estimate
    of_stereotypes: Estimate


def display(identity: str) -> str:
    """A term as a reader knows it; the released files glue two names together in one case."""
    return "United Kingdom" if identity == "United KingdomUK" else identity


def anchor(number: int) -> str:
    return f"i{number}"


def theta_words(estimate: Estimate) -> str:
    if estimate.value is None:
        return "not defined"
    return f"{estimate.value:.1f}"


def theta_range(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    high = f"{estimate.high:.1f}" if estimate.high < 1000 else "above 1,000"
    return f"{estimate.low:.1f} to {high}"


def number_words(value: float | None, places: int = 2) -> str:
    if value is None:
        return "not defined"
    text = f"{abs(value):.{places}f}"
    return (MINUS + text) if value < 0 and float(text) else text


def range_words(estimate: Estimate, places: int = 2) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{number_words(estimate.low, places)} to {number_words(estimate.high, places)}"


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


def region_views(analysis: Analysis) -> tuple[RegionView, ...]:
    """Means over the identities of each region, and of the global north and south."""
    groups: list[tuple[str, list[IdentityRow]]] = [
        (region, [row for row in analysis.scored if row.place and row.place.region == region])
        for region in REGIONS
    ]
    for half, name in (("south", "Global South"), ("north", "Global North")):
        groups.append(
            (name, [row for row in analysis.scored if row.place and row.place.hemisphere == half])
        )
    level = analysis.settings.level

    def mean(
        rows: list[IdentityRow], of: Callable[[IdentityRow], float | None], least: float = 0.0
    ) -> Estimate:
        values = [value for row in rows if (value := of(row)) is not None]
        return group_mean(values, name="mean", level=level, least=least)

    return tuple(
        RegionView(
            name,
            len(rows),
            mean(rows, lambda row: row.tendency.difference.value, -1.0),
            mean(rows, lambda row: row.offensiveness.as_printed.value),
            mean(rows, lambda row: row.offensiveness.of_stereotypes.value),
        )
        for name, rows in groups
        if rows
    )


def strongest(analysis: Analysis) -> list[IdentityRow]:
    """Scored identities by how sure and how large the difference is."""
    return sorted(analysis.scored, key=lambda row: -(row.tendency.difference.low or -1.0))


def overview_chart(rows: Sequence[IdentityRow]) -> Markup:
    differences = [row.tendency.difference for row in rows]
    ends = [abs(end) for d in differences for end in (d.low, d.high) if end is not None]
    top = next(limit for limit in (0.2, 0.4, 0.6, 0.8, 1.0) if max(ends, default=0.0) <= limit)
    low = -top / 4 if any((d.low or 0) < 0 for d in differences) else 0.0
    ticks = tuple(t for t in (-top / 4, 0.0, top / 4, top / 2, 3 * top / 4, top) if t >= low)
    scale = Scale(low, top, ticks, unit="", signed=True)
    dots = [
        Dot(d.value, d.low, d.high, STYLES[row.verdict])
        for row, d in zip(rows, differences, strict=True)
    ]
    return dot_chart(dots, scale=scale, title="Difference of likelihoods in points, by identity")


@dataclass(frozen=True)
class Panel:
    """The attributes of one identity: stereotypical ones, then the likeliest others."""

    stereotypes: tuple[AttributeRow, ...]
    others: tuple[AttributeRow, ...]
    more_stereotypes: int
    more_others: int
    stereotypes_chart: Markup
    others_chart: Markup


def panel(row: IdentityRow) -> Panel:
    own = [a for a in row.attributes if a.kind == "stereotypical"]
    others = sorted(
        (a for a in row.attributes if a.kind in ("random", "listed")),
        key=lambda a: (-(a.likelihood.value or 0.0), a.attribute),
    )
    shown, rest = tuple(own[:_MOST_ATTRIBUTES]), tuple(others[:_MOST_RANDOM])
    return Panel(
        shown,
        rest,
        len(own) - len(shown),
        len(others) - len(rest),
        _attribute_chart(shown, "f", f"Stereotypical attributes of {display(row.identity)}"),
        _attribute_chart(rest, "u", f"Other attributes shown for {display(row.identity)}"),
    )


def _attribute_chart(rows: Sequence[AttributeRow], style: str, title: str) -> Markup:
    dots = [
        Dot(row.likelihood.value, row.likelihood.low, row.likelihood.high, style) for row in rows
    ]
    return dot_chart(dots, scale=SHARES, title=title)


def likelihood_words(estimate: Estimate) -> str:
    return f"{percent(estimate.value)} ({percent_range(estimate.low, estimate.high)})"


def most_in_overview() -> int:
    return _STRONGEST
