"""SPI, its curve, how well early steps foretell the image, and the drift of paired latents."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tropescope.errors import MeasureError
from tropescope.measures.disparity_path import disparity_path, path_similarity
from tropescope.measures.spi import early_spi, foretelling, spi, spi_curve

numbers = st.floats(-1e3, 1e3, width=32)
pairs = st.tuples(
    arrays(np.float32, (2, 3, 4), elements=numbers), arrays(np.float32, (2, 3, 4), elements=numbers)
)


@given(pairs)
def test_spi_is_odd_in_the_direction_exactly_and_bounded(
    pair: tuple[np.ndarray, np.ndarray],
) -> None:
    velocity, delta = pair
    found = spi(velocity, delta)
    assert np.array_equal(spi(velocity, -delta), -found, equal_nan=True)
    assert np.array_equal(spi(-velocity, delta), -found, equal_nan=True)
    assert (np.abs(found[np.isfinite(found)]) <= 1 + 1e-12).all()


@given(pairs, st.integers(-6, 6))
def test_spi_does_not_depend_on_length(pair: tuple[np.ndarray, np.ndarray], power: int) -> None:
    velocity, delta = (array.astype(np.float64) for array in pair)
    np.testing.assert_allclose(spi(velocity, delta * 2.0**power), spi(velocity, delta), atol=1e-12)
    np.testing.assert_allclose(spi(velocity * 2.0**power, delta), spi(velocity, delta), atol=1e-12)


def test_spi_of_known_vectors() -> None:
    velocity = np.array([[1.0, 0], [1, 1], [0, 2], [0, 0], [1, 0]])
    delta = np.array([[3.0, 0], [1, 0], [0, -1], [1, 0], [0, 0]])
    found = spi(velocity, delta)
    np.testing.assert_allclose(found[:3], [1, 0.5**0.5, -1])
    assert np.isnan(found[3:]).all()  # a zero vector has no direction
    with pytest.raises(MeasureError, match="one shape"):
        spi(np.zeros((2, 3)), np.zeros((2, 4)))


def test_the_curve_counts_what_is_missing() -> None:
    rng = np.random.default_rng(0)
    curves = 0.3 + 0.1 * rng.normal(size=(40, 6))
    curves[0] = np.nan
    curves[1, 2] = np.nan
    found = spi_curve(curves, n_missing=3)
    assert (found.n, found.n_missing) == (39, 4)
    assert found.band.n.tolist() == [39, 39, 38, 39, 39, 39]
    assert "not defined for some images at 1 steps" in found.notes[0]
    assert ((found.band.low < 0.3) & (found.band.high > 0.3)).all()
    few = spi_curve(curves[2:4])
    assert "too few" in few.notes[0]
    assert (few.band.low == -1).all()
    assert (few.band.high == 1).all()
    with pytest.raises(MeasureError, match="no image"):
        spi_curve(np.full((2, 3), np.nan))
    with pytest.raises(MeasureError, match="images × steps"):
        spi_curve(np.zeros(3))


def test_early_steps_are_the_first_quarter() -> None:
    curves = np.arange(32.0).reshape(2, 16)
    assert early_spi(curves).tolist() == [1.5, 17.5]
    assert early_spi(curves[:, :2]).tolist() == [0.0, 16.0]
    assert early_spi(curves, 0.3).tolist() == [2.0, 18.0]
    curves[0, :4] = np.nan
    curves[1, 1] = np.nan
    found = early_spi(curves)
    assert np.isnan(found[0])
    assert found[1] == pytest.approx((16 + 18 + 19) / 3)
    with pytest.raises(MeasureError, match="share"):
        early_spi(curves, 0)


def test_auc_equals_the_share_of_pairs_in_the_right_order() -> None:
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 6, 40).astype(float)
    shows = rng.random(40) < 0.4
    a, b = scores[shows], scores[~shows]
    wins = (a[:, None] > b).mean() + 0.5 * (a[:, None] == b).mean()
    estimate = foretelling(scores, shows)
    assert estimate.value == pytest.approx(wins)
    assert estimate.low < estimate.value < estimate.high  # type: ignore[operator]
    flipped = foretelling(-scores, shows)
    assert flipped.value == pytest.approx(1 - wins)
    assert flipped.low == pytest.approx(1 - estimate.high)  # type: ignore[operator]


def test_delong_variance_by_the_plain_formula() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(1, 1, 15), rng.normal(0, 1, 25)
    psi = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    variance = psi.mean(axis=1).var(ddof=1) / 15 + psi.mean(axis=0).var(ddof=1) / 25
    from tropescope.measures.spi import _auc

    value, found = _auc(a, b)
    assert value == pytest.approx(psi.mean())
    assert found == pytest.approx(variance)


def test_auc_intervals_cover() -> None:
    """400 samples from shifted normals: the 95 % interval holds the true AUC 92–98 % of times."""
    from scipy import stats

    rng = np.random.default_rng(3)
    truth = float(stats.norm.cdf(1.2 / 2**0.5))
    held = 0
    for _ in range(400):
        shows = rng.random(120) < 0.3
        scores = rng.normal(size=120) + 1.2 * shows
        estimate = foretelling(scores, shows)
        held += estimate.low <= truth <= estimate.high  # type: ignore[operator]
    assert 0.92 <= held / 400 <= 0.98


def test_a_perfect_separation_still_has_an_interval() -> None:
    scores = np.arange(30.0)
    estimate = foretelling(scores, scores >= 20)
    assert estimate.value == 1
    assert estimate.high == 1
    assert 0.7 < estimate.low < 1  # type: ignore[operator]
    other = foretelling(-scores, scores >= 20)
    assert (other.value, other.low) == (0, 0)
    assert other.high == pytest.approx(1 - estimate.low)  # type: ignore[operator]
    single = foretelling(np.array([0.1, 0.2, 0.3]), np.array([False, True, False]))
    assert single.low < single.value < single.high  # type: ignore[operator]


def test_auc_is_not_defined_for_one_class_and_counts_missing() -> None:
    none = foretelling(np.array([0.1, 0.2, np.nan]), np.array([False, False, True]))
    assert none.value is None
    assert none.n_missing == 1
    assert "no usable image shows" in none.notes[0]
    assert foretelling(np.array([0.1]), np.array([True])).value is None
    with pytest.raises(MeasureError, match="same length"):
        foretelling(np.zeros(2), np.zeros(3, bool))


def test_paths_of_paired_latents() -> None:
    rng = np.random.default_rng(0)
    neutral = rng.normal(size=(6, 4, 2, 3))
    feminine = neutral + np.linspace(0, 2, 4)[:, None, None] * rng.normal(size=neutral.shape)
    masculine = neutral + np.linspace(0, 0.5, 4)[:, None, None] * rng.normal(size=neutral.shape)
    one, other = path_similarity(neutral, feminine), path_similarity(neutral, masculine)
    np.testing.assert_allclose(one[:, 0], 1)
    np.testing.assert_allclose(path_similarity(feminine, neutral), one)
    np.testing.assert_allclose(path_similarity(3 * neutral, feminine), one)
    band = disparity_path(one, other, np.array([0, 0, 1, 1, 2, 2]))
    assert band.n.tolist() == [3, 3, 3, 3]
    assert band.mean[-1] < 0
    assert np.isnan(path_similarity(np.zeros((1, 1, 2)), np.ones((1, 1, 2)))).all()
    with pytest.raises(MeasureError, match="pairs × steps"):
        path_similarity(neutral, feminine[:3])
    with pytest.raises(MeasureError, match="one triplet name"):
        disparity_path(one, other, np.array([0, 1]))
    with pytest.raises(MeasureError, match="no triplet"):
        disparity_path(one[:0], other[:0], np.array([], int))
