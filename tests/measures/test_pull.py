"""Pull: equal to the pairwise definition, unchanged by rotation, with an interval that covers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import special_ortho_group

from tropescope.errors import MeasureError
from tropescope.measures.pull import (
    ImageSet,
    self_similarity,
    similarity,
    stereotypical_pull,
)


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _sets(
    seed: int, *, attributes: int = 3, seeds: int = 5, size: int = 8, lean: float = 0.0
) -> tuple[ImageSet, ImageSet, ImageSet]:
    rng = np.random.default_rng(seed)
    trope = np.zeros(size)
    trope[0] = 1
    noise = rng.normal(size=(seeds, size)) * 0.3

    def images(per: int, shift: np.ndarray) -> ImageSet:
        own = rng.normal(size=(per, 1, size)) * (0.2 if per > 1 else 0.0)
        x = _unit(
            np.ones(size) + noise + own + shift + rng.normal(size=(per, seeds, size)) * 0.3
        ).reshape(-1, size)
        number, start = np.indices((per, seeds))
        return ImageSet(x, start.ravel(), number.ravel())

    return (
        images(1, lean * trope),
        images(attributes, trope),
        images(attributes, np.zeros(size)),
    )


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_equals_the_mean_over_pairs(seed: int) -> None:
    d, s, ns = _sets(seed)

    def pairwise(x: ImageSet, y: ImageSet) -> float:
        cells = [
            (x.embedding[x.attribute == a] @ y.embedding[y.attribute == b].T).mean()
            for a in np.unique(x.attribute)
            for b in np.unique(y.attribute)
        ]
        return float(np.mean(cells))

    result = stereotypical_pull(d, s, ns)
    assert result.default_stereo == pytest.approx(pairwise(d, s), abs=1e-12)
    assert result.default_other == pytest.approx(pairwise(d, ns), abs=1e-12)
    assert result.stereo_other == pytest.approx(pairwise(s, ns), abs=1e-12)
    assert result.pull.value == pytest.approx(pairwise(d, s) - pairwise(d, ns), abs=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_rotation_changes_nothing(seed: int) -> None:
    sets = _sets(seed)
    turn = special_ortho_group.rvs(8, random_state=seed)
    turned = [ImageSet(x.embedding @ turn, x.seed, x.attribute) for x in sets]
    one, other = stereotypical_pull(*sets), stereotypical_pull(*turned)
    assert other.pull.value == pytest.approx(one.pull.value, abs=1e-12)
    assert other.pull.low == pytest.approx(one.pull.low, abs=1e-9)
    assert other.mean_similarity == pytest.approx(one.mean_similarity, abs=1e-12)


@given(st.integers(0, 10**6))
def test_swapping_the_sets_turns_the_sign(seed: int) -> None:
    d, s, ns = _sets(seed)
    one, other = stereotypical_pull(d, s, ns).pull, stereotypical_pull(d, ns, s).pull
    assert other.value == pytest.approx(-one.value, abs=1e-12)
    assert other.low == pytest.approx(-one.high, abs=1e-9)


def test_self_pairs_are_left_out() -> None:
    x = _unit(np.random.default_rng(0).normal(size=(7, 5)))
    cosines = x @ x.T
    expected = cosines[~np.eye(7, dtype=bool)].mean()
    assert self_similarity(x) == pytest.approx(expected, abs=1e-12)
    assert similarity(x, x) > expected
    assert self_similarity(x[:1]) is None


def test_unequal_numbers_weigh_attributes_equally() -> None:
    x = _unit(np.random.default_rng(1).normal(size=(6, 4)))
    many = ImageSet(x, np.arange(6), np.array([0, 0, 0, 0, 0, 1]))
    d = ImageSet(x[:2], np.arange(2), np.zeros(2, int))
    expected = x[:2].mean(axis=0) @ ((x[:5].mean(axis=0) + x[5]) / 2)
    assert stereotypical_pull(d, many, d).default_stereo == pytest.approx(expected)


def test_a_planted_lean_is_found_and_none_is_not() -> None:
    assert stereotypical_pull(*_sets(3, lean=1.0, attributes=6, seeds=15)).pull.verdict == "found"
    found = [
        stereotypical_pull(*_sets(seed, lean=1.0, attributes=6, seeds=15)).pull.value
        > stereotypical_pull(*_sets(seed, lean=0.0, attributes=6, seeds=15)).pull.value
        for seed in range(10)
    ]
    assert all(found)


def test_the_interval_covers() -> None:
    """Seeds and attributes both sampled; the truth from many of each."""
    truth = np.mean(
        [
            stereotypical_pull(*_sets(seed + 500, attributes=60, seeds=60, lean=0.5)).pull.value
            for seed in range(30)
        ]
    )
    hits = 0
    for seed in range(250):
        pull = stereotypical_pull(*_sets(seed, attributes=6, seeds=12, lean=0.5)).pull
        hits += pull.low <= truth <= pull.high
    assert hits / 250 >= 0.92


def test_one_attribute_and_one_seed_say_so() -> None:
    one = stereotypical_pull(*_sets(0, attributes=1)).pull
    assert one.estimand == "seeds sampled; these attributes"
    assert one.low is not None
    single = stereotypical_pull(*_sets(0, seeds=1)).pull
    assert single.value is not None
    assert single.low is None
    assert single.verdict == "undecided"


def test_embeddings_must_have_length_one() -> None:
    for bad in (np.zeros((2, 3)), np.full((2, 3), np.nan), np.ones((2, 3))):
        with pytest.raises(MeasureError, match="length 1"):
            ImageSet(bad, np.arange(2), np.zeros(2, int))
    with pytest.raises(MeasureError, match="at least one"):
        ImageSet(np.zeros((0, 3)), np.zeros(0, int), np.zeros(0, int))
    with pytest.raises(MeasureError, match="its seed"):
        ImageSet(_unit(np.ones((2, 3))), np.zeros(1, int), np.zeros(2, int))


def test_single_precision_agrees() -> None:
    sets = _sets(2)
    small = [ImageSet(x.embedding.astype(np.float32), x.seed, x.attribute) for x in sets]
    exact = stereotypical_pull(*sets).pull.value
    assert stereotypical_pull(*small).pull.value == pytest.approx(exact, abs=1e-6)
