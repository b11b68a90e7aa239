"""The sprites of the drawings, as shipped with the package, and their painted forms.

A stored sprite holds five bytes a pixel: what is fixed (premultiplied red, green, blue), how much
of a free colour is added, and alpha. `Painted` lists each sprite in each colour it can have, so
that drawing a picture is, layer by layer, one look-up and one multiply-add.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tropescope.world.palette import RGB

ATLAS_FILE = Path(__file__).with_name("atlas.npz")
Box = tuple[int, int, int, int]
"""top, left, bottom, right; bottom and right are outside."""

#: A pixel belongs to the topmost part that covers at least this share of it.
OWNING = 0.5


@dataclass(frozen=True, eq=False)
class Sprites:
    """All sprites of one layer, cut to a common box."""

    box: Box
    names: tuple[str, ...]
    pixels: NDArray[np.uint8]

    def index(self, name: str) -> int:
        return self.names.index(name)


@dataclass(frozen=True, eq=False)
class Painted:
    """One layer ready for painting. Index 0 is empty.

    New pixel = old pixel · `keep` + `colour` (0..255, premultiplied). `owned` marks the pixels that
    then belong to the part.
    """

    box: Box
    colour: NDArray[np.float32]
    keep: NDArray[np.float32]
    owned: NDArray[np.bool_]


class Painter:
    """Collects painted sprites of one layer; each gets the next index, 0 being empty."""

    def __init__(self, sprites: Sprites) -> None:
        self.sprites = sprites
        height, width = sprites.pixels.shape[1:3]
        self._colour = [np.zeros((height, width, 3), np.float32)]
        self._keep = [np.ones((height, width, 1), np.float32)]
        self._owned = [np.zeros((height, width), np.bool_)]

    def add(self, name: str, tint: RGB = (0, 0, 0), *, opacity: float = 1.0) -> int:
        raw = self.sprites.pixels[self.sprites.index(name)].astype(np.float32)
        fixed, free, alpha = raw[..., :3], raw[..., 3:4] / 255, raw[..., 4:5] / 255
        painted = fixed + free * np.array(tint, dtype=np.float32)
        self._colour.append((painted * opacity).astype(np.float32))
        self._keep.append((1 - alpha * opacity).astype(np.float32))
        self._owned.append(alpha[..., 0] >= OWNING)
        return len(self._colour) - 1

    def done(self) -> Painted:
        return Painted(
            box=self.sprites.box,
            colour=np.stack(self._colour),
            keep=np.stack(self._keep),
            owned=np.stack(self._owned),
        )


@dataclass(frozen=True, eq=False)
class Atlas:
    size: int
    layers: dict[str, Sprites]
    digest: str


@lru_cache(maxsize=1)
def load_atlas() -> Atlas:
    data = ATLAS_FILE.read_bytes()
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        index = json.loads(stored["index"].tobytes())
        layers = {
            name: Sprites(
                box=(entry["box"][0], entry["box"][1], entry["box"][2], entry["box"][3]),
                names=tuple(entry["sprites"]),
                pixels=stored[name],
            )
            for name, entry in index["layers"].items()
        }
    return Atlas(size=index["size"], layers=layers, digest=hashlib.sha256(data).hexdigest())
