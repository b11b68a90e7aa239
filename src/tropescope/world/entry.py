"""The study entry of the perfect generator: a model that draws from planted rates."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from tropescope.models.entry import ModelEntry, ModelPlugin, OpenContext
from tropescope.models.protocol import TextToImage


class WorldEntry(ModelEntry):
    """Draws people of the reference world.

    `distribution` is `world` (the reference rates), `training` (the planted bias) or `faithful`.
    `rates` replaces single rates, `misbehave` makes it refuse, fail or repeat itself.
    """

    adapter: Literal["world"]
    distribution: str = "training"
    rates: dict[str, Any] | None = None
    misbehave: dict[str, Any] | None = None
    batch_size: int = Field(default=64, ge=1, le=4096)


def _open(entry: WorldEntry, context: OpenContext) -> TextToImage:
    from tropescope.world.generator import WorldGenerator

    del context
    return WorldGenerator(
        distribution=entry.distribution, rates=entry.rates, misbehave=entry.misbehave
    )


plugin = ModelPlugin(entry=WorldEntry, open=_open)
