"""WALS against a full singular value decomposition, planted spread, and its own traps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

from tropescope.errors import MeasureError
from tropescope.measures.direction import (
    gaussian_kernel,
    kernel_direction,
    supervised_direction,
    supervised_direction_of_labels,
    text_direction,
)
from tropescope.measures.spread import Spread, spread_of
from tropescope.measures.wals import effective_number, variety, wals, wals_value


def reference_wals(features: np.ndarray, direction: np.ndarray, *, squared: bool = False) -> float:  # type: ignore[type-arg]
    """Eq. 7 written down plainly, with a full singular value decomposition."""
    _, sigma, right = np.linalg.svd(features - features.mean(0), full_matrices=False)
    aligned = np.abs(right @ direction / np.linalg.norm(direction))
    if squared:
        return float((sigma**2 * aligned**2).sum() / (sigma**2).sum())
    return float((sigma * aligned).sum() / sigma.sum())


def features(n: int = 300, d: int = 12, seed: int = 0) -> np.ndarray:  # type: ignore[type-arg]
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d)) * np.linspace(2, 0.3, d) + rng.standard_normal(d)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@pytest.mark.parametrize("squared", [False, True])
def test_equals_a_full_decomposition(squared: bool) -> None:
    rows, direction = features(), np.random.default_rng(1).standard_normal(12)
    ours = wals(spread_of(rows), direction, squared=squared).score
    assert ours.value == pytest.approx(reference_wals(rows, direction, squared=squared), abs=1e-9)
    assert ours.low < ours.value < ours.high  # type: ignore[operator]


def test_squared_form_is_the_planted_share_of_spread() -> None:
    rng = np.random.default_rng(2)
    shares = np.array([0.5, 0.3, 0.15, 0.05])
    rows = rng.standard_normal((200_000, 4)) * np.sqrt(shares)
    spread = spread_of(rows)
    for i, share in enumerate(shares):
        direction = np.eye(4)[i]
        assert wals(spread, direction, squared=True).score.value == pytest.approx(share, abs=0.01)
        planted = np.sqrt(share) / np.sqrt(shares).sum()
        assert wals(spread, direction).score.value == pytest.approx(planted, abs=0.02)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_signs_rotations_and_shifts_change_nothing(seed: int, squared: bool) -> None:
    rows, rng = features(60, 6, seed), np.random.default_rng(seed)
    direction = rng.standard_normal(6)
    value = wals(spread_of(rows), direction, squared=squared).score.value
    turned = ortho_group.rvs(6, random_state=seed)
    for changed, along in (
        (rows, -direction),
        (rows @ turned, direction @ turned),
        (rows + rng.standard_normal(6), direction),
        (rows * 3.0, direction * 0.1),
    ):
        other = wals(spread_of(changed), along, squared=squared).score.value
        assert other == pytest.approx(value, abs=1e-7)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_chunking_changes_nothing(sizes: list[int]) -> None:
    rows = features(sum(sizes), 5)
    one, many = spread_of(rows), Spread(5)
    for chunk in np.split(rows, np.cumsum(sizes)[:-1]):
        many.add(chunk)
    assert many.n == one.n
    for a, b in zip(one.groups(), many.groups(), strict=True):
        assert a.n == b.n
        assert a.products == pytest.approx(b.products, abs=1e-12)


def test_a_random_direction_is_its_own_null() -> None:
    spread = spread_of(features(500, 10))
    rng = np.random.default_rng(3)
    p_values = [wals(spread, rng.standard_normal(10)).p_value for _ in range(200)]
    assert 0.4 < np.mean(p_values) < 0.6  # type: ignore[arg-type]
    main = np.linalg.eigh(spread.moments().scatter())[1][:, -1]
    assert wals(spread, main, squared=True).p_value < 0.05  # type: ignore[operator]


def test_the_absolute_form_ranks_the_leading_vector_below_random_directions() -> None:
    """The trap that the docstring names: why the squared form and the null stand beside it."""
    spread = spread_of(features(500, 10))
    main = np.linalg.eigh(spread.moments().scatter())[1][:, -1]
    result = wals(spread, main)
    assert result.score.value < result.null_mean  # type: ignore[operator]
    assert wals(spread, main, squared=True).score.value > 1 / 10  # type: ignore[operator]


def test_the_interval_covers_the_value_of_the_population() -> None:
    rng = np.random.default_rng(4)
    scales = np.sqrt(np.array([0.4, 0.3, 0.2, 0.1]))
    direction = np.array([1.0, 0, 0, 0])
    truth = scales[0] ** 2 / (scales**2).sum()
    hits = 0
    for _ in range(200):
        result = wals(spread_of(rng.standard_normal((400, 4)) * scales), direction, squared=True)
        hits += result.score.low <= truth <= result.score.high  # type: ignore[operator]
    assert hits / 200 >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 200)


def test_a_collapsed_generator_has_higher_wals_but_fewer_distinct_images() -> None:
    rng = np.random.default_rng(5)
    direction = np.eye(16)[0]
    gender = rng.integers(0, 2, 400) * 2.0 - 1
    varied = rng.standard_normal((400, 16)) * 0.6
    varied[:, 0] = gender
    collapsed = (
        np.tile(rng.standard_normal(16) * 0.6, (400, 1)) + rng.standard_normal((400, 16)) * 0.01
    )
    collapsed[:, 0] = gender
    results = {}
    for name, rows in (("varied", varied), ("collapsed", collapsed)):
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        spread = spread_of(unit)
        by_class = [spread_of(unit[gender == side]) for side in (1, -1)]
        results[name] = (
            wals(spread, direction).score.value,
            variety(spread, direction, present=by_class[0], absent=by_class[1]),
        )
    assert results["collapsed"][0] > results["varied"][0]  # type: ignore[operator]
    assert results["collapsed"][1].distinct < results["varied"][1].distinct / 3
    assert results["collapsed"][1].variance_within < results["varied"][1].variance_within / 10  # type: ignore[operator]


def test_effective_number_of_equal_and_of_unrelated_images() -> None:
    equal = np.tile(np.eye(8)[:1], (20, 1))
    assert effective_number(spread_of(equal).moments()) == pytest.approx(1.0)
    assert effective_number(spread_of(np.eye(8)).moments()) == pytest.approx(8.0)
    rows = features(40, 10)
    kernel = rows @ rows.T / 40
    shares = np.linalg.eigvalsh(kernel)
    shares = shares[shares > 1e-12]
    expected = np.exp(-(shares * np.log(shares)).sum())
    assert effective_number(spread_of(rows).moments()) == pytest.approx(expected, rel=1e-6)


def test_supervised_direction_equals_the_eigenvector_of_the_kernel_matrices() -> None:
    rows, rng = features(80, 7), np.random.default_rng(6)
    labels = rng.random(80) < 0.4
    centring = np.eye(80) - 1 / 80
    y = labels.astype(float)[:, None]
    matrix = rows.T @ centring @ (y @ y.T) @ centring @ rows
    leading = np.linalg.eigh(matrix)[1][:, -1]
    ours = supervised_direction(rows, labels)
    assert abs(ours @ leading) == pytest.approx(1.0)
    assert ours @ (rows[labels].mean(0) - rows[~labels].mean(0)) > 0
    many = supervised_direction_of_labels(rows, y)
    assert ours @ many == pytest.approx(1.0)


def test_kernel_direction_equals_the_eigenvector_of_the_kernel_matrices() -> None:
    rows, rng = features(50, 4), np.random.default_rng(7)
    labels = rng.random(50) < 0.5
    ours, width = kernel_direction(rows, labels)
    kernel = gaussian_kernel(rows, rows, width=width)
    centring = np.eye(50) - 1 / 50
    y = labels.astype(float)[:, None]
    leading = np.linalg.eigh(kernel @ centring @ (y @ y.T) @ centring @ kernel)[1][:, -1]
    assert abs(ours @ leading) == pytest.approx(1.0)
    images = gaussian_kernel(features(30, 4, 9), rows, width=width)
    assert wals(spread_of(images), ours).score.value is not None


def test_bad_input() -> None:
    rows = features(20, 5)
    with pytest.raises(MeasureError, match="no direction"):
        text_direction(rows[0], rows[0])
    with pytest.raises(MeasureError, match="with and without"):
        supervised_direction(rows, np.ones(20, bool))
    with pytest.raises(MeasureError, match="with and without"):
        kernel_direction(rows, np.zeros(20, bool))
    with pytest.raises(MeasureError, match="same encoder"):
        wals(spread_of(rows), np.ones(4))
    with pytest.raises(MeasureError, match="finite"):
        spread_of(np.full((3, 2), np.nan))
    with pytest.raises(MeasureError, match="no features"):
        Spread(3).moments()
    same = wals(spread_of(np.ones((10, 3))), np.ones(3)).score
    assert same.value is None
    assert "nothing varies" in same.notes[0]
    assert wals(spread_of(rows[:2]), np.ones(5)).score.value is None


def test_fewer_pairs_than_dimensions() -> None:
    rows, direction = features(100, 8), np.eye(8)[0]
    _, sigma, right = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    expected = (sigma[:3] * np.abs(right[:3] @ direction)).sum() / sigma[:3].sum()
    assert wals_value(spread_of(rows).moments(), direction, k=3) == pytest.approx(expected)
