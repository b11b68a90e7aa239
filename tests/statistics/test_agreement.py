"""Krippendorff's α against the textbook, against a slow second implementation, and at its edges."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tropescope.errors import MeasureError
from tropescope.statistics.agreement import Metric, krippendorff_alpha

#: Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability": four observers, 12 units.
TEXTBOOK = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""


def _flat(table: list[list[int | None]]) -> tuple[np.ndarray, np.ndarray]:
    pairs = [
        (unit, value - 1)
        for rater in table
        for unit, value in enumerate(rater)
        if value is not None
    ]
    unit, value = zip(*pairs, strict=True)
    return np.array(unit), np.array(value)


@pytest.mark.parametrize(
    ("metric", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_the_textbook_example(metric: Metric, printed: float) -> None:
    table = [
        [None if cell == "." else int(cell) for cell in line.split()]
        for line in TEXTBOOK.strip().splitlines()
    ]
    result = krippendorff_alpha(*_flat(table), metric=metric)
    assert result.alpha.value == pytest.approx(printed, abs=0.0006)
    assert result.alpha.n_missing == 1
    assert result.alpha.low is not None
    assert result.alpha.low < printed < (result.alpha.high or 0)


def _slow_nominal(unit: np.ndarray, value: np.ndarray) -> float:
    """From the definition: all pairs, one by one."""
    disagreements, kept = 0.0, []
    for u in np.unique(unit):
        own = value[unit == u].tolist()
        if len(own) > 1:
            kept += own
            unequal = sum(a != b for a, b in itertools.permutations(own, 2))
            disagreements += unequal / (len(own) - 1)
    n = len(kept)
    expected = sum(a != b for a, b in itertools.permutations(kept, 2)) / (n - 1)
    return 1 - disagreements / expected


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=4, max_size=24))
def test_equals_the_definition(rows: list[tuple[int, int]]) -> None:
    unit, value = np.array(rows).T
    result = krippendorff_alpha(unit, value)
    if result.alpha.value is not None:
        assert result.alpha.value == pytest.approx(_slow_nominal(unit, value), abs=1e-9)


def test_edges() -> None:
    same = krippendorff_alpha(np.array([0, 0, 1, 1]), np.array([1, 1, 1, 1]))
    assert same.alpha.value is None
    assert same.observed == 1
    assert "not defined" in same.alpha.notes[0]
    nothing = krippendorff_alpha(np.zeros(0, int), np.zeros(0, int))
    assert nothing.alpha.value is None
    perfect = krippendorff_alpha(np.array([0, 0, 1, 1, 2, 2]), np.array([1, 1, 0, 0, 1, 1]))
    assert perfect.alpha.value == 1
    with pytest.raises(MeasureError, match="same length"):
        krippendorff_alpha(np.zeros(2, int), np.zeros(3, int))
    with pytest.raises(MeasureError, match="numbered"):
        krippendorff_alpha(np.zeros(2, int), np.array([-1, 0]))


def test_the_interval_covers() -> None:
    """150 images of 4 units with a shared image effect, 3 raters who err 15 % of the time."""

    def study(rng: np.random.Generator, images: int) -> tuple[np.ndarray, ...]:
        rate = rng.beta(1, 3, (images, 1))
        truth = rng.random((images, 4)) < rate
        seen = truth[..., None] ^ (rng.random((images, 4, 3)) < 0.15)
        unit = np.repeat(np.arange(images * 4), 3)
        return unit, seen.reshape(-1).astype(int), unit // 4

    unit, value, image = study(np.random.default_rng(1), 40_000)
    truth = krippendorff_alpha(unit, value, cluster=image).alpha.value or 0.0
    hits = 0
    for seed in range(800):
        unit, value, image = study(np.random.default_rng(seed + 7), 150)
        estimate = krippendorff_alpha(unit, value, cluster=image).alpha
        hits += (estimate.low or 0) <= truth <= (estimate.high or 0)
    assert hits / 800 >= 0.925
