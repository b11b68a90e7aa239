"""SPI over the steps of the sampler as inline SVG: mean line, band, zero line.

All charts of a model share one vertical scale, and all of a phrase one time axis, which the film
strip beneath them uses too. Curves lie in an inner picture that is stretched to the width of the
page; strokes are not stretched with it, and text stands outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, log10

from markupsafe import Markup, escape

from tropescope.findings.results import CurveRow
from tropescope.report.inside.numbers import signed, signed_range
from tropescope.report.inside.views import AttributeTrace, has_band
from tropescope.report.rendering import short

#: Room at either end of the time axis, in percent: half a picture of the film strip.
MARGIN = 9.0
#: Heights in pixels.
LANE, _PLOT, _TOP, _AXIS = 108, 88, 10, 36
_TICKS = 6
#: Where the zero line starts, right of its label, in pixels.
_LABEL = 14
#: A band may stretch the scale so far beyond the mean curves; the rest of it is cut.
_MOST_STRETCH = 3.0


@dataclass(frozen=True)
class Scale:
    """The vertical axis. `places` are the decimals that numbers on it deserve."""

    low: float
    high: float
    places: int

    def y(self, value: float) -> float:
        """From 0 at the top to 100 at the bottom."""
        return (self.high - value) / (self.high - self.low) * 100


def scale_of(traces: Iterable[AttributeTrace]) -> Scale:
    """One scale for all curves, always with zero on it."""
    curves = [curve for trace in traces for curve in trace.curves]
    means = [v for curve in curves for v in curve.value if v is not None]
    reach = max((abs(v) for v in means), default=0.0) or 0.01
    ends = [v for c in curves if has_band(c) for v in (*c.low, *c.high) if v is not None]
    kept = [min(max(v, -_MOST_STRETCH * reach), _MOST_STRETCH * reach) for v in (*means, *ends)]
    low, high = min(0.0, *kept, 0.0), max(0.0, *kept, 0.0)
    unit = _round_up((high - low or reach) / 12)
    low, high = -_steps(-low, unit) * unit, _steps(high, unit) * unit
    if low == high:
        low, high = -unit, unit
    return Scale(max(low, -1.0), min(high, 1.0), places=max(3, 1 - floor(log10(reach))))


def _round_up(value: float) -> float:
    power = 10.0 ** floor(log10(value))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= value * (1 - 1e-9))


def _steps(value: float, unit: float) -> int:
    whole = int(value / unit)
    return whole if whole * unit >= value - 1e-12 else whole + 1


def across(step: int, steps: int) -> float:
    """Position of a step, counted from 0, on the time axis in percent."""
    return 50.0 if steps < 2 else MARGIN + (100 - 2 * MARGIN) * step / (steps - 1)


def ticks_of(steps: int) -> tuple[int, ...]:
    """Steps, from 0, that get a number where no picture asks for one."""
    count = min(_TICKS, steps)
    return tuple(sorted({round(i * (steps - 1) / max(count - 1, 1)) for i in range(count)}))


def curve_chart(
    trace: AttributeTrace, scale: Scale, *, ticks: Sequence[int], with_steps: bool
) -> Markup:
    """The lane of one attribute; `with_steps` adds the numbers of every step to point at."""
    steps = len(trace.conditional.value)
    lines = [
        f'<line x1="{across(t, steps):.4g}%" x2="{across(t, steps):.4g}%" y2="{LANE}" class="g"/>'
        for t in ticks
    ]
    zero = _TOP + scale.y(0) * _PLOT / 100
    lines.append(f'<line x1="{_LABEL}" x2="100%" y1="{zero:.1f}" y2="{zero:.1f}" class="zero"/>')
    inner = []
    if has_band(trace.conditional):
        inner += [
            _area(trace.conditional, scale, "band"),
            _area(trace.conditional, scale, "band f", side=1),
            _area(trace.conditional, scale, "band l", side=-1),
        ]
    if trace.guided is not None:
        if has_band(trace.guided):
            inner.append(_area(trace.guided, scale, "edge"))
        inner.append(_line(trace.guided, scale, "mean guided"))
    inner.append(_line(trace.conditional, scale, "mean"))
    labels = [
        f'<text x="0" y="{_TOP + scale.y(v) * _PLOT / 100 + 4:.1f}" class="s">'
        f"{signed(v, _label_places(scale)) if v else 0}</text>"
        for v in dict.fromkeys((scale.high, 0.0, scale.low))
    ]
    return Markup(  # noqa: S704 - numbers of ours and escaped text
        f'<svg class="lane" height="{LANE}" role="img">'
        f"<title>SPI of {escape(short(trace.attribute.replace('_', ' ')))}</title>"
        f"<desc>{escape(trace.in_words(scale.places))}</desc>{''.join(lines)}"
        f'<svg y="{_TOP}" height="{_PLOT}" viewBox="0 0 1000 100" preserveAspectRatio="none">'
        f"{''.join(inner)}</svg>{''.join(labels)}"
        f"{_step_titles(trace, scale) if with_steps else ''}</svg>"
    )


def _label_places(scale: Scale) -> int:
    return next(
        places
        for places in range(1, 12)
        if all(abs(round(v, places) - v) < 1e-12 for v in (scale.low, scale.high))
    )


def _step_titles(trace: AttributeTrace, scale: Scale) -> str:
    steps = len(trace.conditional.value)
    width = (100 - 2 * MARGIN) / max(steps - 1, 1)
    return "".join(
        f'<rect x="{across(i, steps) - width / 2:.4g}%" width="{width:.4g}%" height="{LANE}" '
        f'class="h"><title>{escape(step_words(trace, i, scale.places))}</title></rect>'
        for i in range(steps)
    )


def step_words(trace: AttributeTrace, step: int, places: int) -> str:
    """All numbers of one step."""
    steps, sigma = len(trace.conditional.value), trace.conditional.sigma[step]
    parts = [f"Step {step + 1} of {steps}, σ {sigma:.3g}"]
    for curve in trace.curves:
        value = signed(curve.value[step], places)
        if has_band(curve):
            value += f" ({signed_range(curve.low[step], curve.high[step], places)})"
        parts.append(f"{curve.velocity} {value}")
    return "; ".join(parts)


def time_axis(sigma: Sequence[float], *, ticks: Sequence[int]) -> Markup:
    """Step numbers from 1, with the noise level as the title of each."""
    steps = len(sigma)
    numbers = "".join(
        f'<text x="{across(t, steps):.4g}%" y="14"><title>noise level σ {sigma[t]:.3g}</title>'
        f"{t + 1}</text>"
        for t in ticks
    )
    return Markup(  # noqa: S704 - numbers of ours
        f'<svg class="lane" height="{_AXIS}" role="img"><title>Steps, from noise to image</title>'
        f'{numbers}<text x="0" y="30" class="s">from noise</text><text x="50%" y="30">step</text>'
        '<text x="100%" y="30" class="e">to image</text></svg>'
    )


def _line(curve: CurveRow, scale: Scale, name: str) -> str:
    steps = len(curve.value)
    path, drawn, isolated = "", False, ""
    for i, value in enumerate(curve.value):
        if value is None:
            drawn = False
            continue
        point = f"{across(i, steps) * 10:.5g} {scale.y(value):.2f}"
        path += f"{'L' if drawn else 'M'}{point}"
        alone = not drawn and (i + 1 == steps or curve.value[i + 1] is None)
        isolated += f"M{point}h.01" if alone else ""
        drawn = True
    dot = f'<path d="{isolated}" class="{name} point"/>' if isolated else ""
    return f'<path d="{path}" class="{name}"/>{dot}'


def _area(curve: CurveRow, scale: Scale, name: str, *, side: int = 0) -> str:
    """The band; with a `side` only where all of it lies above (1) or below (−1) zero."""
    steps = len(curve.value)
    runs: list[list[tuple[float, float, float]]] = [[]]
    for i, (low, high) in enumerate(zip(curve.low, curve.high, strict=True)):
        wanted = low is not None and high is not None
        if wanted and side:
            wanted = (low if side > 0 else -high) > 0  # type: ignore[operator]
        if wanted:
            assert low is not None
            assert high is not None
            runs[-1].append((across(i, steps) * 10, scale.y(low), scale.y(high)))
        elif runs[-1]:
            runs.append([])
    # One step alone is drawn as wide as a tenth of a percent, so that it can be seen.
    shapes = [[(r[0][0] - 3, *r[0][1:]), (r[0][0] + 3, *r[0][1:])] if len(r) == 1 else r
              for r in runs if r]  # fmt: skip
    path = "".join(
        "M"
        + "L".join(f"{x:.5g} {high:.2f}" for x, _, high in run)
        + "L"
        + "L".join(f"{x:.5g} {low:.2f}" for x, low, _ in reversed(run))
        + "z"
        for run in shapes
    )
    return f'<path d="{path}" class="{name}"/>' if path else ""
