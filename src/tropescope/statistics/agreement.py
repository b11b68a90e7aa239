"""How far raters agree beyond chance: Krippendorff's α with an interval.

α = 1 − D_o/D_e (Krippendorff 2019, ch. 12): the disagreement observed between ratings of the same
unit over the disagreement expected if ratings were handed out at random. 1 is perfect agreement, 0
is chance, below 0 is worse than chance. Any number of raters per unit, gaps allowed; a unit rated
once has nobody to agree with and is counted as missing.

Rare marks make chance agreement large, so a low α and a high share of equal answers go together;
`observed_agreement` gives the share. The interval is the jackknife over clusters (images), because
units of one image share the image and often the raters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tropescope.errors import MeasureError
from tropescope.statistics.estimate import Estimate
from tropescope.statistics.intervals import FloatArray

VERSION = 1

Metric = Literal["nominal", "ordinal", "interval"]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Agreement:
    """α and the plain share of equal pairs of ratings."""

    alpha: Estimate
    observed: float | None


def krippendorff_alpha(
    unit: IntArray,
    value: IntArray,
    *,
    cluster: IntArray | None = None,
    metric: Metric = "nominal",
    level: float = 0.95,
) -> Agreement:
    """α of ratings: rating i gives `value[i]` (0, 1, 2, …, in order) to `unit[i]`.

    `cluster[i]` is what the unit belongs to; without it every unit is its own cluster.

    >>> import numpy as np
    >>> unit = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    >>> result = krippendorff_alpha(unit, np.array([0, 0, 1, 1, 0, 0, 1, 0]))
    >>> round(result.alpha.value, 3), result.observed
    (0.533, 0.75)
    """
    groups = unit if cluster is None else cluster
    if not unit.shape == value.shape == groups.shape or unit.ndim != 1:
        raise MeasureError("unit, value and cluster must be three lists of the same length")
    if len(value) and value.min() < 0:
        raise MeasureError("ratings must be numbered 0, 1, 2, …")
    counts, of_cluster = _value_counts(unit, value, groups)
    size = counts.sum(axis=1)
    pairable = size >= 2
    lost = int((~pairable).sum())
    counts, of_cluster, size = counts[pairable], of_cluster[pairable], size[pairable]
    clusters, number = np.unique(of_cluster, return_inverse=True)
    coincidences = _coincidences(counts, size, number, len(clusters))
    total = coincidences.sum(axis=0)
    alpha = _alpha(total[None], metric)[0] if len(clusters) else float("nan")
    defined = bool(np.isfinite(alpha))
    low, high = _jackknife(coincidences, total, float(alpha), metric, level)
    notes = [] if defined else ["all ratings are equal, so agreement beyond chance is not defined"]
    if lost:
        notes.append(f"{lost:,} of {lost + len(size):,} units have one rating and cannot agree")
    observed = float(np.trace(total) / total.sum()) if len(clusters) else None
    estimate = Estimate(
        measure="krippendorff_alpha",
        version=VERSION,
        value=float(alpha) if defined else None,
        low=low,
        high=high,
        level=level,
        n=int(size.sum()),
        n_missing=lost,
        estimand="clusters",
        method=f"Krippendorff's α, {metric}; jackknife t over {len(clusters):,} clusters",
        notes=tuple(notes),
    )
    return Agreement(estimate, observed)


def _value_counts(
    unit: IntArray, value: IntArray, cluster: IntArray
) -> tuple[FloatArray, IntArray]:
    """How often each unit got each value, and each unit's cluster."""
    if not len(unit):
        return np.zeros((0, 1)), np.zeros(0, dtype=np.int64)
    _, first, number = np.unique(unit, return_index=True, return_inverse=True)
    values = int(value.max()) + 1
    flat = np.bincount(number * values + value, minlength=len(first) * values)
    return flat.reshape(len(first), values).astype(np.float64), cluster[first]


def _coincidences(
    counts: FloatArray, size: FloatArray, cluster: IntArray, clusters: int
) -> FloatArray:
    """Ordered pairs of ratings within units, each unit weighing its number of ratings."""
    weight = 1 / (size - 1)
    values = counts.shape[1]
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, range(values), range(values)] -= counts
    result = np.zeros((clusters, values, values))
    np.add.at(result, cluster, pairs * weight[:, None, None])
    return result


def _alpha(coincidences: FloatArray, metric: Metric) -> FloatArray:
    """α for a stack of coincidence matrices."""
    marginal = coincidences.sum(axis=2)
    n = marginal.sum(axis=1)
    distance = _distances(marginal, metric)
    observed = (coincidences * distance).sum(axis=(1, 2))
    expected = (marginal[:, :, None] * marginal[:, None, :] * distance).sum(axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1 - (n - 1) * observed / np.where(expected > 0, expected, np.nan))


def _distances(marginal: FloatArray, metric: Metric) -> FloatArray:
    """Squared distance of every two values, for each matrix of the stack."""
    values = marginal.shape[1]
    if metric == "nominal":
        plain = 1.0 - np.eye(values)
    elif metric == "interval":
        plain = np.subtract.outer(np.arange(values), np.arange(values)).astype(np.float64) ** 2
    else:
        middle = np.cumsum(marginal, axis=1) - marginal / 2
        return np.asarray((middle[:, :, None] - middle[:, None, :]) ** 2)
    return np.broadcast_to(plain, (len(marginal), values, values))


def _jackknife(
    coincidences: FloatArray, total: FloatArray, alpha: float, metric: Metric, level: float
) -> tuple[float | None, float | None]:
    clusters = len(coincidences)
    if clusters < 2 or not np.isfinite(alpha):
        return None, None
    left_out = _alpha(total[None] - coincidences, metric)
    if not np.isfinite(left_out).all():
        return None, None
    spread = np.sqrt((clusters - 1) / clusters * np.sum((left_out - left_out.mean()) ** 2))
    reach = float(stats.t.isf((1 - level) / 2, clusters - 1) * spread)
    return max(alpha - reach, -1.0), min(alpha + reach, 1.0)
