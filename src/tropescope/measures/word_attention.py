"""Where a word of the prompt acts in the image (Stable Diffusion Exposed, §6 and appendix; DAAM).

While the image is made, every pixel distributes its attention over the words of the prompt. The map
of a word is the mean over heads, layers, steps and the word's tokens, scaled per word so that its
lowest value is 0 and its highest 1; its mask is where that exceeds .35 (the paper's θ). An object
is *guided* by a word where enough of its region lies inside the mask (Definition 6.2):
|m_o ∩ a| / |m_o| > σ.

The scaling makes every word reach 1 somewhere, however little attention it gets at all, so a mask
exists even for words that act nowhere: read masks beside the size of the attention, and compare
with the masks of other words. `beats_other_words` does that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tropescope.errors import MeasureError
from tropescope.statistics.estimate import Estimate, not_defined
from tropescope.statistics.intervals import clopper_pearson

VERSION = 1
THRESHOLD = 0.35
FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]


def normalised(attention: NDArray[np.floating]) -> FloatArray:
    """Min–max scaled to [0, 1]; NaN everywhere, not defined, for a flat map.

    >>> normalised(np.array([[1.0, 3.0], [2.0, 1.0]])).tolist()
    [[0.0, 1.0], [0.5, 0.0]]
    """
    values = np.asarray(attention, dtype=np.float64)
    if values.ndim != 2 or values.size == 0:
        raise MeasureError("an attention map must have rows and columns")
    if not np.isfinite(values).all():
        raise MeasureError("an attention map must not contain NaN or infinity")
    low, high = values.min(), values.max()
    if not high > low:
        return np.full_like(values, np.nan)
    return np.asarray((values - low) / (high - low))


def word_mask(attention: NDArray[np.floating], threshold: float = THRESHOLD) -> Mask:
    """Where the scaled map exceeds the threshold; a flat map has no mask and is an error."""
    if not 0 <= threshold < 1:
        raise MeasureError(f"a threshold must lie in [0, 1), not {threshold}")
    scaled = normalised(attention)
    if np.isnan(scaled).any():
        raise MeasureError("the attention is the same everywhere, so the word has no mask")
    return np.asarray(scaled > threshold)


def coverage(region: Mask, mask: Mask) -> float:
    """|m_o ∩ a| / |m_o|: the share of an object's region inside a word's mask (Definition 6.2)."""
    _same_shape(region, mask)
    if not region.any():
        raise MeasureError("an object without a region cannot be covered")
    return float((region & mask).sum() / region.sum())


def overlap(region: Mask, mask: Mask) -> float:
    """Intersection over union; not defined when both are empty."""
    _same_shape(region, mask)
    union = (region | mask).sum()
    if union == 0:
        raise MeasureError("two empty masks have no overlap")
    return float((region & mask).sum() / union)


def points_at(attention: NDArray[np.floating], region: Mask) -> bool:
    """Whether the map is highest inside the region (the pointing game); a tie must lie inside."""
    _same_shape(np.asarray(attention), region)
    return bool(region[attention == attention.max()].all())


def mean_overlap(overlaps: Sequence[float], *, n_missing: int = 0, level: float = 0.95) -> Estimate:
    """Mean intersection over union over images, with Student's t interval."""
    return _mean("word_overlap", overlaps, n_missing, level, (0.0, 1.0))


def pointing_accuracy(hits: Sequence[bool], *, n_missing: int = 0, level: float = 0.95) -> Estimate:
    """Share of images whose map is highest inside the region, with the exact binomial interval."""
    n = len(hits)
    if n == 0:
        return _not_defined("word_pointing", n_missing, level)
    interval = clopper_pearson(float(sum(hits)), float(n), level)
    return Estimate(
        measure="word_pointing",
        version=VERSION,
        value=sum(hits) / n,
        low=interval.low,
        high=interval.high,
        level=level,
        n=n,
        n_missing=n_missing,
        estimand="fixed",
        method="mean; Clopper–Pearson",
    )


def beats_other_words(
    own: Sequence[float],
    others: Sequence[Sequence[float]],
    *,
    n_missing: int = 0,
    level: float = 0.95,
) -> Estimate:
    """By how much a word's own score exceeds the mean score of the image's other words.

    Paired within the image: `own[i]` is the score (overlap, hit) of the object's word,
    `others[i]` those of the other words against the same region. Above 0: the map knows the word,
    not just the middle of the picture. Images without another word are left out and counted.
    """
    if len(own) != len(others):
        raise MeasureError("own and other scores must be of the same images")
    differences = [o - float(np.mean(rest)) for o, rest in zip(own, others, strict=True) if rest]
    missing = n_missing + len(own) - len(differences)
    return _mean("word_overlap_gain", differences, missing, level, (-1.0, 1.0))


def _mean(
    measure: str,
    values: Sequence[float],
    n_missing: int,
    level: float,
    limits: tuple[float, float],
) -> Estimate:
    array = np.asarray(values, dtype=np.float64)
    if len(array) == 0:
        return _not_defined(measure, n_missing, level)
    low, high = limits
    notes: tuple[str, ...] = ("one image has no measurable spread",)
    if len(array) > 1:
        error = float(array.std(ddof=1)) / len(array) ** 0.5
        reach = error * float(stats.t.isf((1 - level) / 2, len(array) - 1))
        mean = float(array.mean())
        low, high = max(limits[0], mean - reach), min(limits[1], mean + reach)
        notes = () if error > 0 else ("all images score the same; the interval has no width",)
    return Estimate(
        measure=measure,
        version=VERSION,
        value=float(array.mean()),
        low=low,
        high=high,
        level=level,
        n=len(array),
        n_missing=n_missing,
        estimand="fixed",
        method="mean; t over images",
        notes=notes,
    )


def _not_defined(measure: str, n_missing: int, level: float) -> Estimate:
    why = "no usable image, so the score is not defined"
    return not_defined(
        measure, VERSION, why=why, level=level, n_missing=n_missing, estimand="fixed"
    )


def _same_shape(one: NDArray[np.generic], other: NDArray[np.generic]) -> None:
    if one.shape != other.shape:
        raise MeasureError(f"maps of different sizes: {one.shape} and {other.shape}")
