"""The images a study has, read back from its table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tropescope.generation.table import TABLE
from tropescope.store.folder import RunFolder
from tropescope.store.tables import read_table

_COLUMNS = [
    "key", "model", "concept", "template", "prompt", "replicate", "outcome", "reason",
    "pixels_sha256", "path", "facts",
]  # fmt: skip


@dataclass(frozen=True)
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
    facts: str

    @property
    def usable(self) -> bool:
        return self.outcome == "generated"

    @cached_property
    def known(self) -> dict[str, Any]:
        """Facts that came with the image."""
        return json.loads(self.facts) if self.facts else {}


def image_rows(folder: RunFolder) -> Iterator[ImageRow]:
    """All rows in the plan's order."""
    table = read_table(folder.table(TABLE), _COLUMNS)
    for batch in table.to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            yield ImageRow(**row)


def unique_images(folder: RunFolder) -> dict[str, str]:
    """Path of each distinct usable image by its pixels' hash, in order of first appearance."""
    found: dict[str, str] = {}
    for row in image_rows(folder):
        if row.usable and row.pixels_sha256 is not None and row.path is not None:
            found.setdefault(row.pixels_sha256, row.path)
    return found
