"""How far paired prompts drift apart at each step (Stable Diffusion Exposed, §4, denoising space).

A triplet's prompts (neutral, feminine, masculine) start from the same noise, so their latents are
equal before the first step; how fast they part, and which of the two stays nearer to the neutral
one, is read from the cosine of their latents after every step. Higher means more alike. The paper
looks at the last latent z0 and, in figures, along the path; its claim is about the *difference
within a triplet*, so that is what gets a band, with triplets as units.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import MeasureError
from tropescope.statistics.bands import Band, max_t_band

VERSION = 1
FloatArray = NDArray[np.float64]


def path_similarity(one: NDArray[np.floating], other: NDArray[np.floating]) -> FloatArray:
    """Cosine of two latents at every step: (pairs, steps); NaN where a latent is zero.

    Inputs are pairs × steps × latent, of paired prompts from the same seeds.

    >>> path_similarity(np.ones((1, 2, 3)), np.ones((1, 2, 3)) * 2).round(6).tolist()
    [[1.0, 1.0]]
    """
    if one.shape != other.shape or one.ndim < 3:
        raise MeasureError(
            f"paths must be given as pairs × steps × latent: {one.shape} and {other.shape}"
        )
    a = one.reshape(*one.shape[:2], -1).astype(np.float64)
    b = other.reshape(*other.shape[:2], -1).astype(np.float64)
    lengths = np.sqrt((a * a).sum(axis=2)) * np.sqrt((b * b).sum(axis=2))
    found = np.full(lengths.shape, np.nan)
    np.divide((a * b).sum(axis=2), lengths, out=found, where=lengths > 0)
    return found


def disparity_path(
    to_feminine: NDArray[np.floating],
    to_masculine: NDArray[np.floating],
    triplet: NDArray[np.integer],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Band:
    """Similarity to the feminine prompt minus similarity to the masculine one, step by step.

    Below zero: the neutral prompt's image is nearer to the masculine one. `triplet` names the
    triplet of each row (images × steps); the seeds of a triplet are averaged first.
    """
    one = np.asarray(to_feminine, dtype=np.float64)
    other = np.asarray(to_masculine, dtype=np.float64)
    if one.shape != other.shape or one.ndim != 2 or triplet.shape != (len(one),):
        raise MeasureError("similarities must be images × steps, with one triplet name per image")
    if len(one) == 0:
        raise MeasureError("no triplet, so there is no disparity")
    names, members = np.unique(triplet, return_inverse=True)
    gaps = one - other
    means = np.stack([gaps[members == i].mean(axis=0) for i in range(len(names))])
    return max_t_band(means, level=level, resamples=resamples, seed=seed)
