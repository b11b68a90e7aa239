"""The English indefinite article before a phrase."""

from __future__ import annotations

import re

# Sound decides, not spelling. Prefixes that start with a vowel letter but a consonant sound …
_CONSONANT_SOUND = re.compile(
    r"(?:eu|ew|once\b|one\b|one-|u(?:ae\b|biq|fo|gand|ig|k\b|kr|kulele|n\b|n(?:i(?![dmn])|anim)"
    r"|r(?:anium|in|ol|ug)|s(?:[aeiou]|[- .]|a\b)|\.|t(?:ah|e\b|en|il|op)|yg|s$))",
    re.IGNORECASE,
)
# … and the reverse: a silent h.
_VOWEL_SOUND = re.compile(r"(?:hei?r(?:loom|ess|s)?\b|honou?r|hour|honest)", re.IGNORECASE)
# Letters read by their names when a word is an abbreviation such as "MRI" or "X-ray".
_SPELLED_WITH_VOWEL = re.compile(r"(?:[AEFHILMNORSX][A-Z0-9]+\b|[AEFHILMNORSX]-)")
_READ_AS_WORDS = re.compile(r"(?:NATO|NASA|FIFA|SWAT|NASDAQ|NIMBY|SIM|LED|RAM)\b")
_ARTICLE_BEFORE = re.compile(r"\b(a|an)(\s+)\Z", re.IGNORECASE)


def article(phrase: str) -> str:
    """'a' or 'an'.

    >>> [article(word) for word in ("Iranian person", "European", "hour", "user", "MRI nurse")]
    ['an', 'a', 'an', 'a', 'an']
    """
    word = phrase.lstrip(" \"'“‘(")
    if _SPELLED_WITH_VOWEL.match(word) and not _READ_AS_WORDS.match(word):
        return "an"
    if _VOWEL_SOUND.match(word) and not word.lower().startswith("her"):
        return "an"
    if _CONSONANT_SOUND.match(word):
        return "a"
    return "an" if word[:1].lower() in "aeiou" and word else "a"


def correct_article(before: str, phrase: str) -> str:
    """The text before a phrase, with an article at its end made to agree with the phrase.

    >>> correct_article("A photo of a ", "Iranian person")
    'A photo of an '
    """
    found = _ARTICLE_BEFORE.search(before)
    if not found:
        return before
    right = article(phrase)
    if found.group(1)[0].isupper():
        right = right.capitalize()
    return before[: found.start()] + right + found.group(2)
