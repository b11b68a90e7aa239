from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tropescope.prompts.articles import article
from tropescope.prompts.rendering import render


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *((w, "an") for w in ["Iranian", "hour", "heir", "honest", "MRI", "X-ray", "umbrella", "uninformed", "urban", "elderly", "African-American", "Oberin", "unusual", "Urdu", "owl", "heiress", "unimportant", "unidentified", "Uzbek", "FBI"]),
        *((w, "a") for w in ["European", "user", "university", "unicorn", "one-armed", "US-born", "Ugandan", "Uruguayan", "Kestran", "hotel", "hero", "herb", "Ukrainian", "union", "usual", "utility", "Uyghur", "Ute", "UN worker", "U.S. citizen", "UAE citizen", "NATO soldier", "Honolulu resident", "woman"]),
    ],
)  # fmt: skip
def test_the_article_follows_the_sound(word: str, expected: str) -> None:
    assert article(word) == expected


@pytest.mark.parametrize(
    ("template", "phrase", "expected"),
    [
        ("A photo of a {concept}", "Iranian person", "A photo of an Iranian person"),
        ("A {concept} at work", "Iranian person", "An Iranian person at work"),
        ("AN {concept}", "doctor", "A doctor"),
        ("the {concept}", "doctor", "the doctor"),
        ("a big {concept}", "owl", "a big owl"),
        ("extra {concept}", "owl", "extra owl"),
    ],
)
def test_articles_are_corrected(template: str, phrase: str, expected: str) -> None:
    assert render(template, phrase, articles="corrected") == expected


def test_published_strings_stay_as_printed() -> None:
    assert render("an {concept} person", "id", articles="published") == "an id person"
    template = "A photo of a {concept}"
    assert render(template, "Iranian person", articles="published") == "A photo of a Iranian person"


@given(st.text(min_size=1), st.text(), st.text())
def test_a_phrase_is_never_interpreted(phrase: str, before: str, after: str) -> None:
    template = before.replace("{", "") + "{concept}" + after.replace("{", "")
    assert phrase in render(template, phrase, articles="corrected")
