"""Masks of words and how well they find a region."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tropescope.errors import MeasureError
from tropescope.measures.word_attention import (
    beats_other_words,
    coverage,
    mean_overlap,
    normalised,
    overlap,
    pointing_accuracy,
    points_at,
    word_mask,
)

maps = arrays(np.float64, (5, 7), elements=st.integers(0, 1000).map(lambda x: x / 1000))


@given(maps, st.integers(-3, 3))
def test_scaling_does_not_depend_on_the_amount_of_attention(drawn: np.ndarray, power: int) -> None:
    if drawn.max() == drawn.min():
        assert np.isnan(normalised(drawn)).all()
        return
    scaled = normalised(drawn)
    assert scaled.min() == 0
    assert scaled.max() == 1
    np.testing.assert_allclose(normalised(drawn * 2.0**power), scaled)


@given(maps, st.sampled_from([0.1, 0.35, 0.6]))
def test_masks_shrink_as_the_threshold_rises(drawn: np.ndarray, threshold: float) -> None:
    if drawn.max() == drawn.min():
        return
    low, high = word_mask(drawn, threshold), word_mask(drawn, threshold + 0.2)
    assert (high <= low).all()
    assert high.any()


def test_known_masks() -> None:
    attention = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    mask = word_mask(attention)
    assert mask.tolist() == [[False, False, True], [True, True, True]]
    region = np.array([[False, False, False], [False, True, True]])
    assert coverage(region, mask) == 1
    assert coverage(mask, region) == 0.5
    assert overlap(region, mask) == 0.5
    assert points_at(attention, region)
    assert not points_at(-attention, region)
    tie = np.array([[1.0, 0, 0], [0, 1, 0]])
    assert not points_at(tie, region)


def test_what_is_not_defined_says_so() -> None:
    flat, empty = np.ones((2, 2)), np.zeros((2, 2), bool)
    with pytest.raises(MeasureError, match="same everywhere"):
        word_mask(flat)
    with pytest.raises(MeasureError, match="NaN"):
        normalised(np.array([[np.nan, 1.0]]))
    with pytest.raises(MeasureError, match="rows and columns"):
        normalised(np.ones(3))
    with pytest.raises(MeasureError, match="threshold"):
        word_mask(np.eye(2), 1.0)
    with pytest.raises(MeasureError, match="without a region"):
        coverage(empty, empty)
    with pytest.raises(MeasureError, match="two empty"):
        overlap(empty, empty)
    with pytest.raises(MeasureError, match="different sizes"):
        overlap(empty, np.zeros((2, 3), bool))
    assert mean_overlap([], n_missing=2).value is None
    assert pointing_accuracy([]).value is None


def test_estimates_carry_their_uncertainty() -> None:
    estimate = mean_overlap([0.2, 0.4, 0.6], n_missing=1)
    assert estimate.value == pytest.approx(0.4)
    assert estimate.low == pytest.approx(max(0, 0.4 - 4.302653 * 0.2 / 3**0.5))
    assert (estimate.n, estimate.n_missing) == (3, 1)
    one = mean_overlap([0.5])
    assert (one.low, one.high) == (0, 1)
    hits = pointing_accuracy([True] * 9 + [False])
    assert hits.value == 0.9
    assert 0.5 < hits.low < 0.9 < hits.high < 1  # type: ignore[operator]


def test_a_word_is_compared_with_the_other_words_of_its_image() -> None:
    gain = beats_other_words([0.6, 0.7, 0.5, 0.9], [[0.2, 0.4], [0.3], [0.1, 0.3], []])
    assert gain.value == pytest.approx((0.3 + 0.4 + 0.3) / 3)
    assert (gain.n, gain.n_missing) == (3, 1)
    assert gain.low > 0  # type: ignore[operator]
    with pytest.raises(MeasureError, match="same images"):
        beats_other_words([0.5], [])
