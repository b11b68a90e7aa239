"""Clustered rates, ratios and differences: symmetric, never zero-width, and they cover."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tropescope.errors import MeasureError
from tropescope.statistics.clusters import cluster_variance, clustered_rates, t_interval
from tropescope.statistics.intervals import clopper_pearson
from tropescope.statistics.ratios import (
    clearly_above_zero,
    difference_interval,
    difference_p_value,
    log_ratio_interval,
)

means = st.floats(0.01, 0.99)
pulls = st.lists(st.floats(-0.05, 0.05), min_size=3, max_size=20)


def _centred(values: list[float]) -> np.ndarray:
    return np.asarray(values) - np.mean(values)


@given(means, means, pulls, st.floats(0.5, 0.99))
def test_the_ratio_turned_over_has_the_interval_turned_over(
    a: float, b: float, values: list[float], level: float
) -> None:
    u, v = _centred(values), _centred(values[::-1])
    one = log_ratio_interval(a, b, influences=(u, v), level=level)
    other = log_ratio_interval(b, a, influences=(v, u), level=level)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one.low * other.high == pytest.approx(1, rel=1e-9)
        assert one.high * other.low == pytest.approx(1, rel=1e-9)
        assert one.low <= a / b * (1 + 1e-9)
        assert a / b <= one.high * (1 + 1e-9)


def test_the_difference_is_the_paired_t_test() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random(15), rng.random(15) * 0.5
    influences = ((x - x.mean()) / 15, (y - y.mean()) / 15)
    ours = difference_interval(x.mean(), y.mean(), influences=influences, level=0.9)
    expected = stats.ttest_rel(x, y)
    interval = expected.confidence_interval(0.9)
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((interval.low, interval.high))
    p = difference_p_value(x.mean() - y.mean(), influences=influences)
    assert p == pytest.approx(stats.ttest_rel(x, y, alternative="greater").pvalue)


@given(st.integers(1, 60), st.data(), st.floats(0.6, 0.99))
def test_without_clustering_the_rate_is_clopper_pearson(
    n: int, data: st.DataObject, level: float
) -> None:
    """Where every observation is its own cluster at the ends, the exact binomial comes out."""
    k = data.draw(st.sampled_from([0, n]))
    low, high = clustered_rates(k / n, 0.0, clusters=n, observations=n, distinct=n, level=level)
    exact = clopper_pearson(k, n, level)
    if n > 1:
        assert (float(low), float(high)) == pytest.approx((exact.low, exact.high), abs=1e-9)


@given(st.floats(0, 1), st.floats(0, 0.2), st.integers(1, 30), st.integers(1, 5))
def test_no_rate_has_a_zero_width_interval(
    rate: float, variance: float, clusters: int, per: int
) -> None:
    low, high = clustered_rates(
        rate,
        variance,
        clusters=clusters,
        observations=clusters * per,
        distinct=clusters,
        level=0.95,
    )
    assert 0 <= low <= rate + 1e-9
    assert rate - 1e-9 <= high <= 1
    assert high - low > 1e-6


def test_levels_are_nested() -> None:
    ends = [
        clustered_rates(0.2, 0.004, clusters=15, observations=90, distinct=30, level=level)
        for level in (0.5, 0.8, 0.95, 0.99)
    ]
    lows, highs = [float(e[0]) for e in ends], [float(e[1]) for e in ends]
    assert lows == sorted(lows, reverse=True)
    assert highs == sorted(highs)


def test_one_cluster_has_no_spread() -> None:
    one = np.zeros(1)
    assert cluster_variance(one) == float("inf")
    assert t_interval(0.5, float("inf"), 1, 0.95) is None
    assert difference_interval(0.5, 0.2, influences=(one, one), level=0.95) is None
    assert difference_p_value(0.3, influences=(one, one)) is None
    assert not clearly_above_zero(0.5, one, 0.95)


def test_a_ratio_over_nothing_is_refused() -> None:
    with pytest.raises(MeasureError, match="above 0"):
        log_ratio_interval(0.3, 0.0, influences=(np.zeros(3), np.zeros(3)), level=0.95)
    with pytest.raises(MeasureError, match="same clusters"):
        log_ratio_interval(0.3, 0.1, influences=(np.zeros(3), np.zeros(4)), level=0.95)
    with pytest.raises(MeasureError, match="level"):
        clustered_rates(0.5, 0.1, clusters=3, observations=3, distinct=3, level=1.5)
