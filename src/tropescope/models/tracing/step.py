"""One sampler step as the parts of a trace see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tropescope.models.tracing.families import Inputs
from tropescope.models.tracing.noise_levels import NoiseLevel


@dataclass(frozen=True, slots=True)
class Step:
    """`sample` is x_t; `conditional` the model's output for the prompt alone; `guided` what the
    sampler was given. All in float32, one row per image. `predict` runs the denoiser once more,
    unseen by the trace."""

    index: int
    level: NoiseLevel
    timestep: float
    sample: Any
    conditional: Any
    guided: Any
    inputs: Inputs
    predict: Callable[[Inputs], Any]

    @property
    def images(self) -> int:
        return int(self.sample.shape[0])
