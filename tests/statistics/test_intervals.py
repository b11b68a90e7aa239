"""Intervals against independent references and against simulated truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from tropescope.errors import MeasureError
from tropescope.statistics.intervals import (
    Interval,
    clopper_pearson,
    difference_to_reference,
    fixed_prompts_interval,
    one_sided_p,
    sampled_prompts_interval,
)
from tropescope.statistics.multiplicity import benjamini_hochberg


@given(st.integers(1, 500), st.data(), st.floats(0.55, 0.999))
def test_clopper_pearson_equals_statsmodels(n: int, data: st.DataObject, level: float) -> None:
    k = data.draw(st.integers(0, n))
    expected = proportion_confint(k, n, alpha=1 - level, method="beta")
    ours = clopper_pearson(k, n, level)
    assert (ours.low, ours.high) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("k", "n"), [(1, 0), (-1, 5), (6, 5)])
def test_impossible_counts_are_refused(k: int, n: int) -> None:
    with pytest.raises(MeasureError):
        clopper_pearson(k, n, 0.95)


def test_fixed_prompts_with_equal_sizes_is_the_pooled_exact_interval() -> None:
    rates, sizes = np.array([0.2, 0.8, 0.5]), np.array([10.0, 10.0, 10.0])
    ours, pooled = fixed_prompts_interval(rates, sizes, 0.95), clopper_pearson(15, 30, 0.95)
    assert (ours.low, ours.high) == pytest.approx((pooled.low, pooled.high), abs=1e-12)


def _coverage(icc: float, rate: float, *, prompts: int, images: int, sample: bool) -> float:
    """Share of simulated studies whose interval holds the truth (beta-binomial prompts)."""
    rng = np.random.default_rng(3)
    hits, runs = 0, 600
    concentration = 1 / icc - 1
    fixed = rng.beta(rate * concentration, (1 - rate) * concentration, prompts)
    for _ in range(runs):
        truth = (
            rng.beta(rate * concentration, (1 - rate) * concentration, prompts) if sample else fixed
        )
        rates = rng.binomial(images, truth) / images
        sizes = np.full(prompts, float(images))
        method = sampled_prompts_interval if sample else fixed_prompts_interval
        interval = method(rates, sizes, 0.95)
        hits += interval.low <= (rate if sample else fixed.mean()) <= interval.high
    return hits / runs


@pytest.mark.parametrize("rate", [0.5, 0.7, 0.9])
def test_sampled_prompts_cover_the_truth(rate: float) -> None:
    """At ICC .05 the ordinary interval covers 44 %; three standard errors of 600 runs are 2.7 %."""
    assert _coverage(0.05, rate, prompts=10, images=200, sample=True) >= 0.95 - 0.027


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.9])
def test_fixed_prompts_cover_the_truth(rate: float) -> None:
    assert _coverage(0.05, rate, prompts=4, images=50, sample=False) >= 0.95 - 0.027


@pytest.mark.parametrize(
    ("sizes", "truth"),
    [((5, 50, 50, 50), (0.3, 0.02, 0.02, 0.02)), ((10, 50, 50, 50), (0.3, 0.02, 0.02, 0.02)),
     ((3, 40), (0.1, 0.02)), ((20, 40, 60), (0.5, 0.5, 0.5))],
)  # fmt: skip
def test_fixed_prompts_cover_the_truth_when_images_are_missing(
    sizes: tuple[int, ...], truth: tuple[float, ...]
) -> None:
    """Kish's size alone misses up to 16 % here; three standard errors of 2,000 runs are 1.5 %."""
    rng = np.random.default_rng(8)
    n = np.array(sizes, dtype=float)
    hits = 0
    for _ in range(2000):
        rates = rng.binomial(sizes, truth) / n
        interval = fixed_prompts_interval(rates, n, 0.95)
        hits += interval.low <= np.mean(truth) <= interval.high
    assert hits / 2000 >= 0.95 - 0.015


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), min_size=2, max_size=8),
    st.floats(0.55, 0.98),
)
def test_intervals_nest_in_their_level_and_hold_the_estimate(
    counts: list[tuple[int, int]], level: float
) -> None:
    rates = np.array([min(k, n) / n for k, n in counts])
    sizes = np.array([float(n) for _, n in counts])
    for method in (fixed_prompts_interval, sampled_prompts_interval):
        narrow, wide = method(rates, sizes, level), method(rates, sizes, level + 0.015)
        assert wide.low <= narrow.low + 1e-12
        assert narrow.high <= wide.high + 1e-12
        assert narrow.low - 1e-9 <= rates.mean() <= narrow.high + 1e-9
        assert wide.high > wide.low


def test_one_prompt_is_no_sample() -> None:
    with pytest.raises(MeasureError, match="no sample"):
        sampled_prompts_interval(np.array([0.5]), np.array([10.0]), 0.95)


def test_an_uncertain_reference_widens_the_difference() -> None:
    rate = clopper_pearson(70, 100, 0.95)
    exact = difference_to_reference(0.7, rate, 0.5, None)
    unsure = difference_to_reference(0.7, rate, 0.5, Interval(0.4, 0.6, 0.95))
    assert exact.low == pytest.approx(rate.low - 0.5)
    assert unsure.low < exact.low
    assert unsure.high > exact.high
    assert unsure.low == pytest.approx(0.2 - np.hypot(0.7 - rate.low, 0.1))


@given(st.integers(1, 60), st.data(), st.floats(0.0, 0.99))
def test_p_value_and_interval_never_disagree(n: int, data: st.DataObject, limit: float) -> None:
    k = data.draw(st.integers(0, n))
    p = one_sided_p(lambda level: clopper_pearson(k, n, level), estimate=k / n, limit=limit)
    for level in (0.8, 0.95):
        low = clopper_pearson(k, n, level).low
        assume(abs(p - (1 - level) / 2) > 1e-6)
        assert (low > limit) == (p < (1 - level) / 2)
    if k / n > limit and p < 0.5:
        assert p == pytest.approx(stats.binom.sf(k - 1, n, limit), abs=1e-7)


@given(st.lists(st.floats(0, 1), max_size=30))
def test_benjamini_hochberg_equals_statsmodels(p_values: list[float]) -> None:
    expected = multipletests(p_values, method="fdr_bh")[1] if p_values else []
    assert benjamini_hochberg(p_values) == pytest.approx(list(expected))
