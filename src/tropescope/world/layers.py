"""Which sprites make up a picture: from scenes to one index per layer, back to front.

The layers are built once per world: every sprite is painted in every colour it can have, and a
look-up table leads from a scene's codes to the painted sprite.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tropescope.world.atlas import Atlas, Box, Painted, Painter, Sprites, load_atlas
from tropescope.world.definition import World
from tropescope.world.palette import BROOCH, CLOTH, FAINT, FRECKLES, HAIR, RGB, SKIN
from tropescope.world.sampling import VARIANTS
from tropescope.world.scene import COLUMN
from tropescope.world.visibility import hair_is_seen

Lookup = NDArray[np.int16]

#: Back to front.
LAYERS = (
    "body",
    "clothing",
    "head",
    "freckles",
    "features",
    "hair",
    "headwear",
    "facial_hair",
    "eyewear",
    "left",
    "right",
    "brooch",
)


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer: its painted sprites, and which sprite the codes of a scene choose.

    `lookup` has one axis per column in `columns`; a code of −1 reads the last entry, which is empty
    where the column can be −1.
    """

    name: str
    columns: tuple[str, ...]
    lookup: Lookup
    painted: Painted

    def sprites(self, codes: NDArray[np.int16]) -> NDArray[np.intp]:
        """The sprite of each scene."""
        picks = self.lookup[tuple(codes[:, COLUMN[column]] for column in self.columns)]
        return picks.astype(np.intp)


@lru_cache(maxsize=4)
def layers_of(world: World) -> tuple[Layer, ...]:
    return tuple(_LayerBuilder(world, load_atlas()).all())


def _variant(sprites: Sprites, kind: str, number: int) -> str:
    """The name of a variant; kinds with fewer variants repeat them."""
    count = sum(name.rsplit("/", 1)[0] == kind for name in sprites.names)
    return f"{kind}/{number % count}"


