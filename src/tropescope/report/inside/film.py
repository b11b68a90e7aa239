"""The images that the steps foresee, under the steps of the time axis."""

from __future__ import annotations

from itertools import pairwise

from markupsafe import Markup, escape

from tropescope.report.inside.curves import MARGIN, across
from tropescope.report.inside.examples import Example
from tropescope.report.rendering import short

#: Of the distance between two steps, how much their pictures fill.
_FILL = 0.94


def film_strip(example: Example, names: dict[str, str]) -> Markup:
    """One row of pictures; it is scaled as a whole, so pictures stay under their steps."""
    steps = len(example.sigma)
    places = [across(step, steps) for step, _ in example.film]
    gap = min((b - a for a, b in pairwise(places)), default=100.0)
    width = min(2 * MARGIN, gap * _FILL) * 10
    height = max(width * still.height / still.width for _, still in example.film)
    pictures = "".join(
        f"<g><title>Foreseen at step {step + 1} of {steps}, σ {example.sigma[step]:.3g}</title>"
        f'<use href="#{names[still.uri]}" x="{at * 10 - width / 2:.5g}" width="{width:.5g}" '
        f'height="{height:.5g}"/></g>'
        for (step, still), at in zip(example.film, places, strict=True)
    )
    shown = ", ".join(str(step + 1) for step, _ in example.film)
    title = f"Image foreseen at steps {shown} of {steps}: {short(example.image.prompt, 160)}"
    return Markup(  # noqa: S704 - numbers of ours and escaped text
        f'<svg class="film" viewBox="0 0 1000 {height:.5g}" role="img">'
        f"<title>{escape(f'{title} · image {example.image.key}')}</title>{pictures}</svg>"
    )
