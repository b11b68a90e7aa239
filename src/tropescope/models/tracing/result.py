"""What a trace gives back: plain numpy per image, and how it is stored.

`ImageTrace.reduced()` is a small .npz, `ImageTrace.raw()` a .safetensors with the opt-in
recordings. Layout, with K attributes, S steps, M shown steps, W words:

| name                                     | shape                | what                          |
|------------------------------------------|----------------------|-------------------------------|
| about                                    | JSON text            | `TraceFacts`, and the words   |
| timesteps, alpha, sigma                  | S                    | x_t = alpha·x0 + sigma·ε      |
| spi_conditional, spi_guided              | K × S                | SPI; NaN where not defined    |
| direction_norm                           | K × S                | length of δA                  |
| shown_steps, thumbnails                  | M; M × h × w × 3     | foreseen images, uint8        |
| word_maps                                | W × h × w            | min–max scaled to uint16      |
| word_ranges                              | W × 2                | attention at 0 and at 65535   |
| partner_cosine                           | S + 1                | cosine with the pair's latent |
| latents (raw)                            | S + 1 × latent       | before each step, and the end |
| velocity_conditional, _guided (raw)      | S × latent           | v = ε̂ − x̂0                   |
| velocity_present, velocity_absent (raw)  | K × S × latent       | v given d+, v given d−        |
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import MissingDependency

Array = NDArray[Any]
FORMAT = 1
_FULL = 65535
_REDUCED = ("timesteps", "alpha", "sigma", "spi_conditional", "spi_guided", "direction_norm",
            "shown_steps", "thumbnails", "partner_cosine")  # fmt: skip
_RAW = ("latents", "velocity_conditional", "velocity_guided", "velocity_present",
        "velocity_absent")  # fmt: skip


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """How the numbers came about; equal for all images of one call."""

    pipeline: str
    family: str
    scheduler: str
    space: str
    prediction: str
    guided: bool
    """Whether classifier-free guidance changed the prediction that the sampler used."""
    attributes: tuple[str, ...] = ()
    attention_layers: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class WordTrace:
    """Where one word of the prompt was looked at.

    `tokens` are its positions in the text the denoiser sees. `scaled` is the mean attention map,
    min–max scaled to uint16; `low` and `high` are the attention at its ends. Where they are equal,
    the map is flat and a mask is not defined.
    """

    text: str
    occurrence: int
    tokens: tuple[int, ...]
    scaled: NDArray[np.uint16]
    low: float
    high: float

    def normalised(self) -> NDArray[np.float64]:
        return self.scaled.astype(np.float64) / _FULL

    def attention(self) -> NDArray[np.float64]:
        """Mean share of attention that each pixel gives to a token of the word."""
        return self.low + (self.high - self.low) * self.normalised()


@dataclass(frozen=True, slots=True, eq=False)
class ImageTrace:
    """The trace of one image. What was not asked for is None, or empty for words."""

    facts: TraceFacts
    timesteps: Array
    alpha: Array
    sigma: Array
    spi_conditional: Array | None = None
    spi_guided: Array | None = None
    direction_norm: Array | None = None
    shown_steps: Array | None = None
    thumbnails: NDArray[np.uint8] | None = None
    partner_cosine: Array | None = None
    words: tuple[WordTrace, ...] = ()
    latents: Array | None = None
    velocity_conditional: Array | None = None
    velocity_guided: Array | None = None
    velocity_present: Array | None = None
    velocity_absent: Array | None = None

    def reduced(self) -> bytes:
        """The small part as .npz; the same trace always gives the same bytes."""
        arrays = {name: getattr(self, name) for name in _REDUCED}
        if self.words:
            arrays["word_maps"] = np.stack([word.scaled for word in self.words])
            arrays["word_ranges"] = np.array([(word.low, word.high) for word in self.words])
        words = [(word.text, word.occurrence, word.tokens) for word in self.words]
        about = {"format": FORMAT, **asdict(self.facts), "words": words}
        file = io.BytesIO()
        np.savez_compressed(
            file,
            about=np.array(json.dumps(about, ensure_ascii=False)),
            **{name: array for name, array in arrays.items() if array is not None},
        )
        return file.getvalue()

    def raw(self) -> bytes | None:
        """The opt-in recordings as .safetensors; None where there are none."""
        arrays = {n: getattr(self, n) for n in _RAW if getattr(self, n) is not None}
        if not arrays:
            return None
        try:
            from safetensors.numpy import save
        except ImportError:
            raise MissingDependency("safetensors", extra="models") from None
        contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        return bytes(save(contiguous, metadata={"format": str(FORMAT)}))

    @classmethod
    def load(cls, reduced: bytes, raw: bytes | None = None) -> ImageTrace:
        with np.load(io.BytesIO(reduced), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
        about["attributes"] = tuple(about["attributes"])
        maps, ranges = arrays.pop("word_maps", ()), arrays.pop("word_ranges", ())
        words = tuple(
            WordTrace(text, occurrence, tuple(tokens), scaled, float(low), float(high))
            for (text, occurrence, tokens), scaled, (low, high) in zip(
                about["words"], maps, ranges, strict=True
            )
        )
        if raw is not None:
            from safetensors.numpy import load

            arrays.update(load(raw))
        facts = TraceFacts(**{f.name: about[f.name] for f in fields(TraceFacts)})
        return cls(facts=facts, words=words, **arrays)


def scale_map(mean: Array) -> tuple[NDArray[np.uint16], float, float]:
    """Min–max scaling to 16 bits: exact to 1/131070 of the range, two bytes a pixel."""
    low, high = float(mean.min()), float(mean.max())
    if not high > low:
        return np.zeros(mean.shape, np.uint16), low, high
    scaled = (mean.astype(np.float64) - low) / (high - low) * _FULL
    return scaled.round().astype(np.uint16), low, high


@dataclass(frozen=True, slots=True)
class TraceResult:
    """One trace per image, in the order of the pipeline's images."""

    facts: TraceFacts
    images: tuple[ImageTrace, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.images)
