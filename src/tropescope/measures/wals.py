"""How much images vary along an attribute, as a share of how they vary at all (OASIS, eq. 7).

WALS(A) = Σᵢ σᵢ |δA·uᵢ| / Σⱼ σⱼ over the k leading singular pairs of the mean-centred image
features, uᵢ on the feature side, δA of unit length. Higher is meant to say that more of the spread
lies along the attribute.

Where we depart from the paper. As printed, without |·|, the value depends on the arbitrary signs of
the singular vectors. Where singular values tie, the vectors themselves are arbitrary; the `squared`
form Σ σᵢ² (δA·uᵢ)² / Σ σⱼ² (the share of variance along δA) does not depend on them. It also has
the right order: with absolute values, a direction that is exactly the leading singular vector
scores σ₁/Σσ, *less* than a random direction that touches every vector a little. Compare values of
the absolute form between models, never with another direction, and look at the null.

WALS is free of scale and *rises* when a generator collapses to a few pictures. It must therefore be
read together with the variance along δA, the variance within the classes and the effective number
of distinct images, which `variety` gives, and with its null: the value for a random direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tropescope.errors import MeasureError
from tropescope.measures.direction import unit
from tropescope.measures.spread import Moments, Spread
from tropescope.statistics.estimate import Estimate, not_defined

VERSION = 1
FloatArray = NDArray[np.float64]

#: Random directions for the null, and their seed: the same input gives the same null.
NULL_DRAWS, NULL_SEED = 2000, 20_240


@dataclass(frozen=True, slots=True)
class Wals:
    """WALS, what a random direction would give, and how unusual the value is among those."""

    score: Estimate
    null_mean: float | None
    null_high: float | None
    """The 95 % point of random directions."""
    p_value: float | None


def _singular(moments: Moments, k: int | None) -> tuple[FloatArray, FloatArray]:
    """Singular values of the centred features and their feature-side vectors, leading first."""
    values, vectors = np.linalg.eigh(moments.scatter())
    order = np.argsort(values)[::-1][:k]
    return np.sqrt(np.maximum(values[order], 0.0)), vectors[:, order]


def wals_value(
    moments: Moments, direction: FloatArray, *, k: int | None = None, squared: bool = False
) -> float:
    """Eq. 7 for known sums; not a number where the images do not vary at all."""
    sigma, vectors = _singular(moments, k)
    return float(_weighted(sigma, np.abs(vectors.T @ direction)[:, None], squared=squared)[0])


def _weighted(sigma: FloatArray, alignment: FloatArray, *, squared: bool) -> FloatArray:
    """Weighted mean of alignments (one column per direction)."""
    weights = sigma**2 if squared else sigma
    total = float(weights.sum())
    if total < 1e-12:
        return np.full(alignment.shape[1], np.nan)
    return np.asarray(weights @ (alignment**2 if squared else alignment) / total)


def wals(
    spread: Spread,
    direction: NDArray[np.floating],
    *,
    k: int | None = None,
    squared: bool = False,
    level: float = 0.95,
    n_missing: int = 0,
) -> Wals:
    """WALS with a jackknife interval and its null.

    `k` limits the singular pairs; by default all count. The interval leaves out one group of
    images at a time and is a t interval on the logit of the value.
    """
    if spread.n < 3:
        nothing = not_defined(
            "wals",
            VERSION,
            why="WALS needs at least three images",
            level=level,
            n_missing=n_missing,
            estimand="fixed",
        )
        return Wals(nothing, None, None, None)
    whole = spread.moments()
    along = unit(direction, what="δA")
    if along.shape != whole.total.shape:
        raise MeasureError(
            f"δA has {len(along)} dimensions and the features have {len(whole.total)}",
            fix="take texts and images from the same encoder",
        )
    sigma, vectors = _singular(whole, k)
    value = float(_weighted(sigma, np.abs(vectors.T @ along)[:, None], squared=squared)[0])
    if not np.isfinite(value):
        nothing = not_defined(
            "wals",
            VERSION,
            why="all images have the same features, so nothing varies",
            level=level,
            n_missing=n_missing,
            estimand="fixed",
        )
        return Wals(nothing, None, None, None)
    low, high = _jackknife_interval(spread, whole, along, value, k=k, squared=squared, level=level)
    null = _null(sigma, vectors, squared=squared)
    score = Estimate(
        measure="wals",
        version=VERSION,
        value=value,
        low=low,
        high=high,
        level=level,
        n=spread.n,
        n_missing=n_missing,
        estimand="fixed",
        method=f"{'squared' if squared else 'absolute'} alignment; grouped jackknife on the logit",
    )
    p = (1 + float((null >= value).sum())) / (1 + len(null))
    return Wals(score, float(null.mean()), float(np.quantile(null, 0.95)), p)


def _jackknife_interval(
    spread: Spread,
    whole: Moments,
    along: FloatArray,
    value: float,
    *,
    k: int | None,
    squared: bool,
    level: float,
) -> tuple[float, float]:
    groups = spread.groups()
    left_out = np.array(
        [
            wals_value(whole - group, along, k=k, squared=squared)
            for group in groups
            if whole.n - group.n >= 2
        ]
    )
    left_out = left_out[np.isfinite(left_out)]
    count = len(left_out)
    if count < 2:
        return 0.0, 1.0
    tiny = 1e-9
    logits = np.log(np.clip(left_out, tiny, 1 - tiny) / (1 - np.clip(left_out, tiny, 1 - tiny)))
    centre = float(np.log(max(value, tiny) / max(1 - value, tiny)))
    error = float(np.sqrt((count - 1) / count * ((logits - logits.mean()) ** 2).sum()))
    reach = error * float(stats.t.isf((1 - level) / 2, count - 1))
    return float(1 / (1 + np.exp(reach - centre))), float(1 / (1 + np.exp(-reach - centre)))


def _null(sigma: FloatArray, vectors: FloatArray, *, squared: bool) -> FloatArray:
    """WALS of random unit directions: a random direction has random alignments to any basis."""
    rng = np.random.default_rng(NULL_SEED)
    dimensions, kept = vectors.shape
    draws = rng.standard_normal((dimensions, NULL_DRAWS))
    draws /= np.linalg.norm(draws, axis=0)
    return _weighted(sigma, np.abs(draws[:kept]), squared=squared)


@dataclass(frozen=True, slots=True)
class Variety:
    """What must stand beside WALS, because WALS alone rewards a collapsed generator."""

    n: int
    variance_along: float
    """Variance of the images along δA."""
    variance_total: float
    variance_within: float | None
    """Total variance within the classes present / absent; None where only one class exists."""
    distinct: float
    """Effective number of distinct images (Vendi score): n for n unrelated, 1 for n equal ones."""


def variety(
    spread: Spread,
    direction: NDArray[np.floating],
    *,
    present: Spread | None = None,
    absent: Spread | None = None,
) -> Variety:
    """Variances along, in all and within classes, and the effective number of images.

    The Vendi score exp(−Σ λ ln λ) uses the eigenvalues of the images' similarity matrix divided by
    n; for unit features these are the eigenvalues of the d × d matrix Σ z zᵀ / n.
    """
    whole = spread.moments()
    along = unit(direction, what="δA")
    degrees = max(whole.n - 1, 1)
    scatter = whole.scatter()
    within = None
    classes = [c for c in (present, absent) if c is not None and c.n > 0]
    if len(classes) == 2:
        inner = sum(float(np.trace(c.moments().scatter())) for c in classes)
        within = inner / max(whole.n - 2, 1)
    return Variety(
        n=whole.n,
        variance_along=float(along @ scatter @ along) / degrees,
        variance_total=float(np.trace(scatter)) / degrees,
        variance_within=within,
        distinct=effective_number(whole),
    )


def effective_number(moments: Moments) -> float:
    """The Vendi score (Friedman & Dieng 2023) of unit features."""
    values = np.linalg.eigvalsh(moments.products)
    shares = np.maximum(values, 0) / max(float(values.sum()), 1e-300)
    shares = shares[shares > 1e-15]
    return float(np.exp(-(shares * np.log(shares)).sum()))
