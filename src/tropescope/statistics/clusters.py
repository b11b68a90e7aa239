"""Uncertainty of means whose observations come in clusters (images, seeds, attributes).

Every mean here is described by its *influences*: how far each cluster pulls it, summing to zero.
The variance of the mean is then the sum of squared influences, corrected for the number of
clusters, whatever happens inside a cluster: several raters, several attributes, several captions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from tropescope.errors import MeasureError
from tropescope.statistics.intervals import FloatArray, Interval


def cluster_variance(influences: FloatArray) -> float:
    """G/(G−1) · Σ u²; infinite for one cluster, from which nothing can be learnt about spread."""
    clusters = len(influences)
    if clusters < 2:
        return float("inf")
    return float(clusters / (clusters - 1) * np.sum(np.square(influences)))


def t_interval(value: float, variance: float, clusters: int, level: float) -> Interval | None:
    """Student's t on G−1 degrees of freedom; None where one cluster says nothing about spread."""
    if clusters < 2 or not np.isfinite(variance):
        return None
    reach = float(stats.t.isf((1 - level) / 2, clusters - 1)) * float(np.sqrt(variance))
    return Interval(value - reach, value + reach, level)


def clustered_rates(
    rates: ArrayLike,
    variances: ArrayLike,
    *,
    clusters: ArrayLike,
    observations: ArrayLike,
    distinct: ArrayLike,
    level: float,
) -> tuple[FloatArray, FloatArray]:
    """Intervals of many rates at once (Korn & Graubard 1998): lower and upper ends.

    Clopper–Pearson at the effective size p(1−p)/variance, at most the number of observations, with
    Student's t on G−1 degrees of freedom. Where nothing (or everything) was marked the variance
    is 0 and says nothing; the size then is the number of `distinct` observations, such as
    pictures and attributes without counting raters again. No interval has zero width.
    """
    if not 0 < level < 1:
        raise MeasureError(f"a level of {level} is not between 0 and 1")
    p, variance, groups, every, different = (
        np.asarray(a, dtype=np.float64)
        for a in np.broadcast_arrays(rates, variances, clusters, observations, distinct)
    )
    tail = (1 - level) / 2
    several = groups > 1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        spread = (variance > 0) & (p > 0) & (p < 1)
        most = np.where(spread, every, different)
        effective = np.where(spread, np.minimum(p * (1 - p) / variance, most), most)
        wider = stats.t.isf(tail, np.maximum(most - 1, 1)) / stats.t.isf(
            tail, np.where(several, groups - 1, 1)
        )
        effective = np.where(several, effective * np.minimum(wider, 1.0) ** 2, 1.0)
        hits = p * effective
        misses = effective - hits
        low = np.where(hits > 0, special.betaincinv(hits, misses + 1, tail), 0.0)
        high = np.where(misses > 0, special.betainccinv(hits + 1, misses, tail), 1.0)
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
