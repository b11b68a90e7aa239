"""What the page shows, in the order and words of a reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tropescope.annotations.identities import REGIONS
from tropescope.findings.wording import MINUS, percent, percent_range
from tropescope.statistics.estimate import Estimate
from tropescope.visage.analysis import Analysis, AttributeRow, IdentityRow
from tropescope.visage.charts import SHARES, Dot, Scale, dot_chart
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
