"""A band for a whole curve: it holds at all points at once, not at each one alone.

A pointwise 95 % interval at 16 steps misses somewhere in far more than 5 % of the curves. The band
here is mean ± c·standard error, with c the quantile of the largest studentised deviation over all
points in resamples of the units (max-t bootstrap). The units, here images or triplets, are drawn
whole, so the correlation between points is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import MeasureError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Band:
    """Mean curve and its simultaneous band; NaN at points where fewer than two units are defined.

    `n` counts the units that are defined at each point. `critical` is c, infinite where there are
    too few units for the level; the band is then unbounded.
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    n: NDArray[np.int64]
    level: float
    critical: float


def max_t_band(
    curves: FloatArray, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Band:
    """The band of the mean of `curves` (units × points; NaN where a unit is not defined).

    Each resample has its own random stream, named by seed and number: the result is the same to
    the bit however the work is divided.

    >>> band = max_t_band(np.array([[0.1, 0.2], [0.3, 0.1], [0.2, 0.4], [0.0, 0.3]]), seed=1)
    >>> bool((band.low < band.mean).all() and (band.mean < band.high).all())
    True
    """
    curves = np.asarray(curves, dtype=np.float64)
    if curves.ndim != 2 or curves.shape[1] == 0:
        raise MeasureError("a band needs curves as units × points")
    if not 0 < level < 1:
        raise MeasureError(f"a level must lie between 0 and 1, not {level}")
    if len(curves) == 0:
        raise MeasureError("a band needs at least one curve")
    mean, error, n = _mean_and_error(curves)
    low, high = np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    critical = float("inf")
    if np.isfinite(error).any():
        largest = largest_deviations(curves, range(resamples), seed)
        critical = float(np.quantile(largest, level, method="higher"))
        reach = np.where(error > 0, critical, 0.0) * np.where(error > 0, error, 1.0)
        known = np.isfinite(error)
        low[known], high[known] = (mean - reach)[known], (mean + reach)[known]
    return Band(mean, low, high, n, level, critical)


def largest_deviations(curves: FloatArray, resamples: range, seed: int) -> FloatArray:
    """max over points of |mean* − mean| / standard error* for the numbered resamples.

    A resample without spread at a point where the data have some counts as infinitely far: with
    very few units that is common, and the band says so by being unbounded.
    """
    mean, error, _ = _mean_and_error(curves)
    varies = np.isfinite(error) & (error > 0)
    if not varies.any():
        return np.zeros(len(resamples))
    curves, mean = curves[:, varies], mean[varies]
    found = np.empty(len(resamples))
    for i, number in enumerate(resamples):
        stream = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, number]))
        drawn = stream.integers(0, len(curves), len(curves))
        again, spread, _ = _mean_and_error(curves[drawn])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(again - mean) / spread
        found[i] = np.where(np.isfinite(ratio), ratio, np.inf).max()
    return found


def _mean_and_error(curves: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
    """Mean and standard error at each point over the units that are defined there."""
    defined = np.isfinite(curves)
    n = defined.sum(axis=0)
    values = np.where(defined, curves, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = values.sum(axis=0) / n
        centred = np.where(defined, curves - mean, 0.0)
        error = np.sqrt((centred**2).sum(axis=0) / (n - 1) / n)
    mean[n == 0] = np.nan
    error[n < 2] = np.nan
    return mean, error, n
