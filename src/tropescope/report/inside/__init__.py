"""The section "Inside the model": SPI over the steps, the images foreseen, attention word by word.

- `views`: what is known of one model and phrase, from results and the table of traces
- `numbers`: SPI and attention as a reader wants them
- `curves`, `film`: charts over one time axis, from noise to image
- `heat`: attention blended over a picture
- `examples`: which traced images are shown, as many and as large as there is room
- `section`: all of it as HTML
"""

from tropescope.report.inside.section import Inside, inside_of

__all__ = ["Inside", "inside_of"]
