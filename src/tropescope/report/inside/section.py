"""The section as HTML, within its share of the file.

Every model and phrase keeps its table as long as there is room; charts, then the numbers of every
step in them, go to those with the largest early SPI first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from markupsafe import Markup

from tropescope.features.traces import trace_rows
from tropescope.findings.results import Results
from tropescope.report.inside import numbers
from tropescope.report.inside.curves import curve_chart, scale_of, ticks_of, time_axis
from tropescope.report.inside.examples import Examples, examples_of
from tropescope.report.inside.film import film_strip
from tropescope.report.inside.views import AttributeTrace, GroupView, group_views
from tropescope.report.pictures import Evidence
from tropescope.report.rendering import render
from tropescope.store.folder import RunFolder

Detail = Literal["none", "numbers", "curves", "steps"]
_DETAILS: tuple[Detail, ...] = ("none", "numbers", "curves", "steps")

#: Shares of the file: charts and numbers, and pictures.
TEXT_SHARE, PICTURE_SHARE = 0.12, 0.14
#: With at most this many groups all stand open, else the first.
_OPEN_GROUPS = 3
#: Attributes whose charts stand above the pictures; the others are folded below.
_LEADING = 6


@dataclass(frozen=True)
class Inside:
    """The section and the pictures it refers to."""

    section: Markup
    symbols: Markup


def inside_of(
    folder: RunFolder,
    results: Results,
    evidence: Evidence,
    *,
    phrases: Mapping[str, str],
    limit: int,
) -> Inside | None:
    """The section for a file of `limit` bytes; None where nothing was traced."""
    views = group_views(results, trace_rows(folder), phrases=phrases)
    if not views:
        return None
    examples = examples_of(views, folder, evidence, room=int(limit * PICTURE_SHARE))
    writer = GroupWriter(views, examples)
    details = details_that_fit(views, writer, room=int(limit * TEXT_SHARE))
    rows = [row for view in views for row in view.rows]
    section = render(
        "inside.html.j2",
        views=views,
        groups=[writer.group(view, details[view.anchor]) for view in views],
        traced=len({row.key for row in rows}),
        different=len({row.key for row in rows if not row.same_image}),
        curved=any(view.attributes for view in views),
        guided=any(view.guided for view in views),
        foretells=any(view.foretells for view in views),
        films=any(e.film for found in examples.by_group.values() for e in found),
        heats=any(e.words for found in examples.by_group.values() for e in found),
        level=next((curve.level for curve in results.curves), None),
        cut={
            "groups": sum(detail == "none" for detail in details.values()),
            "curves": sum(detail == "numbers" for detail in details.values()),
            "pictures": examples.left_out,
        },
    )
    return Inside(section, examples.symbols)


class GroupWriter:
    """Renders what was traced for one model and phrase."""

    def __init__(self, views: Sequence[GroupView], examples: Examples) -> None:
        self._examples = examples
        self._several_models = len({view.model for view in views}) > 1
        self._open = {view.anchor for view in views[: len(views) if _few(views) else 1]}
        traces: dict[str, list[AttributeTrace]] = defaultdict(list)
        for view in views:
            traces[view.model] += view.attributes
        self._scales = {model: scale_of(found) for model, found in traces.items() if found}

    def group(self, view: GroupView, detail: Detail) -> Markup:
        if detail == "none":
            return Markup("")
        examples = self._examples.by_group.get(view.anchor, ())
        films = [example for example in examples if example.film]
        sigma = view.sigma or next((example.sigma for example in films), ())
        ticks = [step for step, _ in films[0].film] if films else ticks_of(len(sigma))
        scale = self._scales.get(view.model)
        charts: list[tuple[AttributeTrace, Markup]] = []
        if scale is not None and detail != "numbers":
            charts = [
                (trace, curve_chart(trace, scale, ticks=ticks, with_steps=detail == "steps"))
                for trace in view.attributes
            ]
        return render(
            "inside_group.html.j2",
            view=view,
            detail=detail,
            leading=charts[:_LEADING],
            further=charts[_LEADING:],
            axis=time_axis(sigma, ticks=ticks) if charts or films else None,
            films=[(example, film_strip(example, self._examples.names)) for example in films],
            heats=[example for example in examples if example.words],
            symbols=self._examples.names,
            places=3 if scale is None else scale.places,
            numbers=numbers,
            several_models=self._several_models,
            is_open=view.anchor in self._open,
            numbers_open=not charts or len(view.attributes) <= _LEADING,
        )


def _few(views: Sequence[GroupView]) -> bool:
    return len(views) <= _OPEN_GROUPS


def details_that_fit(
    views: Sequence[GroupView], writer: GroupWriter, *, room: int
) -> dict[str, Detail]:
    """How much of each group to show in `room` bytes, the largest early SPI first."""
    ordered = sorted(views, key=lambda view: -view.strength)
    chosen: dict[str, Detail] = {view.anchor: "none" for view in views}
    sizes = dict.fromkeys(chosen, 0)
    used = 0
    for before, after in pairwise(_DETAILS):
        for view in ordered:
            if chosen[view.anchor] != before:
                continue
            size = len(writer.group(view, after).encode())
            if used + size - sizes[view.anchor] > room:
                # The others are about as large; trying each would take long and gain little.
                break
            used += size - sizes[view.anchor]
            sizes[view.anchor] = size
            chosen[view.anchor] = after
    return chosen
