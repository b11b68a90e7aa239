"""English lemmas by rule, enough to match nouns and simple verbs in captions.

Not a tagger: "painting" stays "painting", since it may be a noun. Plurals become singular; what a
rule would spoil is listed. Both sides of every comparison go through the same rules, so an odd
lemma does no harm as long as two different words do not meet in it.
"""

from __future__ import annotations

import re
from functools import lru_cache

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

_IRREGULAR = {
    "men": "man", "women": "woman", "children": "child", "people": "person", "persons": "person",
    "feet": "foot", "teeth": "tooth", "geese": "goose", "mice": "mouse", "oxen": "ox",
    "knives": "knife", "wives": "wife", "lives": "life", "leaves": "leaf", "wolves": "wolf",
    "scarves": "scarf", "thieves": "thief", "loaves": "loaf", "halves": "half", "shelves": "shelf",
    "calves": "calf", "hooves": "hoof", "elves": "elf", "selves": "self", "dice": "die",
    "potatoes": "potato", "tomatoes": "tomato", "heroes": "hero", "mosquitoes": "mosquito",
    "buffaloes": "buffalo", "mangoes": "mango", "volcanoes": "volcano", "cacti": "cactus",
    "ties": "tie", "pies": "pie", "lies": "lie", "shoes": "shoe", "toes": "toe", "axes": "axe",
    "buses": "bus", "gases": "gas", "lenses": "lens", "movies": "movie", "cookies": "cookie",
    "selfies": "selfie", "hippies": "hippie", "commies": "commie", "junkies": "junkie",
    "zombies": "zombie", "moustaches": "moustache", "mustaches": "mustache", "caches": "cache",
    "headaches": "headache", "dreadlocks": "dreadlock",
}  # fmt: skip
_UNCHANGED = frozenset({
    "glasses", "clothes", "trousers", "pants", "jeans", "shorts", "series", "species", "news",
    "always", "perhaps", "christmas", "sunglasses", "eyeglasses", "overseas", "chaos", "cosmos",
    "canvas", "atlas", "texas", "kansas", "athletics", "politics", "mathematics", "gymnastics",
    "gas", "lens", "aids", "does", "has", "was", "this", "his",
})  # fmt: skip


@lru_cache(maxsize=65536)
def lemma(word: str) -> str:
    """The singular, lower-case form of a word.

    >>> [lemma(word) for word in ("Sombreros", "ladies", "boxes", "women", "glasses", "dress")]
    ['sombrero', 'lady', 'box', 'woman', 'glasses', 'dress']
    """
    text = word.casefold().replace("’", "'")
    text = text.removesuffix("'s").removesuffix("'")
    if text in _IRREGULAR:
        return _IRREGULAR[text]
    if text in _UNCHANGED or len(text) < 4 or not text.endswith("s"):
        return text
    if text.endswith(("ss", "us", "is", "ous")):
        return text
    if text.endswith("ies"):
        return text[:-3] + "y"
    if text.endswith(("ches", "shes", "sses", "xes", "zzes")):
        return text[:-2]
    return text[:-1]


def lemmas(text: str) -> tuple[str, ...]:
    """The lemmas of the words of a text, in order."""
    return tuple(lemma(word) for word in WORD.findall(text))


def phrase_lemma(phrase: str) -> str:
    """A phrase by its lemmas.

    >>> phrase_lemma("  Dark  Skins ")
    'dark skin'
    """
    return " ".join(lemmas(phrase))
