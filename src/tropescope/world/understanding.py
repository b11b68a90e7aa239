"""Reading prompts: from words to a `Meaning`, or an error that says which word and what instead.

    opening? subject (verb? thing | activity | place)*

`a photo of · an Oberin woman · wearing a red hat and glasses · with no smile · in a kitchen`.
Articles, commas and "and" carry no meaning. "no" denies the next thing, "without" all that follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TypeVar, cast

from tropescope.errors import PromptError
from tropescope.world.definition import World
from tropescope.world.meaning import GenderWord, Meaning, Wanted, WantedObject
from tropescope.world.palette import CLOTH
from tropescope.world.phrases import ARTICLES, COLOURED, phrase_of
from tropescope.world.vocabulary import Vocabulary, split_words

Words = tuple[str, ...]
T = TypeVar("T")
_SILENT = frozenset((*ARTICLES, "and"))


def _telling(text: str) -> Words:
    return tuple(word for word in split_words(text) if word not in _SILENT)


class Understanding:
    """Reads the prompts of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.vocabulary = Vocabulary(world)
        self._known: dict[str, Meaning] = {}

    def __call__(self, prompt: str) -> Meaning:
        """What the prompt asks for. Raises PromptError with the word that is not understood."""
        if prompt not in self._known:
            if len(self._known) > 10_000:
                self._known.clear()
            self._known[prompt] = self._read(prompt)
        return self._known[prompt]

    @cached_property
    def _openings(self) -> dict[Words, int]:
        return {_telling(t.text): index for index, t in enumerate(self.world.templates.list)}

    @cached_property
    def _things(self) -> dict[Words, tuple[str, str]]:
        """Nouns, and whether each is an attribute or an object."""
        things = {
            _telling(phrase_of(self.world, name).noun): ("attribute", name)
            for name in self.world.attributes
        }
        return things | {_telling(name): ("object", name) for name in self.world.objects}

    @cached_property
    def _activities(self) -> dict[Words, str]:
        return {_telling(entry.activity): name for name, entry in self.world.objects.items()}

    @cached_property
    def _places(self) -> dict[Words, str]:
        return {_telling(phrase): phrase for phrase in self.world.places}

    @cached_property
    def _nations(self) -> dict[str, str]:
        return {name.casefold(): name for name in self.world.nations}

    @cached_property
    def _adjectives(self) -> dict[str, str]:
        return {g.adjective: word for word, g in self.world.genders.items() if g.adjective}

    def _read(self, prompt: str) -> Meaning:
        self.vocabulary.check(prompt)
        words = list(_telling(prompt))
        if words[:2] == ["this", "is"]:
            words = words[2:]
        template, words = self._opening(words)
        nation, profession, gender, words = self._subject(words, prompt)
        wanted, objects, place = self._rest(words, prompt)
        return Meaning(
            nation=nation,
            profession=profession,
            gender=cast("GenderWord", gender),
            place=place,
            template=template,
            wanted=tuple(dict.fromkeys(wanted)),
            objects=tuple(dict.fromkeys(objects)),
        )

    def _opening(self, words: list[str]) -> tuple[int | None, list[str]]:
        for length in range(min(5, len(words)), 0, -1):
            found = self._openings.get(tuple(words[:length]))
            if found is not None:
                return found, words[length:]
        return None, words

    def _subject(
        self, words: list[str], prompt: str
    ) -> tuple[str | None, str | None, str, list[str]]:
        nation: str | None = None
        gender: str | None = None
        for index, word in enumerate(words):
            if word in self._nations and nation is None:
                nation = self._nations[word]
            elif word in self._adjectives and gender is None:
                gender = self._adjectives[word]
            elif word in ("person", "people"):
                return nation, None, gender or "person", words[index + 1 :]
            elif word in ("woman", "man") and gender is None:
                return nation, None, word, words[index + 1 :]
            elif word in self.world.professions:
                return nation, word, gender or "person", words[index + 1 :]
            else:
                raise PromptError(
                    f"in {prompt!r} the word '{word}' is not understood here",
                    fix="begin with whom to draw: [nation] person, woman, man, or a profession",
                )
        raise PromptError(
            f"{prompt!r} does not say whom to draw",
            fix="add 'person', 'woman', 'man' or a profession",
        )

    def _rest(
        self, words: list[str], prompt: str
    ) -> tuple[list[Wanted], list[WantedObject], str | None]:
        wanted: list[Wanted] = []
        objects: list[WantedObject] = []
        place: str | None = None
        without = denied = False
        colour: str | None = None
        index = 0
        while index < len(words):
            word = words[index]
            rest = tuple(words[index:])
            thing, length = _longest(self._things, rest)
            activity, activity_length = _longest(self._activities, rest)
            where, where_length = _longest(self._places, rest)
            if where is not None:
                place, index = where, index + where_length
            elif activity is not None:
                objects.append(WantedObject(activity))
                index += activity_length
            elif thing is not None:
                kind, name = thing
                present = not (without or denied)
                if kind == "object":
                    objects.append(WantedObject(name, present))
                else:
                    wanted.append(self._attribute(name, present, colour))
                denied, colour, index = False, None, index + length
            elif word in ("wearing", "with"):
                without, denied, index = False, False, index + 1
            elif word == "without":
                without, index = True, index + 1
            elif word == "no":
                denied, index = True, index + 1
            elif word in CLOTH:
                colour, index = word, index + 1
            else:
                raise PromptError(
                    f"in {prompt!r} the word '{word}' is not understood here",
                    fix="after the person come 'wearing …', 'with …', an activity or a place",
                )
        if denied or colour is not None:
            raise PromptError(f"{prompt!r} ends before it says what", fix="name the thing")
        return wanted, objects, place

    def _attribute(self, name: str, present: bool, colour: str | None) -> Wanted:
        if colour is not None and (not present or name not in COLOURED):
            raise PromptError(
                f"the colour '{colour}' cannot be asked for here",
                fix=f"colours go with: {', '.join(COLOURED)}",
            )
        return Wanted(name, present, colour)


def _longest(table: Mapping[Words, T], words: Words) -> tuple[T | None, int]:
    for length in range(min(4, len(words)), 0, -1):
        if words[:length] in table:
            return table[words[:length]], length
    return None, 0
