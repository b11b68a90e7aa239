"""Attention blended over a picture.

The colours are anchors of viridis (CC0; van der Walt and Smith), whose lightness rises evenly, so
that equal steps of attention look equal, also without seeing hues. The picture beneath is grey:
every hue that is seen is attention.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

#: From the least to the most attention; the style sheet's legend has the same ones.
COLOURS = np.array(
    [
        (68, 1, 84), (71, 44, 122), (59, 81, 139), (44, 113, 142), (33, 144, 141),
        (39, 173, 129), (92, 200, 99), (170, 220, 50), (253, 231, 37),
    ],
    dtype=np.float64,
)  # fmt: skip
#: How much of the colour covers the picture.
COVER = 0.55


def colours(shares: NDArray[np.floating]) -> NDArray[np.float64]:
    """Colours of numbers between 0 and 1, as red, green and blue from 0 to 255."""
    at = np.linspace(0, 1, len(COLOURS))
    return np.stack([np.interp(shares, at, COLOURS[:, i]) for i in range(3)], axis=-1)


def heated(picture: Image.Image, shares: NDArray[np.floating]) -> Image.Image:
    """The picture in grey under the colours of a map, which is resized to it."""
    width, height = picture.size
    small = Image.fromarray(np.asarray(shares, dtype=np.float32), "F")
    scaled = np.asarray(small.resize((width, height), Image.Resampling.BICUBIC))
    grey = np.asarray(picture.convert("L"), dtype=np.float64)[..., None]
    blended = (1 - COVER) * grey + COVER * colours(np.clip(scaled, 0, 1))
    return Image.fromarray(blended.round().astype(np.uint8), "RGB")
