"""The images a study has, read back from its table."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tropescope.generation.table import TABLE
from tropescope.store.folder import RunFolder
from tropescope.store.tables import table_batches

_COLUMNS = [
    "key", "model", "concept", "template", "prompt", "replicate", "outcome", "reason",
    "pixels_sha256", "path",
]  # fmt: skip
_REPEATED = ("model", "concept", "template", "prompt", "outcome", "reason")


@dataclass(frozen=True, slots=True)
class ImageRow:
    key: str
    model: str
    concept: str
    template: str
    prompt: str
    replicate: int
    outcome: str
    reason: str
    pixels_sha256: str | None
    path: str | None
    facts: str = ""

    @property
    def usable(self) -> bool:
        return self.outcome == "generated"

    def known(self) -> dict[str, Any]:
        """Facts that came with the image, where they were read."""
        return json.loads(self.facts) if self.facts else {}


def image_rows(folder: RunFolder, *, facts: bool = False) -> Iterator[ImageRow]:
    """All rows in the plan's order, a bounded number at a time; facts only where asked for."""
    columns = [*_COLUMNS, "facts"] if facts else _COLUMNS
    for batch in table_batches(folder.table(TABLE), columns):
        for row in batch.to_pylist():
            for name in _REPEATED:
                row[name] = sys.intern(row[name])
            yield ImageRow(**row)


def unique_images(folder: RunFolder) -> dict[str, str]:
    """Path of each distinct usable image by its pixels' hash, in order of first appearance."""
    found: dict[str, str] = {}
    for row in image_rows(folder):
        if row.usable and row.pixels_sha256 is not None and row.path is not None:
            found.setdefault(row.pixels_sha256, row.path)
    return found
