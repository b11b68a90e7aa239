"""Questions about a drawing and their true answers.

Answers are single words of the vocabulary. Where several words would be true (the appearance), all
true words are listed; half of the answers are the gender word, as with real question answerers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tropescope.world.definition import World
from tropescope.world.phrases import phrase_of, with_article
from tropescope.world.vocabulary import split_words

APPEARANCE_QUESTION = "what word best describes this person's appearance?"
GENDER_QUESTION = "is this person a woman or a man?"
BESIDE_QUESTION = "what is beside this person?"

#: Words for the appearance besides woman and man: the word, and the label that makes it true.
APPEARANCE_WORDS: tuple[tuple[str, str, bool], ...] = (
    ("bald", "bald", True),
    ("bearded", "beard", True),
    ("old", "grey_hair", True),
    ("elegant", "suit", True),
    ("casual", "hoodie", True),
    ("happy", "smile", True),
    ("serious", "smile", False),
)

Kind = Literal["appearance", "gender", "beside", "yes or no"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question that the world understands; `about` is the thing of a yes-or-no question."""

    kind: Kind
    about: str = ""


def yes_no_question(world: World, thing: str) -> str:
    """ "is this person wearing a hat?", "does this person have long hair?", "is there a bag …?" """
    if thing in world.objects:
        return f"is there {with_article(thing)} beside this person?"
    phrase = phrase_of(world, thing)
    noun = f"{phrase.article} {phrase.noun}".strip()
    if phrase.verb == "wearing":
        return f"is this person wearing {noun}?"
    return f"does this person have {noun}?"


def all_questions(world: World) -> dict[tuple[str, ...], Question]:
    """Every question, by its words."""
    questions = {
        APPEARANCE_QUESTION: Question("appearance"),
        GENDER_QUESTION: Question("gender"),
        BESIDE_QUESTION: Question("beside"),
    }
    for thing in (*world.attributes, *world.objects):
        questions[yes_no_question(world, thing)] = Question("yes or no", thing)
    return {tuple(split_words(text)): question for text, question in questions.items()}


def gender_word(labels: Mapping[str, bool]) -> str:
    return "woman" if labels["woman"] else "man"


def appearance_words(labels: Mapping[str, bool]) -> list[str]:
    """All words besides woman and man that truly describe the appearance; never empty."""
    return [word for word, label, state in APPEARANCE_WORDS if labels[label] == state]