class _LayerBuilder:
    def __init__(self, world: World, atlas: Atlas) -> None:
        self.world = world
        self.atlas = atlas

    def all(self) -> list[Layer]:
        return [
            self._skinned("body"),
            self._cloth("clothing"),
            self._skinned("head"),
            self._freckles(),
            self._features(),
            self._hair(),
            self._cloth("headwear"),
            self._facial_hair(),
            self._eyewear(),
            self._object("left"),
            self._object("right"),
            self._brooch(),
        ]

    def _skinned(self, name: str) -> Layer:
        painter = Painter(self.atlas.layers[name])
        skins = self.world.categories("skin")
        lookup = np.zeros((len(skins), 2), np.int16)
        for k, skin in enumerate(skins):
            for shade, tint in enumerate(SKIN[skin]):
                lookup[k, shade] = painter.add(f"{name}/0", tint)
        return Layer(name, ("skin", "skin_shade"), lookup, painter.done())

    def _cloth(self, slot: str) -> Layer:
        sprites = self.atlas.layers[slot]
        painter = Painter(sprites)
        kinds = self.world.categories(slot)
        variants = VARIANTS.get(slot, 1)
        lookup = np.zeros((len(kinds), variants, len(CLOTH)), np.int16)
        for k, kind in enumerate(kinds):
            if slot == "headwear" and kind == self.world.slots[slot].otherwise:
                continue
            for variant in range(variants):
                for c, tint in enumerate(CLOTH.values()):
                    lookup[k, variant, c] = painter.add(_variant(sprites, kind, variant), tint)
        if slot == "headwear":
            return Layer(slot, (slot, f"{slot}_colour"), lookup[:, 0], painter.done())
        return Layer(slot, (slot, f"{slot}_variant", f"{slot}_colour"), lookup, painter.done())

    def _freckles(self) -> Layer:
        painter = Painter(self.atlas.layers["freckles"])
        skins = self.world.categories("skin")
        lookup = np.zeros((len(skins), 3), np.int16)
        for k, skin in enumerate(skins):
            for look, opacity in ((1, FAINT), (2, 1.0)):
                lookup[k, look] = painter.add("freckles/0", FRECKLES[skin], opacity=opacity)
        return Layer("freckles", ("skin", "freckles_look"), lookup, painter.done())

    def _brooch(self) -> Layer:
        painter = Painter(self.atlas.layers["brooch"])
        looks = [0, *(painter.add("brooch/0", BROOCH, opacity=o) for o in (FAINT, 1.0))]
        return Layer("brooch", ("brooch_look",), np.array(looks, np.int16), painter.done())

    def _features(self) -> Layer:
        painter = Painter(self.atlas.layers["features"])
        lookup = np.zeros((2, 2), np.int16)
        for g, appearance in enumerate(("woman", "man")):
            for e, expression in enumerate(("smiling", "neutral")):
                lookup[g, e] = painter.add(f"{appearance} {expression}/0")
        return Layer("features", ("appearance", "expression"), lookup, painter.done())

    def _hair_tints(self) -> list[list[RGB]]:
        return [list(HAIR[name]) for name in self.world.categories("hair_colour")]

    def _hair(self) -> Layer:
        sprites = self.atlas.layers["hair"]
        painter = Painter(sprites)
        tints = self._hair_tints()
        worn, styles = self.world.categories("headwear"), self.world.categories("hair")
        shades = max(len(row) for row in tints)
        shape = (len(worn), len(styles), VARIANTS["hair"], len(tints), shades)
        lookup = np.zeros(shape, np.int16)
        seen = hair_is_seen(self.world)
        for h, headwear in enumerate(worn):
            for k, style in enumerate(styles):
                if not seen[h, k] or style == "bald":
                    continue
                bare = headwear == self.world.slots["headwear"].otherwise
                kind = "short" if style == "short" else "long" if bare else "long under a brim"
                for variant in range(VARIANTS["hair"]):
                    for c, row in enumerate(tints):
                        for s, tint in enumerate(row):
                            name = _variant(sprites, kind, variant)
                            lookup[h, k, variant, c, s] = painter.add(name, tint)
        columns = ("headwear", "hair", "hair_variant", "hair_colour", "hair_shade")
        return Layer("hair", columns, lookup, painter.done())

    def _facial_hair(self) -> Layer:
        sprites = self.atlas.layers["facial_hair"]
        painter = Painter(sprites)
        tints = self._hair_tints()
        kinds = self.world.categories("facial_hair")
        variants = VARIANTS["facial_hair"]
        shades = max(len(row) for row in tints)
        lookup = np.zeros((len(kinds), variants, len(tints), shades), np.int16)
        for k, kind in enumerate(kinds[:-1]):
            for variant in range(variants):
                for c, row in enumerate(tints):
                    for s, tint in enumerate(row):
                        name = _variant(sprites, kind, variant)
                        lookup[k, variant, c, s] = painter.add(name, tint)
        columns = ("facial_hair", "facial_hair_variant", "hair_colour", "hair_shade")
        return Layer("facial_hair", columns, lookup, painter.done())

    def _eyewear(self) -> Layer:
        sprites = self.atlas.layers["eyewear"]
        painter = Painter(sprites)
        kinds = self.world.categories("eyewear")
        lookup = np.zeros((len(kinds), VARIANTS["eyewear"]), np.int16)
        for k, kind in enumerate(kinds[:-1]):
            for variant in range(VARIANTS["eyewear"]):
                lookup[k, variant] = painter.add(_variant(sprites, kind, variant))
        return Layer("eyewear", ("eyewear", "eyewear_variant"), lookup, painter.done())

    def _object(self, side: str) -> Layer:
        sprites = self.atlas.layers["objects"]
        height, width = sprites.pixels.shape[1:3]
        top = self.atlas.size - height
        start = 0 if side == "left" else self.atlas.size - width
        box: Box = (top, start, top + height, start + width)
        painter = Painter(Sprites(box=box, names=sprites.names, pixels=sprites.pixels))
        picks = [painter.add(f"{name}/0") for name in self.world.objects]
        return Layer(side, (side,), np.array([*picks, 0], np.int16), painter.done())
