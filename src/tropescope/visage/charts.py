"""Dot-and-interval lists and bars in the manner of the main report's charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from tropescope.findings.wording import MINUS
from tropescope.report.chart import at

LANE = 24
_AXIS = 22


@dataclass(frozen=True, slots=True)
class Dot:
    """One line of a chart: a value with its interval, and how it is drawn."""

    value: float | None
    low: float | None
    high: float | None
    style: str


@dataclass(frozen=True, slots=True)
class Scale:
    """From `low` to `high` with ticks; numbers are shares, labels are percent or points."""

    low: float
    high: float
    ticks: tuple[float, ...]
    unit: str = "\u202f%"
    factor: float = 100.0
    signed: bool = False

    def place(self, value: float) -> str:
        return at((value - self.low) / (self.high - self.low))

    def label(self, value: float) -> str:
        number = f"{abs(value) * self.factor:g}"
        sign = MINUS if value < 0 else "+" if self.signed and value > 0 else ""
        return f"{sign}{number}{self.unit}"


SHARES = Scale(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0))


def dot_chart(dots: Sequence[Dot], *, scale: Scale, title: str, lane: int = LANE) -> Markup:
    """Values with intervals, one lane each, on one scale."""
    height = lane * len(dots)
    marks = []
    for number, dot in enumerate(dots):
        if dot.value is None:
            continue
        y = lane * number + lane // 2
        if dot.low is not None and dot.high is not None:
            marks.append(
                f'<line x1="{scale.place(dot.low)}" x2="{scale.place(dot.high)}" y1="{y}" y2="{y}" '
                f'class="i {dot.style}"/>'
            )
        marks.append(
            f'<circle cx="{scale.place(dot.value)}" cy="{y}" r="4.5" class="d {dot.style}"/>'
        )
    return Markup(  # noqa: S704 - numbers of ours and escaped text
        f'<svg class="chart" height="{height + _AXIS}" role="img"><title>{escape(title)}</title>'
        f"{_axis(scale, height)}{''.join(marks)}</svg>"
    )


def _axis(scale: Scale, height: int) -> str:
    parts = []
    for tick in scale.ticks:
        x = scale.place(tick)
        edge = {scale.low: ' class="s"', scale.high: ' class="e"'}.get(tick, "")
        strong = "k" if tick == 0 and scale.low < 0 else "g"
        parts.append(f'<line x1="{x}" x2="{x}" y2="{height}" class="{strong}"/>')
        parts.append(f'<text x="{x}" y="{height + 16}"{edge}>{scale.label(tick)}</text>')
    return "".join(parts)


def bar_chart(
    shares: Sequence[float], printed: Sequence[float] | None, *, title: str, lane: int = 30
) -> Markup:
    """Shares as bars, each with a diamond where another source printed its value."""
    largest = max([*shares, *(printed or ())], default=0.0)
    top = next(limit for limit in (0.1, 0.25, 0.5, 1.0) if largest <= limit)
    scale = Scale(0.0, top, tuple(top * part / 5 for part in range(6)))
    height = lane * len(shares)
    marks = []
    for number, share in enumerate(shares):
        y = lane * number + lane // 2
        marks.append(
            f'<rect x="0" y="{y - 7}" width="{scale.place(share)}" height="14" rx="2" class="bar"/>'
        )
        if printed is not None:
            marks.append(
                f'<use href="#m-r" x="{scale.place(printed[number])}" y="{y}" class="r a"/>'
            )
    return Markup(  # noqa: S704 - numbers of ours and escaped text
        f'<svg class="chart" height="{height + _AXIS}" role="img"><title>{escape(title)}</title>'
        f"{_axis(scale, height)}{''.join(marks)}</svg>"
    )
