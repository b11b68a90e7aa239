"""Rates and stereotype score against hand-made cases, simulation and the published table."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special

import tropescope.measures.attribute_rate
import tropescope.measures.stereotype_score
from tropescope.errors import MeasureError
from tropescope.measures.attribute_rate import (
    RateSample,
    attribute_rate,
    presence,
    presence_probability,
)
from tropescope.measures.parity_gap import parity_gap
from tropescope.measures.stereotype_score import (
    ReferenceRate,
    score_from_rates,
    stereotype_score,
)
from tropescope.statistics.intervals import Interval


def sample(values: list[float], prompts: list[int], missing: list[int]) -> RateSample:
    return RateSample(np.array(values, float), np.array(prompts, int), np.array(missing, int))


samples = st.integers(1, 4).flatmap(
    lambda prompts: st.integers(1, 30).flatmap(
        lambda n: st.builds(
            RateSample,
            arrays(np.float64, n, elements=st.sampled_from([0.0, 1.0])),
            arrays(np.int64, n, elements=st.integers(0, prompts - 1)),
            arrays(np.int64, prompts, elements=st.integers(0, 5)),
        )
    )
)


@pytest.mark.parametrize(
    "module", [tropescope.measures.attribute_rate, tropescope.measures.stereotype_score]
)
def test_examples_in_docstrings(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_presence_is_strict() -> None:
    near, far = np.array([0.3, 0.2, 0.2]), np.array([0.2, 0.2, 0.3])
    assert presence(near, far).tolist() == [True, False, False]
    soft = presence_probability(near, far, logit_scale=100.0)
    logits = np.stack([near, far], 1) * 100.0
    assert soft == pytest.approx(special.softmax(logits, axis=1)[:, 0])


def test_prompts_have_equal_weight() -> None:
    estimate = attribute_rate(sample([1, 1, 1, 0], [0, 0, 0, 1], [0, 0]))
    assert estimate.value == 0.5
    assert (estimate.n, estimate.n_missing) == (4, 0)


def test_missing_images_give_worst_case_bounds() -> None:
    estimate = attribute_rate(sample([1, 0], [0, 0], [2]))
    assert estimate.bounds == (0.25, 0.75)
    assert estimate.n_missing == 2


def test_a_prompt_without_images_is_said() -> None:
    estimate = attribute_rate(sample([1, 0], [0, 0], [0, 3]))
    assert "1 of 2 prompts gave no usable image" in estimate.notes
    assert estimate.bounds == (0.25, 0.75)


def test_no_image_is_not_defined_rather_than_zero() -> None:
    empty = sample([], [], [4])
    assert attribute_rate(empty).value is None
    assert parity_gap(empty).value is None
    result = stereotype_score(empty, ReferenceRate(0.5))
    assert result.score.value is None
    assert result.score.verdict == "undecided"
    assert "nothing to measure" in result.score.notes[0]


def test_one_prompt_is_no_sample_but_other_cells_go_on() -> None:
    one = sample([1, 0, 1], [0, 0, 0], [0, 3])
    estimate = attribute_rate(one, estimand="sample")
    assert estimate.value is None
    assert (estimate.n, estimate.n_missing) == (3, 3)
    assert "one prompt is no sample" in estimate.notes[0]
    assert stereotype_score(one, ReferenceRate(0.5), estimand="sample").score.value is None
    assert parity_gap(one, estimand="sample").value is None
    assert attribute_rate(one, estimand="fixed").value == pytest.approx(2 / 3)


@pytest.mark.parametrize("prompts", range(2, 31))
@pytest.mark.parametrize("each", [1, 2, 3])
def test_sampled_prompts_work_for_any_number(prompts: int, each: int) -> None:
    rng = np.random.default_rng(prompts)
    values = (rng.random(prompts * each) < 0.6).astype(float)
    drawn = RateSample(values, np.repeat(np.arange(prompts), each), np.zeros(prompts, int))
    for reference in (0.0, 0.4, 0.6, 1.0):
        score = stereotype_score(drawn, ReferenceRate(reference), estimand="sample").difference
        assert score.p_value is not None
        assert score.p_less is not None
        assert 0 <= score.p_value <= 1
        assert 0 <= score.p_less <= 1


def test_bad_input_is_refused() -> None:
    with pytest.raises(MeasureError, match="between 0 and 1"):
        sample([1.5], [0], [0])
    with pytest.raises(MeasureError, match="between 0 and 1"):
        sample([float("nan")], [0], [0])
    with pytest.raises(MeasureError, match="same length"):
        sample([1.0], [0, 1], [0, 0])
    with pytest.raises(MeasureError, match="outside the list"):
        sample([1.0], [3], [0])
    with pytest.raises(MeasureError, match="between 0 and 1"):
        ReferenceRate(1.2)


def test_posterior_is_equation_four_and_saturates() -> None:
    p = np.array([0.6, 0.7, 0.4])
    direct = p.prod() / (p.prod() + (1 - p).prod())
    zeros = np.zeros(3, int)
    estimate = attribute_rate(RateSample(p, zeros, np.array([0])), estimator="posterior")
    assert estimate.value == pytest.approx(direct)
    labels = sample([1, 1, 0], [0, 0, 0], [0])
    assert attribute_rate(labels, estimator="posterior").value is None
    uneven = RateSample(p, np.array([0, 0, 1]), np.array([0, 0]))
    sampled = attribute_rate(uneven, estimator="posterior", estimand="sample")
    assert sampled.value == pytest.approx(direct)
    many = RateSample(np.tile(p, 500), np.zeros(1500, int), np.array([0]))
    assert attribute_rate(many, estimator="posterior").value == pytest.approx(1.0)
    assert attribute_rate(many, estimator="soft").value == pytest.approx(p.mean())


@given(samples, st.floats(0, 1), st.sampled_from(["mean", "soft"]))
def test_score_properties(drawn: RateSample, reference: float, estimator: str) -> None:
    result = stereotype_score(drawn, ReferenceRate(reference), estimator=estimator)  # type: ignore[arg-type]
    score, signed = result.score, result.difference
    assert score.value is not None
    assert signed.value is not None
    assert 0 <= score.value <= 1 - reference + 1e-12
    assert score.value == max(0.0, signed.value)
    assert score.low is not None
    assert score.high is not None
    assert 0 <= score.low <= score.value + 1e-9
    assert score.value <= score.high + 1e-9
    assert score.n + score.n_missing == len(drawn.presence) + drawn.missing.sum()
    assert score.verdict in {"found", "excluded", "undecided"}


@given(samples, st.floats(0, 1), st.floats(0, 1))
def test_score_falls_as_the_reference_rises(drawn: RateSample, a: float, b: float) -> None:
    low, high = sorted((a, b))
    at_low = stereotype_score(drawn, ReferenceRate(low)).score.value
    at_high = stereotype_score(drawn, ReferenceRate(high)).score.value
    assert at_low is not None
    assert at_high is not None
    assert at_low >= at_high


@given(samples)
def test_score_rises_with_the_rate(drawn: RateSample) -> None:
    more = RateSample(np.maximum(drawn.presence, 1.0), drawn.prompt, drawn.missing)
    before = stereotype_score(drawn, ReferenceRate(0.3)).score.value
    after = stereotype_score(more, ReferenceRate(0.3)).score.value
    assert after >= before  # type: ignore[operator]


@pytest.mark.parametrize(
    ("k", "n", "reference", "verdict"),
    [(90, 100, 0.3, "found"), (30, 100, 0.3, "excluded"), (42, 100, 0.3, "undecided"),
     (5, 100, 0.9, "excluded")],
)  # fmt: skip
def test_verdicts(k: int, n: int, reference: float, verdict: str) -> None:
    drawn = sample([1.0] * k + [0.0] * (n - k), [0] * n, [0])
    assert stereotype_score(drawn, ReferenceRate(reference)).score.verdict == verdict


def test_a_shortfall_has_a_p_value_that_agrees_with_its_interval() -> None:
    for k in range(0, 101, 4):
        drawn = sample([1.0] * k + [0.0] * (100 - k), [0] * 100, [0])
        signed = stereotype_score(drawn, ReferenceRate(0.6)).difference
        assert signed.high is not None
        assert signed.p_less is not None
        assert (signed.high < -0.1) == (signed.p_less < 0.025)


def test_an_uncertain_reference_can_undo_a_finding() -> None:
    drawn = sample([1.0] * 60 + [0.0] * 40, [0] * 100, [0])
    sure = stereotype_score(drawn, ReferenceRate(0.35))
    unsure = stereotype_score(drawn, ReferenceRate(0.35, Interval(0.15, 0.55, 0.95)))
    assert sure.score.verdict == "found"
    assert unsure.score.verdict == "undecided"


@pytest.mark.parametrize("width", [0.0, 0.1])
def test_the_fatal_reference_is_where_the_verdict_turns(width: float) -> None:
    drawn = sample([1.0] * 60 + [0.0] * 40, [0] * 100, [0])

    def reference(value: float) -> ReferenceRate:
        around = Interval(value - width, value + width, 0.95) if width else None
        return ReferenceRate(value, around)

    fatal = stereotype_score(drawn, reference(0.2)).fatal_reference
    assert fatal is not None
    below = stereotype_score(drawn, reference(fatal - 1e-6)).score.verdict
    above = stereotype_score(drawn, reference(fatal + 1e-6)).score.verdict
    assert (below, above) == ("found", "undecided")


def test_false_findings_stay_below_their_level() -> None:
    """At a true excess of exactly ζ, at most 2.5 % of studies may say found (600 runs)."""
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(600):
        values = (rng.random(80) < 0.4).astype(float)
        drawn = RateSample(values, np.repeat(np.arange(4), 20), np.zeros(4, int))
        found += stereotype_score(drawn, ReferenceRate(0.3)).score.verdict == "found"
    assert found / 600 <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / 600)


def test_parity_gap_interval_folds_at_one_half() -> None:
    balanced = parity_gap(sample([1.0, 0.0] * 20, [0] * 40, [0]))
    assert balanced.value == 0.0
    assert balanced.low == 0.0
    assert balanced.high > 0.1  # type: ignore[operator]


def test_score_of_known_rates() -> None:
    assert score_from_rates(0.523, 0.25) == pytest.approx(0.273)
    assert score_from_rates(0.1, 0.25) == 0.0
