"""The closed list of words, and words as numbers for the small models.

Padding is 0, the start is 1 and the end has the *largest* number: transformers pools CLIP text at
the largest id when it is given an end token of the old kind, and then texts after a rare word would
all look the same.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain

from tropescope.errors import PromptError
from tropescope.world.definition import World
from tropescope.world.palette import CLOTH
from tropescope.world.phrases import ARTICLES, phrase_of

PAD, START, END = "<pad>", "<s>", "</s>"

#: Words of the grammar itself: joints, questions and answers.
GRAMMAR_WORDS = (
    *ARTICLES,
    *("and", "no", "wearing", "with", "without", "of", "this", "is", "does", "have", "or"),
    *("what", "word", "best", "describes", "person's", "appearance", "beside", "yes", "nothing"),
    *("there", "people", "bald", "bearded", "old", "elegant", "happy", "serious", "casual"),
)


def split_words(text: str) -> list[str]:
    """Lower-case words; commas and final punctuation are dropped."""
    plain = re.sub(r"[,;:]", " ", text.casefold())
    return [word for raw in plain.split() if (word := raw.strip('.?!"()'))]


class Vocabulary:
    """Every word that a text of this world may contain."""

    def __init__(self, world: World) -> None:
        self.world = world

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All tokens in the order of their numbers."""
        world = self.world
        texts = chain(
            GRAMMAR_WORDS,
            (template.text for template in world.templates.list),
            world.genders,
            (gender.adjective for gender in world.genders.values()),
            (phrase_of(world, name).noun for name in world.attributes),
            CLOTH,
            world.nations,
            world.professions,
            world.places,
            world.objects,
            (entry.activity for entry in world.objects.values()),
        )
        found = dict.fromkeys(word for text in texts for word in split_words(text))
        return (PAD, START, *found, END)

    @cached_property
    def ids(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self.ids and not word.startswith("<")

    def check(self, text: str) -> list[str]:
        """The words of a text; a word the world does not know is an error with near words."""
        words = split_words(text)
        if not words:
            raise PromptError("the text is empty", fix="write whom to draw: 'a photo of a person'")
        for word in words:
            if word not in self:
                raise PromptError(
                    f"the reference world does not know the word '{word}'", fix=self._near(word)
                )
        return words

    def _near(self, word: str) -> str:
        near = difflib.get_close_matches(word, self.words[2:-1], n=3, cutoff=0.5)
        if near:
            return f"did you mean {' or '.join(repr(found) for found in near)}?"
        return "see docs/world.md for its words"

    def encode(self, text: str, *, length: int) -> list[int]:
        """Start, words, end, padded; a text that is too long is an error, never cut."""
        words = self.check(text) if text.strip() else []
        if len(words) + 2 > length:
            raise PromptError(
                f"the text has {len(words)} words; this model reads at most {length - 2}",
                fix="shorten the text",
            )
        numbers = [1, *(self.ids[word] for word in words), len(self) - 1]
        return numbers + [0] * (length - len(numbers))

    def word_ids(self, text: str) -> list[int]:
        """The numbers of a text's words alone."""
        return [self.ids[word] for word in split_words(text)]

    def decode(self, numbers: Sequence[int] | Iterable[int]) -> str:
        words = (self.words[int(number)] for number in numbers)
        return " ".join(word for word in words if word not in (PAD, START, END))
