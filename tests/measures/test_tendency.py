"""Likelihood and tendency: definition, symmetry, never inf, and intervals that cover."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from tropescope.errors import MeasureError
from tropescope.measures.likelihood import Likelihoods, Ratings, attribute_likelihoods, likelihoods
from tropescope.measures.tendency import tendency


def _ratings(present: np.ndarray) -> Ratings:
    """present[image, attribute, rater] as ratings."""
    images, attributes = present.shape[:2]
    image, attribute, _ = np.indices(present.shape)
    return Ratings(
        image.ravel(), attribute.ravel(), present.ravel().astype(float), images, attributes
    )


def _groups(table: Likelihoods, stereo: int) -> tuple:
    every = range(len(table.value))
    return table.group(list(every)[:stereo]), table.group(list(every)[stereo:])


answers = st.integers(0, 2**32 - 1).map(
    lambda seed: (
        np.random.default_rng(seed).random((6, 5, 3))
        < np.random.default_rng(seed + 1).random((1, 5, 1)) * 0.8
    )
)


@settings(max_examples=80)
@given(answers)
def test_swapping_stereotypes_and_random_turns_theta_over(present: np.ndarray) -> None:
    stereo, random = _groups(likelihoods(_ratings(present)), 2)
    one, other = tendency(stereo, random), tendency(random, stereo)
    assert one.difference.value == pytest.approx(-other.difference.value, abs=1e-12)
    assert one.difference.low == pytest.approx(-other.difference.high, abs=1e-9)
    if one.theta.value and other.theta.value:
        assert one.theta.value * other.theta.value == pytest.approx(1)
        if one.theta.low is not None and other.theta.high is not None:
            assert one.theta.low * other.theta.high == pytest.approx(1, rel=1e-6)


@settings(max_examples=80)
@given(answers)
def test_nothing_is_ever_infinite_and_the_difference_is_always_there(present: np.ndarray) -> None:
    result = tendency(*_groups(likelihoods(_ratings(present)), 2))
    for estimate in (result.theta, result.difference, result.stereo, result.random):
        for number in (estimate.value, estimate.low, estimate.high):
            assert number is None or np.isfinite(number)
    assert result.difference.low is not None
    assert result.difference.low <= result.difference.value <= result.difference.high
    assert result.difference.high > result.difference.low
    if result.random.value == 0:
        assert result.theta.value is None
        assert "not defined" in result.theta.notes[0]


@given(answers)
def test_likelihood_is_k_over_n_whatever_the_order(present: np.ndarray) -> None:
    ratings = _ratings(present)
    order = np.random.default_rng(0).permutation(len(ratings.image))
    shuffled = Ratings(ratings.image[order], ratings.attribute[order], ratings.present[order], 6, 5)
    for table in (likelihoods(ratings), likelihoods(shuffled)):
        assert table.value == pytest.approx(present.mean(axis=(0, 2)))
        for estimate, value in zip(attribute_likelihoods(table), table.value, strict=True):
            assert estimate.low <= value + 1e-12
            assert value - 1e-12 <= estimate.high


def test_random_never_marked() -> None:
    present = np.zeros((15, 4, 3), bool)
    present[:6, :2] = True
    result = tendency(*_groups(likelihoods(_ratings(present)), 2))
    assert result.theta.value is None
    assert result.theta.low is None
    assert result.difference.value == pytest.approx(0.4)
    assert result.difference.verdict == "found"
    assert result.difference.p_value < 0.025
    assert result.random.high > 0.05


def test_nothing_marked_at_all_is_undecided() -> None:
    result = tendency(*_groups(likelihoods(_ratings(np.zeros((15, 4, 3), bool))), 2))
    assert result.theta.value is None
    assert result.difference.value == 0
    assert result.difference.verdict == "undecided"
    assert result.difference.high > 0.02


def test_stereotypes_never_marked() -> None:
    present = np.zeros((15, 4, 3), bool)
    present[:9, 2:] = True
    result = tendency(*_groups(likelihoods(_ratings(present)), 2))
    assert result.theta.value == 0
    assert result.theta.low == 0
    assert 0 < result.theta.high < 1
    assert result.difference.verdict == "excluded"


def test_one_image_and_empty_groups() -> None:
    one = tendency(*_groups(likelihoods(_ratings(np.ones((1, 4, 3), bool))), 2))
    assert one.theta.value == 1
    assert one.theta.low is None
    assert one.difference.verdict == "undecided"
    table = likelihoods(_ratings(np.ones((3, 2, 1), bool)))
    nothing = tendency(table.group([0, 1]), table.group([]))
    assert nothing.theta.value is None
    assert nothing.difference.value is None
    assert "random" in nothing.theta.notes[0]


def test_soft_presence_works_and_impossible_input_is_refused() -> None:
    soft = Ratings(np.array([0, 1]), np.array([0, 0]), np.array([0.25, 0.75]), 2, 1)
    assert likelihoods(soft).value.tolist() == [0.5]
    with pytest.raises(MeasureError, match="between 0 and 1"):
        Ratings(np.array([0]), np.array([0]), np.array([2.0]), 1, 1)
    with pytest.raises(MeasureError, match="outside"):
        Ratings(np.array([3]), np.array([0]), np.array([1.0]), 1, 1)
    with pytest.raises(MeasureError, match="same length"):
        Ratings(np.array([0, 1]), np.array([0]), np.array([1.0]), 2, 1)


def test_attributes_not_shown_with_every_image() -> None:
    ratings = Ratings(
        np.array([0, 0, 1, 2]), np.array([0, 1, 0, 1]), np.array([1.0, 0, 0, 1]), 3, 3
    )
    table = likelihoods(ratings)
    assert table.value[:2].tolist() == [0.5, 0.5]
    assert attribute_likelihoods(table)[2].value is None
    assert table.group([2]) is None
    assert table.group([0, 2]).attributes == 1


TRUE_STEREO, TRUE_RANDOM = (0.3, 0.1, 0.2, 0.4), (0.1, 0.05, 0.2, 0.02)


def _truth(rates: tuple[float, ...]) -> float:
    noise = np.random.default_rng(9).normal(0, np.sqrt(1.64), 100_000)
    return float(np.mean([expit(logit(rate) + noise).mean() for rate in rates]))


def test_intervals_cover_with_shared_images_and_raters() -> None:
    """15 images, 3 raters; images differ, and raters see the same picture."""
    rng = np.random.default_rng(4)
    rates = logit(np.array(TRUE_STEREO + TRUE_RANDOM))
    s, r = _truth(TRUE_STEREO), _truth(TRUE_RANDOM)
    runs, theta, difference = 500, 0, 0
    for _ in range(runs):
        chance = expit(rates + rng.normal(0, 0.8, (15, 1)) + rng.normal(0, 1, (15, 8)))
        present = rng.random((15, 8, 3)) < chance[..., None]
        result = tendency(*_groups(likelihoods(_ratings(present)), 4))
        theta += result.theta.low <= s / r <= result.theta.high
        difference += result.difference.low <= s - r <= result.difference.high
    assert theta / runs >= 0.925
    assert difference / runs >= 0.925


def test_no_stereotype_is_rarely_found() -> None:
    """Two sets of attributes with equal rates: "found" in about one of forty."""
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(400):
        chance = expit(logit(0.15) + rng.normal(0, 0.8, (15, 1)) + rng.normal(0, 1, (15, 6)))
        present = rng.random((15, 6, 3)) < chance[..., None]
        result = tendency(*_groups(likelihoods(_ratings(present)), 3))
        found += result.difference.verdict == "found"
    assert found / 400 <= 0.05
