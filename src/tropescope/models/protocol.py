"""What every audited text-to-image model looks like to the rest of Tropescope.

An adapter turns requests (prompt and seed) into outcomes. It is made from one named entry of the
study, answers cheap questions (`identity`, `check_prompts`) without loading weights, and loads them
on the first `generate`. A model that cannot answer says so with an outcome; it raises only when
nothing further can succeed (no weights, no key, spending cap).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

OutcomeKind = Literal["generated", "filtered", "refused", "failed", "invalid"]

#: Outcomes that are results: they are kept and never asked for again. Only `failed` is tried again.
FINAL_OUTCOMES: frozenset[str] = frozenset({"generated", "filtered", "refused", "invalid"})


@dataclass(frozen=True, slots=True)
class Request:
    """One image to make. `seed` alone decides the noise; `key` names the item in every table."""

    prompt: str
    seed: int
    key: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a request.

    `pixels` is an RGB array (height, width, 3) of uint8 where an image exists. `encoded` holds the
    original file when the model delivered one (an API, a folder): it is then stored unchanged, with
    `suffix` as its extension. `facts` are things known about the image for certain (the reference
    world's exact labels, labels that came with a folder); they are data, never guesses.
    """

    kind: OutcomeKind
    pixels: NDArray[np.uint8] | None = None
    encoded: bytes | None = None
    suffix: str = ".png"
    reason: str = ""
    revised_prompt: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PromptProblem:
    """Why a prompt cannot (error) or should not (warning) be put to a model."""

    prompt: str
    level: Literal["error", "warning"]
    message: str


@runtime_checkable
class TextToImage(Protocol):
    """One audited model."""

    #: True where the images of a batch influence one another's rounding, so that an interrupted
    #: batch must be run again whole to give the same bytes. False for APIs, folders, drawings.
    batch_matters: bool

    def identity(self) -> dict[str, Any]:
        """Everything that decides an image besides prompt and seed, as plain JSON data.

        Must be cheap and must not load weights. Two entries with equal identities share images.
        """
        ...

    def check_prompts(self, prompts: Sequence[str]) -> list[PromptProblem]:
        """Problems that can be known before any image is made."""
        ...

    def generate(self, requests: Sequence[Request]) -> Iterator[tuple[Request, Outcome]]:
        """Yield one outcome per request, in any order, as soon as each is known.

        Raises `BatchTooLarge` when memory ran out and fewer requests at a time might fit.
        """
        ...

    def facts(self) -> dict[str, Any]:
        """Machine facts for the manifest (device, dtype, threads, versions); never compared."""
        ...

    def close(self) -> None:
        """Release weights and connections."""
        ...


class BatchTooLarge(Exception):
    """Memory ran out; the engine halves the batch and tries the same requests again."""
