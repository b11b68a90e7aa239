"""Identities together: the paper's "thrice as likely", and comparisons between regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from tropescope.statistics.clusters import t_interval
from tropescope.statistics.estimate import Estimate
from tropescope.statistics.ratios import log_ratio_interval

VERSION = 1


@dataclass(frozen=True, slots=True)
class Pooled:
    """Ratio of the mean likelihoods over identities, and the mean of the defined θ beside it."""

    ratio: Estimate
    stereo: float | None
    random: float | None
    mean_theta: float | None
    median_theta: float | None
    undefined: int


def pooled_tendency(
    likelihoods: Sequence[tuple[float | None, float | None]], *, level: float = 0.95
) -> Pooled:
    """mean L(stereo) / mean L(random) over identities, identities as clusters.

    The mean of θ itself would be ruled by the few identities whose L(random) is almost 0.
    """
    pairs = np.array([(s, r) for s, r in likelihoods if s is not None and r is not None])
    if not len(pairs) or not pairs[:, 1].sum() > 0:
        estimate = _estimate("pooled_tendency", None, None, None, level, len(pairs))
        return Pooled(estimate, None, None, None, None, len(pairs))
    stereo, random = pairs[:, 0], pairs[:, 1]
    means = float(stereo.mean()), float(random.mean())
    interval = None
    if means[0] > 0:
        pulls = ((stereo - means[0]) / len(pairs), (random - means[1]) / len(pairs))
        interval = log_ratio_interval(*means, influences=pulls, level=level)
    thetas = stereo[random > 0] / random[random > 0]
    return Pooled(
        _estimate(
            "pooled_tendency",
            means[0] / means[1],
            interval.low if interval else None,
            interval.high if interval else None,
            level,
            len(pairs),
        ),
        means[0],
        means[1],
        float(thetas.mean()),
        float(np.median(thetas)),
        int((random <= 0).sum()),
    )


def group_mean(
    values: Sequence[float], *, name: str, level: float = 0.95, least: float = 0.0
) -> Estimate:
    """Mean over identities of a group with a t interval over them; no value is below `least`."""
    array = np.asarray(values, dtype=np.float64)
    if not len(array):
        return _estimate(name, None, None, None, level, 0)
    mean = float(array.mean())
    if len(array) == 1:
        return _estimate(name, mean, None, None, level, 1)
    interval = t_interval(mean, float(array.var(ddof=1)) / len(array), len(array), level)
    assert interval is not None
    return _estimate(name, mean, max(interval.low, least), interval.high, level, len(array))


def group_difference(
    first: Sequence[float], second: Sequence[float], *, name: str, level: float = 0.95
) -> Estimate:
    """Difference of two groups' means over identities (Welch)."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if len(a) < 2 or len(b) < 2:
        return _estimate(name, None, None, None, level, len(a) + len(b))
    test = stats.ttest_ind(a, b, equal_var=False)
    interval = test.confidence_interval(level)
    value = float(a.mean() - b.mean())
    return _estimate(name, value, float(interval.low), float(interval.high), level, len(a) + len(b))


def _estimate(
    name: str,
    value: float | None,
    low: float | None,
    high: float | None,
    level: float,
    n: int,
) -> Estimate:
    return Estimate(
        measure=name,
        version=VERSION,
        value=value,
        low=low,
        high=high,
        level=level,
        n=n,
        n_missing=0,
        estimand="identities sampled",
        method="t over identities" if value is not None else "not defined",
    )
