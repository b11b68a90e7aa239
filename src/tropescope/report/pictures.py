"""The images behind a number: which were judged to show the attribute, which not, how clearly.

The margin of an image is its similarity to the text for presence minus that to the text for
absence. Most certain are the images with the largest margins, least certain those nearest to 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropescope.features.presence import TABLE as PRESENCE
from tropescope.features.rows import ImageRow, image_rows
from tropescope.findings.answers import Answer
from tropescope.findings.results import Results
from tropescope.store.folder import RunFolder
from tropescope.store.tables import table_batches


@dataclass(frozen=True, slots=True)
class Picture:
    key: str
    prompt: str
    path: str
    margin: float


@dataclass(frozen=True, slots=True)
class Side:
    """The images on one side of the judgement. `least` is empty where `most` holds them all."""

    total: int
    most: tuple[Picture, ...]
    least: tuple[Picture, ...]
    equal: bool
    """All margins are the same, so none is more certain than another."""

    @property
    def pictures(self) -> tuple[Picture, ...]:
        return self.most + self.least


@dataclass(frozen=True, slots=True)
class Gallery:
    answer: Answer
    present: Side
    absent: Side

    @property
    def pictures(self) -> tuple[Picture, ...]:
        return self.present.pictures + self.absent.pictures


class Evidence:
    """The judged images of a run, by the answers they stand behind."""

    def __init__(self, folder: RunFolder, results: Results) -> None:
        self._items = results.item_sets
        self._images: dict[str, ImageRow] = {}
        for row in image_rows(folder):
            if row.usable and row.path is not None:
                self._images.setdefault(row.key, row)
        self._position = {key: i for i, key in enumerate(self._images)}
        self._margins: dict[str, NDArray[np.float32]] = {}
        if folder.table(PRESENCE).exists():
            self._read_margins(folder)

    def _read_margins(self, folder: RunFolder) -> None:
        for batch in table_batches(folder.table(PRESENCE)):
            present = batch.column("similarity_present").to_numpy(zero_copy_only=False)
            absent = batch.column("similarity_absent").to_numpy(zero_copy_only=False)
            names = batch.column("attribute").to_pylist()
            keys = batch.column("key").to_pylist()
            for key, name, margin in zip(keys, names, present - absent, strict=True):
                position = self._position.get(key)
                if position is not None:
                    if name not in self._margins:
                        self._margins[name] = np.full(len(self._images), np.nan, dtype=np.float32)
                    self._margins[name][position] = margin

    def image(self, key: str) -> ImageRow | None:
        """A usable image of the run."""
        return self._images.get(key)

    def shows(self, key: str, attribute: str) -> bool | None:
        """Whether an image was judged to show the attribute; None where it was not judged."""
        position, margins = self._position.get(key), self._margins.get(attribute)
        if position is None or margins is None or np.isnan(margins[position]):
            return None
        return bool(margins[position] > 0)

    def gallery(self, answer: Answer, *, each: int) -> Gallery:
        """`each` of the most and `each` of the least certain images on either side."""
        margins = self._margins.get(answer.attribute)
        behind = self._items[answer.rate.items].keys if answer.rate.items in self._items else ()
        judged: list[tuple[str, float]] = []
        if margins is not None:
            for key in behind:
                position = self._position.get(key)
                if position is not None and not np.isnan(margins[position]):
                    judged.append((key, float(margins[position])))
        return Gallery(
            answer=answer,
            present=self._side([pair for pair in judged if pair[1] > 0], each),
            absent=self._side([pair for pair in judged if not pair[1] > 0], each),
        )

    def _side(self, judged: Sequence[tuple[str, float]], each: int) -> Side:
        total = len(judged)
        margins = {margin for _, margin in judged}
        if total > 2 * each and len(margins) == 1:
            # Evenly over the plan, so that several prompts are seen.
            shown = [judged[i * total // (2 * each)] for i in range(2 * each)]
            return Side(total, self._pictures(shown), (), equal=True)
        ordered = sorted(judged, key=lambda pair: -abs(pair[1]))
        if total <= 2 * each:
            return Side(total, self._pictures(ordered), (), equal=len(margins) <= 1)
        most, least = self._pictures(ordered[:each]), self._pictures(ordered[-each:])
        return Side(total, most, least, equal=False)

    def _pictures(self, judged: Sequence[tuple[str, float]]) -> tuple[Picture, ...]:
        found = []
        for key, margin in judged:
            row = self._images[key]
            found.append(Picture(key, row.prompt, row.path or "", margin))
        return tuple(found)
