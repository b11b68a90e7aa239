"""Which attributes a caption names: whole words, any case, singular or plural.

"Rich" is not in "enriched", "tacos" names "taco", and "dark skin" needs both words side by side.
A caption is turned into lemmas once; one-word attributes are then a set lookup and longer ones a
lookup of neighbouring words, so the cost does not grow with the number of attributes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tropescope.annotations.lemmas import lemmas
from tropescope.measures.salience import CaptionCounts

IntArray = NDArray[np.int64]


class PhraseMatcher:
    """Finds a fixed list of phrases in texts."""

    def __init__(self, phrases: Sequence[str]):
        self.phrases = tuple(phrases)
        self._by_lemmas: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for number, phrase in enumerate(self.phrases):
            key = lemmas(phrase)
            if key:
                self._by_lemmas[key].append(number)
        self._single = {
            key[0]: numbers for key, numbers in self._by_lemmas.items() if len(key) == 1
        }
        self._starts: dict[str, list[tuple[tuple[str, ...], list[int]]]] = defaultdict(list)
        for key, numbers in self._by_lemmas.items():
            if len(key) > 1:
                self._starts[key[0]].append((key, numbers))

    def find(self, text: str) -> frozenset[int]:
        """Numbers of the phrases that the text names.

        >>> sorted(PhraseMatcher(["taco", "dark skin", "rich"]).find("Tacos, enriched dark skin"))
        [0, 1]
        """
        words = lemmas(text)
        found: set[int] = set()
        for place, word in enumerate(words):
            if word in self._single:
                found.update(self._single[word])
            if word in self._starts:
                for key, numbers in self._starts[word]:
                    if words[place : place + len(key)] == key:
                        found.update(numbers)
        return frozenset(found)


def caption_counts(
    captions: Iterable[str],
    image: IntArray,
    identity_of_image: IntArray,
    *,
    attributes: Sequence[str],
    identities: int,
) -> CaptionCounts:
    """Count, for each image, the captions that name each attribute; `image[i]` owns caption i."""
    matcher = PhraseMatcher(attributes)
    images = len(identity_of_image)
    named = np.zeros((images, len(attributes)))
    for owner, caption in zip(image.tolist(), captions, strict=True):
        hits = matcher.find(caption)
        if hits:
            named[owner, list(hits)] += 1
    per_image = np.bincount(image, minlength=images).astype(np.int64)
    return CaptionCounts(named, per_image, identity_of_image, identities)
