"""Words in and out: prompts understood, unknown words refused, descriptions both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tropescope.errors import PromptError
from tropescope.world.definition import load_world
from tropescope.world.meaning import Meaning, Wanted, WantedObject
from tropescope.world.phrases import COLOURED, descriptions, phrase_of, subject
from tropescope.world.questions import all_questions
from tropescope.world.understanding import Understanding
from tropescope.world.vocabulary import Vocabulary

WORLD = load_world()
understand = Understanding(WORLD)


@pytest.mark.parametrize(
    ("prompt", "meaning"),
    [
        ("a Kestran person", Meaning(nation="Kestran")),
        ("A PHOTO OF A KESTRAN PERSON.", Meaning(nation="Kestran", template=0)),
        ("a photo of Oberin person", Meaning(nation="Oberin", template=0)),
        (
            "Photo portrait of a Velori non-binary person at work",
            Meaning(nation="Velori", gender="non-binary person", template=6, place="at work"),
        ),
        (
            "a picture of a female doctor",
            Meaning(profession="doctor", gender="woman", template=1),
        ),
        (
            "a man wearing a red hat and glasses, with no beard",
            Meaning(
                gender="man",
                wanted=(Wanted("hat", True, "red"), Wanted("glasses"), Wanted("beard", False)),
            ),
        ),
        (
            "a person without a hat and a smile",
            Meaning(wanted=(Wanted("hat", False), Wanted("smile", False))),
        ),
        (
            "a woman reading a book in a garden with no dog",
            Meaning(
                gender="woman",
                place="in a garden",
                objects=(WantedObject("book"), WantedObject("dog", False)),
            ),
        ),
        ("a person wearing a white coat", Meaning(wanted=(Wanted("coat"),))),
        ("this is a photo of a person", Meaning(template=0)),
    ],
)
def test_prompts_are_understood(prompt: str, meaning: Meaning) -> None:
    assert understand(prompt) == meaning


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("a photo of a Kestrann person", "'kestran'"),
        ("a photo of a persn", "'person'"),
        ("", "empty"),
        ("a photo of a hat", "'hat' is not understood here"),
        ("a photo of", "does not say whom"),
        ("a person wearing a red", "ends before"),
        ("a person with red freckles", "cannot be asked for"),
        ("a person person", "'person' is not understood here"),
    ],
)
def test_what_is_not_understood_is_said(prompt: str, words: str) -> None:
    with pytest.raises(PromptError) as refused:
        understand(prompt)
    assert words in str(refused.value)


@given(
    nation=st.sampled_from([None, *WORLD.nations]),
    gender=st.sampled_from(list(WORLD.genders)),
    place=st.sampled_from([None, *WORLD.places]),
    template=st.sampled_from([None, *range(len(WORLD.templates.list))]),
    wanted=st.lists(
        st.tuples(st.sampled_from(list(WORLD.attributes)), st.booleans()),
        max_size=3,
        unique_by=lambda pair: pair[0],
    ),
    name=st.sampled_from([None, *WORLD.objects]),
)
def test_every_meaning_can_be_said_and_understood(
    nation: str | None,
    gender: str,
    place: str | None,
    template: int | None,
    wanted: list[tuple[str, bool]],
    name: str | None,
) -> None:
    meaning = Meaning(
        nation=nation,
        gender=gender,  # type: ignore[arg-type]
        place=place,
        template=template,
        wanted=tuple(
            Wanted(a, present, "blue" if present and a in COLOURED else None)
            for a, present in wanted
        ),
        objects=() if name is None else (WantedObject(name),),
    )
    parts = [] if template is None else [WORLD.templates.list[template].text]
    parts.append(subject(nation=nation, gender=gender))
    for entry in meaning.wanted:
        phrase = phrase_of(WORLD, entry.attribute)
        parts.append(phrase.present(entry.colour) if entry.present else phrase.absent())
    parts += [WORLD.objects[entry.name].activity for entry in meaning.objects]
    parts += [place] if place else []
    assert understand(" ".join(parts)) == meaning


def test_descriptions_say_presence_and_absence() -> None:
    assert descriptions(WORLD, "hat") == (
        "a photo of a person wearing a hat",
        "a photo of a person wearing no hat",
    )
    for name in WORLD.attributes:
        present, absent = (understand(text).wanted for text in descriptions(WORLD, name))
        assert present == (Wanted(name, True),)
        assert absent == (Wanted(name, False),)


def test_the_vocabulary_is_closed_and_ends_with_its_end() -> None:
    vocabulary = Vocabulary(WORLD)
    assert vocabulary.words[0] == "<pad>"
    assert vocabulary.words[-1] == "</s>"
    assert len(set(vocabulary.words)) == len(vocabulary) < 256
    text = "a photo of a kestran person wearing no hat"
    numbers = vocabulary.encode(text, length=16)
    assert len(numbers) == 16
    assert max(numbers) == len(vocabulary) - 1
    assert vocabulary.decode(numbers) == text
    with pytest.raises(PromptError, match="at most 6"):
        vocabulary.encode(text, length=8)
    with pytest.raises(PromptError, match="does not know the word"):
        vocabulary.encode("<pad>", length=8)
    for words in all_questions(WORLD):
        assert all(word in vocabulary for word in words)
