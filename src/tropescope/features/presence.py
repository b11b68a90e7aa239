"""Attribute presence: for each usable image and attribute, how near it is to d+ and to d−."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tropescope.features.embeddings import vectors_of
from tropescope.features.rows import ImageRow, image_rows
from tropescope.store.canonical import digest
from tropescope.store.folder import RunFolder
from tropescope.store.tables import fingerprint_of, table_batches, write_table

TABLE = "presence"

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("attribute", pa.string()),
        ("similarity_present", pa.float32()),
        ("similarity_absent", pa.float32()),
    ]
)


@dataclass(frozen=True, slots=True)
class Scores:
    """Similarities of one image to the two texts of every attribute, in the attributes' order."""

    present: NDArray[np.float32]
    absent: NDArray[np.float32]


def text_scores(
    embeddings: Path, present: NDArray[np.float32], absent: NDArray[np.float32]
) -> dict[str, Scores]:
    """Cosines of every embedded image with the attributes' texts, in one streaming pass."""
    scores: dict[str, Scores] = {}
    for batch in table_batches(embeddings):
        vectors = vectors_of(batch)
        near, far = vectors @ present.T, vectors @ absent.T
        for i, name in enumerate(batch.column(0).to_pylist()):
            scores[name] = Scores(near[i], far[i])
    return scores


def label_scores(
    row: ImageRow, attributes: Sequence[str], *, sensitivity: float, specificity: float
) -> Scores:
    """Known labels as similarities 1 and 0, wrong at the given rates; NaN where no label is known.

    Whether a label is read wrongly depends only on the image's key and the attribute, so that an
    erring observer errs the same way every time.
    """
    labels = row.known().get("labels", {})
    present = np.full(len(attributes), np.nan, dtype=np.float32)
    for i, attribute in enumerate(attributes):
        label = labels.get(attribute)
        if label is not None:
            draw = hashlib.sha256(f"observer\0{row.key}\0{attribute}".encode()).digest()[:8]
            share = int.from_bytes(draw, "big") / 2**64
            right = share < (sensitivity if label else specificity)
            present[i] = bool(label) == right
    return Scores(present, 1 - present)


def write_presence_table(
    folder: RunFolder,
    attributes: Sequence[str],
    scores_of: Callable[[ImageRow], Scores],
    *,
    fingerprint: str,
) -> None:
    """One row per usable image and attribute; images without a judgement are left out."""

    def batches() -> Iterator[pa.RecordBatch]:
        pending: list[tuple[str, Scores]] = []
        for row in image_rows(folder, facts=True):
            if row.usable:
                pending.append((row.key, scores_of(row)))
            if len(pending) == 1024:
                yield _to_batch(pending, attributes)
                pending = []
        if pending:
            yield _to_batch(pending, attributes)

    write_table(folder.table(TABLE), SCHEMA, batches(), fingerprint=fingerprint)


def judged_attributes(folder: RunFolder) -> set[str]:
    """Attributes for which at least one image has a judgement."""
    found: set[str] = set()
    for batch in table_batches(folder.table(TABLE), ["attribute"]):
        found.update(batch.column(0).unique().to_pylist())
    return found


def presence_fingerprint(images: str, judge: object, texts: object) -> str:
    return digest({"images": images, "judge": judge, "texts": texts})


def is_current(folder: RunFolder, fingerprint: str) -> bool:
    return fingerprint_of(folder.table(TABLE)) == fingerprint


def _to_batch(rows: list[tuple[str, Scores]], attributes: Sequence[str]) -> pa.RecordBatch:
    present = np.concatenate([scores.present for _, scores in rows])
    absent = np.concatenate([scores.absent for _, scores in rows])
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([key for key, _ in rows for _ in attributes]),
            pa.array(list(attributes) * len(rows)),
            pa.array(present),
            pa.array(absent),
        ],
        schema=SCHEMA,
    )
    return batch.filter(pa.array(~np.isnan(present)))
