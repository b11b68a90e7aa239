"""Exact boxes and masks of everything in a drawing.

Rule of occlusion: a pixel belongs to the topmost part that covers at least half of it. So masks
never overlap, together with the background they cover the picture, and a part that is hidden
entirely has no mask. Eyes, brows, nose and mouth belong to the face.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropescope.world.atlas import Box
from tropescope.world.definition import World
from tropescope.world.layers import LAYERS
from tropescope.world.render import render_owners
from tropescope.world.scene import Codes, Scene

_FIXED = {"body": "skin", "head": "face", "features": "face", "hair": "hair"}


@dataclass(frozen=True, eq=False)
class Part:
    """One visible thing: what it is, its box (top, left, bottom, right) and its pixels."""

    name: str
    kind: str
    """`person` for parts of the person, `object` for things beside."""
    box: Box
    mask: NDArray[np.bool_]


def part_name(scene: Scene, layer: str) -> str:
    """What a layer of this drawing is called."""
    fixed = _FIXED.get(layer)
    if fixed is not None:
        return fixed
    if layer in ("freckles", "brooch"):
        return layer
    return str(getattr(scene, layer))


def box_of(mask: NDArray[np.bool_]) -> Box:
    """The smallest box around a mask that is not empty."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1


def parts_of(world: World, scene: Scene) -> list[Part]:
    """All visible parts, back to front. The same object on both sides is two parts."""
    owners = render_owners(Codes(world).encode([scene]))[0]
    masks: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for index, layer in enumerate(LAYERS):
        mask = owners == index
        if mask.any():
            place = layer if layer in ("left", "right") else ""
            key = (part_name(scene, layer), place)
            masks[key] = masks[key] | mask if key in masks else mask
    return [
        Part(name=name, kind="object" if place else "person", box=box_of(mask), mask=mask)
        for (name, place), mask in masks.items()
    ]
