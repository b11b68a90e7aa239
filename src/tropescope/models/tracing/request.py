"""What to trace during one call of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import MeasureError


@dataclass(frozen=True, slots=True)
class AttributeTexts:
    """An attribute by the two texts that span its direction (OASIS, eqs. 9 and 10)."""

    name: str
    present: str
    absent: str

    def __post_init__(self) -> None:
        if self.present.split() == self.absent.split():
            raise MeasureError(
                f"attribute '{self.name}': the texts for presence and absence are both "
                f"{self.present!r}, so there is no direction between them",
                fix="describe the absence differently, such as 'a person wearing no hat'",
            )


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """Nothing is traced unless asked for; everything but the raw recordings stays small.

    `steps_to_show`: sampler steps (0 is the first, -1 the last) whose foreseen image is decoded.
    `words`: words or phrases of the prompt whose attention is mapped, or "all". `latents` keeps
    the latents of every step in that precision; `partner_latents`, from an earlier trace of the
    paired prompts (images first, then steps), only their cosine at each step. `raw_velocities`
    keeps every velocity in float32. `extra_batch` bounds how many extra predictions go through
    the model at once; it is halved when memory runs out.
    """

    attributes: tuple[AttributeTexts, ...] = ()
    steps_to_show: tuple[int, ...] = ()
    thumbnail_side: int = 128
    words: tuple[str, ...] | Literal["all"] = ()
    map_side: int = 256
    latents: Literal["none", "float16", "float32"] = "none"
    partner_latents: NDArray[np.floating] | None = field(default=None, compare=False)
    raw_velocities: bool = False
    extra_batch: int = 64

    def __post_init__(self) -> None:
        names = [attribute.name for attribute in self.attributes]
        if len(set(names)) < len(names):
            raise MeasureError("two attributes to trace have the same name")
        if isinstance(self.words, str) and self.words != "all":
            raise MeasureError(
                f"words must be a tuple of words or 'all', not {self.words!r}",
                fix=f"write ({self.words!r},)",
            )
        for name in ("thumbnail_side", "map_side", "extra_batch"):
            if getattr(self, name) < 1:
                raise MeasureError(f"{name} must be at least 1")
