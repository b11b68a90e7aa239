"""From scenes to pictures, in numpy: a plain background, then layer over layer.

`render` gives RGB bytes; `render_owners` says to which layer each pixel belongs. The same
arithmetic in torch is `render_torch`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropescope.world.atlas import load_atlas
from tropescope.world.layers import Layer, layers_of
from tropescope.world.palette import BACKGROUNDS
from tropescope.world.scene import Scenes

#: Pictures painted together; more do not fit the processor's cache and are slower.
_CHUNK = 64


def render(scenes: Scenes, *, without: str | None = None) -> NDArray[np.uint8]:
    """[drawing, 64, 64, 3]. `without` leaves one layer out, to see what it changes."""
    size = load_atlas().size
    pictures = np.empty((len(scenes), size, size, 3), np.uint8)
    layers = [layer for layer in layers_of(scenes.world) if layer.name != without]
    picks = [layer.sprites(scenes.codes) for layer in layers]
    backgrounds = np.array(BACKGROUNDS, np.float32)[scenes.column("background")]
    for start in range(0, len(scenes), _CHUNK):
        part = slice(start, start + _CHUNK)
        canvas = np.empty((len(backgrounds[part]), size, size, 3), np.float32)
        canvas[:] = backgrounds[part, None, None, :]
        for layer, chosen in zip(layers, picks, strict=True):
            _paint(canvas, layer, chosen[part])
        canvas += np.float32(0.5)
        # Rounding in the layers can give 255.5 and more, which would wrap around to black.
        pictures[part] = np.minimum(canvas, np.float32(255)).astype(np.uint8)
    return pictures


def _paint(canvas: NDArray[np.float32], layer: Layer, chosen: NDArray[np.intp]) -> None:
    top, left, bottom, right = layer.painted.box
    used = np.flatnonzero(chosen)
    if len(used) == 0:
        return
    colour, keep = layer.painted.colour, layer.painted.keep
    if len(used) == len(chosen):
        region = canvas[:, top:bottom, left:right]
        region *= keep[chosen]
        region += colour[chosen]
    else:
        sprites = chosen[used]
        region = canvas[used, top:bottom, left:right]
        region *= keep[sprites]
        region += colour[sprites]
        canvas[used, top:bottom, left:right] = region


def render_owners(scenes: Scenes) -> NDArray[np.int8]:
    """[drawing, 64, 64]: the index of the layer a pixel belongs to, −1 for the background.

    A pixel belongs to the topmost layer that covers at least half of it. A mark that only looks
    like freckles or a brooch owns nothing.
    """
    size = load_atlas().size
    owners = np.full((len(scenes), size, size), -1, np.int8)
    for index, layer in enumerate(layers_of(scenes.world)):
        top, left, bottom, right = layer.painted.box
        owned = layer.painted.owned[layer.sprites(scenes.codes)]
        if layer.name in scenes.world.hard_to_see:
            owned = owned & (scenes.column(layer.name) == 0)[:, None, None]
        owners[:, top:bottom, left:right][owned] = index
    return owners
