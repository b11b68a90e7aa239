"""The renderer in torch, for endless training pictures on a GPU; the arithmetic of `render`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tropescope.world.atlas import Box, load_atlas
from tropescope.world.definition import World
from tropescope.world.layers import LAYERS, layers_of
from tropescope.world.palette import BACKGROUNDS
from tropescope.world.scene import COLUMN

Tensor = Any
"""torch.Tensor; torch is an optional dependency and has no types where it is missing."""


@dataclass(frozen=True, eq=False)
class _TorchLayer:
    columns: tuple[int, ...]
    lookup: Tensor
    box: Box
    colour: Tensor
    keep: Tensor
    owned: Tensor


class TorchRenderer:
    """Holds the painted sprites on a device; `codes` are scenes as an integer tensor."""

    def __init__(self, world: World, *, device: str = "cpu") -> None:
        self.size = load_atlas().size
        self.device = torch.device(device)
        self.hard_columns = {LAYERS.index(name): COLUMN[name] for name in world.hard_to_see}
        self.backgrounds = torch.tensor(BACKGROUNDS, dtype=torch.float32, device=self.device)
        self.layers = [
            _TorchLayer(
                columns=tuple(COLUMN[name] for name in layer.columns),
                lookup=torch.as_tensor(layer.lookup, dtype=torch.long).to(self.device),
                box=layer.painted.box,
                colour=self._channels_first(layer.painted.colour),
                keep=self._channels_first(layer.painted.keep),
                owned=torch.as_tensor(layer.painted.owned).to(self.device),
            )
            for layer in layers_of(world)
        ]

    def _channels_first(self, pixels: Any) -> Tensor:
        return torch.as_tensor(pixels).permute(0, 3, 1, 2).contiguous().to(self.device)

    def render(self, codes: Tensor) -> Tensor:
        """[drawing, 3, 64, 64] of bytes. For training divide by 127.5 and subtract 1."""
        count = codes.shape[0]
        shades = self.backgrounds[codes[:, COLUMN["background"]].long()]
        canvas = shades[:, :, None, None].expand(count, 3, self.size, self.size).contiguous()
        for layer in self.layers:
            chosen = self._chosen(layer, codes)
            top, left, bottom, right = layer.box
            region = canvas[:, :, top:bottom, left:right]
            region.mul_(layer.keep[chosen]).add_(layer.colour[chosen])
        return canvas.add_(0.5).clamp_(max=255).to(torch.uint8)

    def owners(self, codes: Tensor) -> Tensor:
        """[drawing, 64, 64]: index of the layer a pixel belongs to, −1 for the background."""
        shape = (codes.shape[0], self.size, self.size)
        owners = torch.full(shape, -1, dtype=torch.long, device=self.device)
        for index, layer in enumerate(self.layers):
            owned = layer.owned[self._chosen(layer, codes)]
            if index in self.hard_columns:
                owned = owned & (codes[:, self.hard_columns[index]] == 0)[:, None, None]
            top, left, bottom, right = layer.box
            owners[:, top:bottom, left:right][owned] = index
        return owners

    @staticmethod
    def _chosen(layer: _TorchLayer, codes: Tensor) -> Tensor:
        return layer.lookup[tuple(codes[:, column].long() for column in layer.columns)]
