"""Dot-and-interval charts as inline SVG.

Positions along the scale are percentages and everything else is in pixels, so a chart fills any
width without its marks being stretched. Marks are drawn from symbols that stand once in the page.
Nothing in a chart is text from the study, except what goes through `escape`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from tropescope.findings.answers import Answer, Kind
from tropescope.findings.results import ReferenceRow

#: Heights in pixels; the style sheet gives labels beside the chart the same ones.
LANE, TIGHT_LANE, HEAD = 36, 22, 26
_AXIS = 22

#: CSS class of each kind of answer.
CLASSES: dict[Kind, str] = {
    "found": "f",
    "less": "l",
    "undecided": "u",
    "excluded": "x",
    "no reference": "n",
    "not defined": "n",
}

SYMBOLS = Markup(
    '<path id="m-r" d="M0-6 5 0 0 6-5 0z"/><path id="m-t" d="M-4.5-4.5 4.5 4.5M-4.5 4.5 4.5-4.5"/>'
)


@dataclass(frozen=True)
class Group:
    """One attribute: its reference, and one lane per model."""

    reference: ReferenceRow | None
    zeta: float
    lanes: tuple[Answer, ...]


def at(share: float) -> str:
    """A position on the scale."""
    return f"{min(max(share, 0.0), 1.0) * 100:.4g}%"


def rate_chart(groups: Sequence[Group], *, title: str, description: str) -> Markup:
    """Rates with intervals against their references, one scale for all."""
    several = any(len(group.lanes) > 1 for group in groups)
    marks: list[str] = []
    y = 0
    for group in groups:
        # The reference has a line of its own above the rates, so that no mark hides another.
        if several:
            height = HEAD + TIGHT_LANE * len(group.lanes)
            lanes = [y + HEAD + TIGHT_LANE * i + TIGHT_LANE // 2 for i in range(len(group.lanes))]
            marks += _reference(group, y + HEAD - 10, y + height - 3)
        else:
            height = LANE
            lanes = [y + 24]
            marks += _reference(group, y + 11, y + LANE - 3)
        for answer, middle in zip(group.lanes, lanes, strict=True):
            marks += _lane(answer, middle)
        y += height
    return Markup(  # noqa: S704 - numbers of ours and escaped text
        f'<svg class="chart" height="{y + _AXIS}" role="img">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
        f"{_axis(y)}{''.join(marks)}</svg>"
    )


def _axis(height: int) -> str:
    parts = []
    for share in (0, 25, 50, 75, 100):
        anchor = {0: ' class="s"', 100: ' class="e"'}.get(share, "")
        parts.append(f'<line x1="{share}%" x2="{share}%" y2="{height}" class="g"/>')
        parts.append(f'<text x="{share}%" y="{height + 16}"{anchor}>{share}\u202f%</text>')
    return "".join(parts)


def _reference(group: Group, y: int, bottom: int) -> list[str]:
    """Diamond, interval and limit ζ, with thin lines down through the rates."""
    reference = group.reference
    if reference is None:
        return []
    marks = []
    if reference.low is not None and reference.high is not None:
        width = at(reference.high - reference.low)
        marks.append(
            f'<rect x="{at(reference.low)}" y="{y - 5}" width="{width}" '
            f'height="{bottom - y + 5}" class="b"/>'
        )
    x = at(reference.value)
    marks.append(f'<line x1="{x}" x2="{x}" y1="{y}" y2="{bottom}" class="k"/>')
    if group.zeta and reference.value + group.zeta <= 1:
        limit = at(reference.value + group.zeta)
        marks.append(f'<line x1="{x}" x2="{limit}" y1="{y}" y2="{y}" class="z"/>')
        marks.append(f'<line x1="{limit}" x2="{limit}" y1="{y}" y2="{bottom}" class="z"/>')
    hollow = " a" if reference.kind == "assumed" else ""
    marks.append(f'<use href="#m-r" x="{x}" y="{y}" class="r{hollow}"/>')
    return marks


def _lane(answer: Answer, y: int) -> list[str]:
    rate = answer.rate
    if rate.value is None or rate.low is None or rate.high is None:
        return []
    kind = CLASSES[answer.kind]
    marks = [
        f'<line x1="{at(rate.low)}" x2="{at(rate.high)}" y1="{y}" y2="{y}" class="i {kind}"/>',
        f'<circle cx="{at(rate.value)}" cy="{y}" r="4.5" class="d {kind}"/>',
    ]
    if rate.truth is not None:
        marks.append(f'<use href="#m-t" x="{at(rate.truth)}" y="{y}" class="t"/>')
    return marks


def reference_strip(answer: Answer, *, title: str) -> Markup:
    """The answer as the reference P* moves from 0 to 1, with the P* that was used."""
    rate = answer.rate
    assert rate.low is not None
    assert rate.high is not None
    assert answer.reference is not None
    found_until = max(rate.low - answer.zeta, 0.0)
    excluded_from = min(max(rate.high - answer.zeta, 0.0), 1.0)
    less_from = min(max(rate.high + answer.zeta, 0.0), 1.0)
    zones = (
        ("f", 0.0, found_until),
        ("u", found_until, excluded_from),
        ("x", excluded_from, less_from),
        ("l", less_from, 1.0),
    )
    parts = [
        f'<rect x="{at(start)}" width="{at(end - start)}" y="9" height="6" class="{name}"/>'
        for name, start, end in zones
        if end > start
    ]
    hollow = " a" if answer.assumed else ""
    parts.append(f'<use href="#m-r" x="{at(answer.reference.value)}" y="12" class="r{hollow}"/>')
    return Markup(  # noqa: S704 - numbers of ours and escaped text
        f'<svg class="strip" height="24" role="img"><title>{escape(title)}</title>'
        f"{''.join(parts)}</svg>"
    )
