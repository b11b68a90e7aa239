"""World maps as inline SVG; each country's shape stands once in the page, whatever the maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from tropescope.visage.outline import HEIGHT, WIDTH, outlines, point

_DOT = 62


@dataclass(frozen=True, slots=True)
class Mark:
    """How one country is drawn: a class of the style sheet, whether it is hatched, and a tip."""

    style: str
    tip: str
    hatched: bool = False
    point: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a scale: values from `low` on have this style and label."""

    low: float
    style: str
    label: str


def step_of(steps: Sequence[Step], value: float) -> Step:
    """The last step whose lower end the value reaches."""
    return [step for step in steps if value >= step.low or step is steps[0]][-1]


def shapes() -> Markup:
    """All outlines and the hatching, to stand once in the page."""
    paths = "".join(
        f'<path id="w{_name(key)}" d="{outline.path}"/>' for key, outline in outlines().items()
    )
    hatch = (
        '<pattern id="hatch" width="90" height="90" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="34" height="90"/></pattern>'
    )
    return Markup(paths + hatch)  # noqa: S704 - numbers of ours


def world_map(marks: Mapping[str, Mark], *, title: str, description: str) -> Markup:
    """A map; `marks` gives the drawing of each outline, all others are drawn as land."""
    known = outlines()
    parts = []
    for key in known:
        if key not in marks:
            parts.append(f'<use href="#w{_name(key)}" class="land"/>')
    dots = []
    for key, mark in marks.items():
        tip = f"<title>{escape(mark.tip)}</title>"
        if mark.point is not None or key not in known:
            if mark.point is not None:
                x, y = point(*mark.point)
                dots.append(
                    f'<circle cx="{x}" cy="{y}" r="{_DOT}" class="{mark.style}">{tip}</circle>'
                )
            continue
        parts.append(f'<use href="#w{_name(key)}" class="{mark.style}">{tip}</use>')
        if mark.hatched:
            parts.append(f'<use href="#w{_name(key)}" class="hatched">{tip}</use>')
    return Markup(  # noqa: S704 - numbers of ours and escaped text
        f'<svg class="world" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{''.join(parts)}{''.join(dots)}</svg>"
    )


def _name(key: str) -> str:
    return "".join(letter for letter in key if letter.isalnum())
