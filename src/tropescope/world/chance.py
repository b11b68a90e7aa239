"""Random numbers with random access: a number is a function of seed, stream and its place.

Nothing is drawn in sequence, so image 7 is the same whether or not image 6 was made, and two
prompts with the same seed use the same number for the same slot: pairs by seed are truly paired.
The mixing function is splitmix64; it is a few integer operations, the same in numpy and torch.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

#: One random number per decision. Their order must never change: it decides every picture.
DECISIONS = (
    "who",
    "headwear",
    "hair",
    "hair_colour",
    "facial_hair",
    "eyewear",
    "clothing",
    "skin",
    "expression",
    "freckles",
    "brooch",
    "left",
    "right",
    "freckles_look",
    "brooch_look",
    "background",
    "headwear_colour",
    "clothing_colour",
    "hair_shade",
    "skin_shade",
    "hair_variant",
    "facial_hair_variant",
    "eyewear_variant",
    "clothing_variant",
    "misbehaviour",
)

STEP = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB


def _mixed(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        value = (value ^ (value >> np.uint64(30))) * np.uint64(FIRST)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(SECOND)
    return value ^ (value >> np.uint64(31))


def stream_of(text: str) -> int:
    """A stable 63-bit number for a name; streams of different names are unrelated."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def uniforms(seeds: NDArray[np.int64], stream: int) -> NDArray[np.float64]:
    """[seed, decision]: numbers in [0, 1) for every decision of every seed."""
    with np.errstate(over="ignore"):
        start = _mixed(seeds.astype(np.uint64) * np.uint64(STEP) + np.uint64(stream))
        places = (np.arange(len(DECISIONS), dtype=np.uint64) + np.uint64(1)) * np.uint64(STEP)
        mixed = _mixed(start[:, None] + places[None, :])
    numbers: NDArray[np.float64] = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers
