"""The simultaneous band: coverage of whole curves, determinism, odd samples."""

from __future__ import annotations

import numpy as np
import pytest

from tropescope.errors import MeasureError
from tropescope.statistics.bands import largest_deviations, max_t_band


def smooth_curves(rng: np.random.Generator, n: int, points: int) -> np.ndarray:
    """Correlated along the curve, with a spread that changes from point to point."""
    steps = rng.normal(size=(n, points)) * 0.6
    curves = np.zeros((n, points))
    curves[:, 0] = rng.normal(size=n)
    for t in range(1, points):
        curves[:, t] = 0.8 * curves[:, t - 1] + steps[:, t]
    return curves * np.linspace(0.02, 0.3, points)


@pytest.mark.parametrize("n", [12, 60])
def test_whole_curves_are_covered_as_often_as_promised(n: int) -> None:
    """300 studies at 90 %: the band holds the true curve everywhere in at least 90 % of them."""
    rng = np.random.default_rng(3)
    truth = np.sin(np.linspace(0, 3, 16)) * 0.2
    held, pointwise = 0, 0
    studies = 300
    for study in range(studies):
        curves = truth + smooth_curves(rng, n, 16)
        band = max_t_band(curves, level=0.9, resamples=200, seed=study)
        held += bool(((band.low <= truth) & (truth <= band.high)).all())
        error = curves.std(axis=0, ddof=1) / n**0.5
        pointwise += bool((np.abs(curves.mean(axis=0) - truth) <= 1.645 * error).all())
    slack = 3 * np.sqrt(0.09 / studies)
    assert held / studies >= 0.9 - slack
    assert held / studies <= 0.98
    assert pointwise / studies < 0.8  # what the band is for


def test_the_same_under_a_seed_and_any_division_of_the_work() -> None:
    curves = smooth_curves(np.random.default_rng(0), 20, 8)
    whole = largest_deviations(curves, range(90), seed=7)
    parts = [range(0, 1), range(1, 40), range(40, 90)]
    divided = np.concatenate([largest_deviations(curves, part, seed=7) for part in parts])
    assert np.array_equal(whole, divided)
    one, other = (max_t_band(curves, resamples=90, seed=7) for _ in range(2))
    assert np.array_equal(one.low, other.low)
    assert one.critical != max_t_band(curves, resamples=90, seed=8).critical


def test_bands_are_nested_in_their_level() -> None:
    curves = smooth_curves(np.random.default_rng(1), 30, 8)
    narrow, wide = (max_t_band(curves, level=level, seed=2) for level in (0.8, 0.99))
    assert (wide.low < narrow.low).all()
    assert (narrow.high < wide.high).all()


def test_order_of_units_and_scale_do_not_matter() -> None:
    curves = smooth_curves(np.random.default_rng(1), 30, 8)
    band = max_t_band(curves, seed=2)
    shifted = max_t_band(2 * curves + 1, seed=2)
    np.testing.assert_allclose(shifted.low, 2 * band.low + 1)
    assert shifted.critical == pytest.approx(band.critical)


def test_undefined_points_are_left_out_and_counted() -> None:
    curves = smooth_curves(np.random.default_rng(1), 30, 8)
    curves[:5, 2] = np.nan
    curves[:29, 3] = np.nan
    curves[:, 4] = np.nan
    band = max_t_band(curves, seed=2)
    assert band.n.tolist() == [30, 30, 25, 1, 0, 30, 30, 30]
    assert band.mean[2] == pytest.approx(curves[5:, 2].mean())
    assert np.isnan(band.low[[3, 4]]).all()
    assert np.isnan(band.mean[4])
    assert np.isfinite(band.low[[0, 1, 2, 5, 6, 7]]).all()


def test_few_curves_give_an_unbounded_band_not_a_false_one() -> None:
    two = max_t_band(np.array([[0.1, 0.2], [0.3, 0.1]]))
    assert two.critical == np.inf
    assert np.isinf(two.low).all()
    one = max_t_band(np.array([[0.1, 0.2]]))
    assert np.isnan(one.low).all()
    assert one.mean.tolist() == [0.1, 0.2]


def test_a_point_without_spread_does_not_widen_the_others() -> None:
    curves = smooth_curves(np.random.default_rng(1), 30, 8)
    band = max_t_band(curves, seed=2)
    flat = np.concatenate([np.full((30, 1), 0.5), curves], axis=1)
    with_flat = max_t_band(flat, seed=2)
    assert with_flat.critical == band.critical
    assert with_flat.low[0] == with_flat.high[0] == 0.5


def test_bad_input_is_refused() -> None:
    for curves in (np.zeros(3), np.zeros((0, 3)), np.zeros((3, 0))):
        with pytest.raises(MeasureError):
            max_t_band(curves)
    with pytest.raises(MeasureError, match="level"):
        max_t_band(np.zeros((3, 2)), level=1.0)
