"""Pictures and part labels on a device: the arithmetic of `tropescope.world.render`, in batches."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tropescope.world.atlas import load_atlas
from tropescope.world.definition import World
from tropescope.world.layers import LAYERS, layers_of
from tropescope.world.palette import BACKGROUNDS
from tropescope.world.scene import COLUMN

_FIXED = {"body": "skin", "head": "face", "features": "face", "hair": "hair"}


def part_labels(world: World) -> tuple[str, ...]:
    """What the segmenter tells apart: the background, then every name a part can have."""
    names = dict.fromkeys(["background", "face", "skin", "hair"])
    for slot in ("clothing", "headwear", "facial_hair", "eyewear"):
        kinds = world.categories(slot)
        names |= dict.fromkeys(kinds if slot == "clothing" else kinds[:-1])
    names |= dict.fromkeys(["freckles", "brooch", *world.objects])
    return tuple(names)


class Drawer:
    def __init__(self, world: World, device: str) -> None:
        self.world = world
        self.device = device
        self.size = load_atlas().size
        self.backgrounds = torch.tensor(BACKGROUNDS, dtype=torch.float32, device=device)
        self.layers = []
        for layer in layers_of(world):
            painted = layer.painted
            colour = np.ascontiguousarray(painted.colour.transpose(0, 3, 1, 2))
            keep = np.ascontiguousarray(painted.keep.transpose(0, 3, 1, 2))
            self.layers.append(
                (
                    layer,
                    torch.as_tensor(layer.lookup.astype(np.int64), device=device),
                    torch.as_tensor(colour, device=device),
                    torch.as_tensor(keep, device=device),
                    torch.as_tensor(painted.owned, device=device),
                )
            )
        self._names()

    def _names(self) -> None:
        """For each layer, which part label its codes stand for."""
        known = part_labels(self.world)
        self.part_of: dict[str, Tensor] = {}
        for name in LAYERS:
            if name in _FIXED:
                parts = [known.index(_FIXED[name])]
            elif name in ("freckles", "brooch"):
                parts = [known.index(name)]
            elif name in ("left", "right"):
                parts = [known.index(thing) for thing in self.world.objects]
            else:
                kinds = self.world.categories(name)
                parts = [known.index(kind) if kind in known else 0 for kind in kinds]
            self.part_of[name] = torch.tensor([*parts, 0], device=self.device)

    def _sprites(self, lookup: Tensor, columns: tuple[str, ...], codes: Tensor) -> Tensor:
        return lookup[tuple(codes[:, COLUMN[column]] for column in columns)]

    def pictures(self, codes: Tensor) -> Tensor:
        """[b, 3, 64, 64] in −1..1, rounded to bytes as a saved picture is."""
        canvas = self.backgrounds[codes[:, COLUMN["background"]]][:, :, None, None]
        canvas = canvas.expand(-1, -1, self.size, self.size).clone()
        for layer, lookup, colour, keep, _ in self.layers:
            top, left, bottom, right = layer.painted.box
            chosen = self._sprites(lookup, layer.columns, codes)
            region = canvas[:, :, top:bottom, left:right]
            region.mul_(keep[chosen]).add_(colour[chosen])
        return canvas.add_(0.5).floor_().clamp_(0, 255).mul_(2 / 255).sub_(1)

    def parts(self, codes: Tensor) -> Tensor:
        """[b, 64, 64]: the part label of each pixel (the topmost part that covers half of it)."""
        shape = (len(codes), self.size, self.size)
        labels = torch.zeros(shape, dtype=torch.long, device=self.device)
        for layer, lookup, _, _, owned in self.layers:
            top, left, bottom, right = layer.painted.box
            covers = owned[self._sprites(lookup, layer.columns, codes)]
            name = layer.name
            if name in self.world.hard_to_see:
                covers = covers & (codes[:, COLUMN[name]] == 0)[:, None, None]
            code = codes[:, COLUMN[name]] if name in COLUMN and name not in _FIXED else None
            if code is None or name in ("freckles", "brooch"):
                part = self.part_of[name][:1].expand(len(codes))
            else:
                part = self.part_of[name][code]
            region = labels[:, top:bottom, left:right]
            region.copy_(torch.where(covers, part[:, None, None], region))
        return labels
