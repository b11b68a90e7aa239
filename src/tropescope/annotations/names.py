"""One spelling for each name: case, spaces, plurals and other names of the same thing.

Released files write "Zimbabwe" for "Zimbabwean" and "sombreros" for "sombrero". A name is looked
up exactly first, then without case, then by its known other names, then by its lemma; a lemma that
fits two names fits none.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from tropescope.annotations.lemmas import phrase_lemma


def plain(name: str) -> str:
    """A name without case and with single spaces."""
    return " ".join(name.casefold().split())


class Names:
    """A list of names and the ways in which they may be written."""

    def __init__(self, names: Iterable[str], others: Mapping[str, Iterable[str]] | None = None):
        self.all = tuple(dict.fromkeys(names))
        self._exact = {plain(name): name for name in self.all}
        self._other: dict[str, str | None] = {}
        for name in self.all:
            for other in (others or {}).get(name, ()):
                self._add(self._other, plain(other), name)
        self._lemma: dict[str, str | None] = {}
        for name in self.all:
            self._add(self._lemma, phrase_lemma(name), name)
        self._found: dict[str, str | None] = {}

    @staticmethod
    def _add(table: dict[str, str | None], key: str, name: str) -> None:
        table[key] = name if table.get(key, name) == name else None

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def find(self, name: str) -> str | None:
        """The name as we spell it, or None.

        >>> Names(["sombrero", "dark skin"]).find(" Sombreros")
        'sombrero'
        """
        if name not in self._found:
            key = plain(name)
            found = self._exact.get(key) or self._other.get(key)
            self._found[name] = found or (self._lemma.get(phrase_lemma(name)) if key else None)
        return self._found[name]

    def suggestion(self, name: str) -> str:
        """“did you mean …?”, or what to do when nothing is near."""
        near = difflib.get_close_matches(plain(name), [*self._exact, *self._other], n=1)
        if not near:
            return ""
        return f"did you mean {(self._exact.get(near[0]) or self._other.get(near[0]))!r}?"
