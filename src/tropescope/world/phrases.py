"""How the world's things are said: "wearing a hat", "wearing no hat", "with a red cap".

All texts of the world (prompts, captions, descriptions, questions) are put together from here, so
that every word of them is in the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

from tropescope.world.definition import World
from tropescope.world.palette import CLOTH

ARTICLES = ("a", "an", "the")

#: Attributes whose colour can be named: what is coloured is the thing itself.
COLOURED = ("turban", "headscarf", "hat", "cap", "hoodie", "overalls")


@dataclass(frozen=True, slots=True)
class Phrase:
    """An attribute's phrase taken apart: ``wearing`` · ``a`` · ``white coat``."""

    verb: str
    article: str
    noun: str

    def present(self, colour: str | None = None) -> str:
        noun = f"{colour} {self.noun}" if colour else self.noun
        return f"{self.verb} {with_article(noun) if self.article else noun}"

    def absent(self) -> str:
        return f"{self.verb} no {self.noun}"


def with_article(words: str) -> str:
    """'an' before a written vowel; no word of the world is spoken otherwise."""
    return f"{'an' if words[0].lower() in 'aeiou' else 'a'} {words}"


def phrase_of(world: World, attribute: str) -> Phrase:
    verb, *rest = world.attributes[attribute].phrase.split()
    article = rest[0] if rest[0] in ARTICLES else ""
    return Phrase(verb=verb, article=article, noun=" ".join(rest[1:] if article else rest))


def descriptions(
    world: World, attribute: str, *, subject: str = "a photo of a person"
) -> tuple[str, str]:
    """d+ and d−: the texts that describe an attribute's presence and its absence."""
    phrase = phrase_of(world, attribute)
    return f"{subject} {phrase.present()}", f"{subject} {phrase.absent()}"


def subject(
    *,
    nation: str | None = None,
    profession: str | None = None,
    gender: str = "person",
    adjective: str = "",
) -> str:
    """The noun phrase for whom a prompt asks: "an Oberin woman", "a Kestran female doctor"."""
    if profession is not None:
        words = " ".join(word for word in (nation, adjective, profession) if word)
    else:
        words = " ".join(word for word in (nation, gender) if word)
    return with_article(words)


def object_phrase(name: str) -> str:
    return f"with {with_article(name)}"


def colour_words() -> tuple[str, ...]:
    return tuple(CLOTH)
