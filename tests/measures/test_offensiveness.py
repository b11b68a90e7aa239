"""Two readings of offensiveness; −1 is no amount; what nobody rated is missing."""

from __future__ import annotations

import numpy as np
import pytest

from tropescope.errors import MeasureError
from tropescope.measures.likelihood import GroupLikelihood
from tropescope.measures.offensiveness import mean_score, offensiveness

NOT, NAN = -1.0, float("nan")


def _likelihood(value: float) -> GroupLikelihood:
    pull = np.array([0.02, -0.01, -0.01, 0.01, -0.01])
    return GroupLikelihood(value, pull, 3, 5, 15, 45)


def test_both_readings() -> None:
    scores = np.array([[3.0, 3, 3], [NOT, NOT, NOT], [1, 2, 3]])
    result = offensiveness(scores, np.array([True, True, False]), _likelihood(0.2))
    assert result.as_printed.value == pytest.approx(0.2 * 1.5)
    assert result.of_stereotypes.value == pytest.approx((3 + 0 + 2) / 3)
    assert result.raw_as_printed == pytest.approx(0.2 * 1.0)
    assert result.raw_of_stereotypes == pytest.approx((3 - 1 + 2) / 3)
    for estimate in (result.as_printed, result.of_stereotypes):
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 4


def test_minus_one_is_mapped_rating_by_rating() -> None:
    assert mean_score(np.array([[NOT, NOT, 1.0]])) == pytest.approx(1 / 3)


def test_unrated_is_missing_not_zero() -> None:
    scores = np.array([[3.0, 3, 3], [NAN, NAN, NAN]])
    result = offensiveness(scores, np.array([True, True]), _likelihood(0.5))
    assert result.of_stereotypes.value == 3
    assert result.of_stereotypes.n == 1
    assert result.of_stereotypes.n_missing == 1


def test_nothing_found_present_is_not_defined() -> None:
    scores = np.array([[3.0, 3, 3]])
    result = offensiveness(scores, np.array([False]), _likelihood(0.0))
    assert result.as_printed.value is None
    assert result.of_stereotypes.value == 3
    empty = offensiveness(np.zeros((0, 3)), np.zeros(0, bool), None)
    assert empty.as_printed.value is None
    assert empty.of_stereotypes.value is None


def test_impossible_scores() -> None:
    with pytest.raises(MeasureError, match="from −1 to 4"):
        offensiveness(np.array([[7.0]]), np.array([True]), None)
    with pytest.raises(MeasureError, match="row of scores"):
        offensiveness(np.zeros((2, 3)), np.zeros(3, bool), None)
