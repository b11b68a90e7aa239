"""Salience: the formula, the matching of words, the interval, the speed."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tropescope.annotations.lemmas import lemma, phrase_lemma
from tropescope.annotations.matching import PhraseMatcher, caption_counts
from tropescope.errors import MeasureError
from tropescope.measures.salience import CaptionCounts, agreement_with_raters, salience

ATTRIBUTES = ("sombrero", "dark skin", "rich", "poor")
CAPTIONS = [
    (0, "a man in a Sombrero"),
    (0, "two sombreros on the wall"),
    (1, "a poor farmer with dark skin"),
    (2, "enriched soil"),
    (2, "a rich woman"),
    (3, "Poor, poor man"),
]
IDENTITY = np.array([0, 0, 1, 1])


def _counts() -> CaptionCounts:
    image, texts = zip(*CAPTIONS, strict=True)
    return caption_counts(texts, np.array(image), IDENTITY, attributes=ATTRIBUTES, identities=2)


def test_the_formula_by_hand() -> None:
    counts = _counts()
    assert counts.named.tolist() == [[2, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]]
    value = salience(counts).value
    idf = np.log((1 + 6) / (1 + np.array([2, 1, 1, 2]))) + 1
    assert value[0] == pytest.approx(np.array([3, 2, 1, 2]) / (4 + 4) * idf)
    assert value[1] == pytest.approx(np.array([1, 1, 2, 2]) / (2 + 4) * idf)


def test_the_interval_holds_the_value_and_repeats() -> None:
    one, again = salience(_counts(), seed=3), salience(_counts(), seed=3)
    assert (one.low == again.low).all()
    assert (one.low <= one.value).all()
    assert (one.value <= one.high).all()
    estimate = one.estimate(0, 0)
    assert estimate.n == 2
    assert estimate.low <= estimate.value <= estimate.high


def test_an_identity_without_captions_is_not_defined() -> None:
    counts = CaptionCounts(np.zeros((1, 2)), np.array([3]), np.array([0]), 2)
    result = salience(counts)
    assert result.estimate(1, 0).value is None
    assert "no captions" in result.estimate(1, 0).notes[0]
    assert np.isfinite(result.value[0]).all()
    assert (
        salience(CaptionCounts(np.zeros((1, 0)), np.array([3]), np.array([0]), 1)).value.size == 0
    )


def test_impossible_counts() -> None:
    with pytest.raises(MeasureError, match="more captions"):
        CaptionCounts(np.array([[5.0]]), np.array([3]), np.array([0]), 1)
    with pytest.raises(MeasureError, match="for each image"):
        CaptionCounts(np.zeros((2, 1)), np.array([3]), np.array([0]), 1)
    with pytest.raises(MeasureError, match="resamples"):
        salience(_counts(), resamples=5)


@pytest.mark.parametrize(
    ("text", "phrase", "named"),
    [
        ("enriched", "rich", False),
        ("The RICH man", "rich", True),
        ("three tacos", "taco", True),
        ("a taco", "tacos", True),
        ("dark, brown skin", "dark skin", False),
        ("dark-skinned", "dark skin", False),
        ("dark skin", "dark skin", True),
        ("women", "woman", True),
        ("glass", "glasses", False),
        ("a farmer's hat", "farmer", True),
        ("ladies dancing", "lady", True),
        ("", "hat", False),
        ("boxes", "box", True),
        ("bus", "bu", False),
        ("it’s a cow", "cow", True),
    ],
)
def test_words_are_matched_whole_and_by_lemma(text: str, phrase: str, named: bool) -> None:
    assert bool(PhraseMatcher([phrase]).find(text)) is named


@given(st.text(alphabet="abcdefgstyiehxz'", min_size=1, max_size=12))
def test_a_lemma_is_its_own_lemma_often_enough_to_match(word: str) -> None:
    assert phrase_lemma(word) == phrase_lemma(word.upper())
    assert lemma(word) == lemma(word)


def test_agreement_with_raters() -> None:
    result = agreement_with_raters(np.array([True, True, False, False]), np.zeros(4, bool))
    assert result.precision == 0
    assert result.recall is None
    with pytest.raises(MeasureError, match="same attributes"):
        agreement_with_raters(np.zeros(2, bool), np.zeros(3, bool))


def test_a_hundred_thousand_captions() -> None:
    rng = np.random.default_rng(0)
    words = np.array([f"word{n}s" for n in range(400)] + ["a", "person", "in", "the", "street"])
    texts = [" ".join(row) for row in words[rng.integers(0, len(words), (100_000, 9))]]
    attributes = [f"word{n}" for n in range(0, 400, 2)] + ["word1 word2", "person in"]
    image = np.repeat(np.arange(2_000), 50)
    started = time.perf_counter()
    counts = caption_counts(
        texts, image, np.arange(2_000) // 20, attributes=attributes, identities=100
    )
    result = salience(counts, resamples=200)
    assert time.perf_counter() - started < 12
    assert counts.named.sum() > 100_000
    assert np.isfinite(result.value).all()
