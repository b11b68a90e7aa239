"""The images table: one row per planned image, in the plan's order, without times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import pyarrow as pa

from tropescope.generation.plan import Plan, PlannedImage
from tropescope.store.canonical import canonical_json, digest_lines
from tropescope.store.folder import RunFolder
from tropescope.store.ledger import Record
from tropescope.store.tables import fingerprint_of, write_table

TABLE = "images"

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("model", pa.string()),
        ("concept", pa.string()),
        ("template", pa.string()),
        ("prompt", pa.string()),
        ("pair_group", pa.string()),
        ("replicate", pa.int32()),
        ("seed", pa.int64()),
        ("outcome", pa.string()),
        ("reason", pa.string()),
        ("revised_prompt", pa.string()),
        ("pixels_sha256", pa.string()),
        ("file_sha256", pa.string()),
        ("path", pa.string()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("facts", pa.string()),
    ]
)


def write_images_table(plan: Plan, records: Mapping[str, Record], folder: RunFolder) -> str:
    """Write the table unless it is already the right one; return its fingerprint."""
    fingerprint = digest_lines(_described(plan, records))
    path = folder.table(TABLE)
    if fingerprint_of(path) != fingerprint:
        rows = (_row(image, records[image.key]) for image in plan.images)
        write_table(path, SCHEMA, _batched(rows), fingerprint=fingerprint)
    return fingerprint


def _described(plan: Plan, records: Mapping[str, Record]) -> Iterator[str]:
    yield plan.fingerprint()
    for image in plan.images:
        record = records[image.key]
        yield (
            f"{image.key} {record['outcome']} {record.get('file_sha256')} {record['reason']} "
            f"{canonical_json(record['facts'])}"
        )


def _row(image: PlannedImage, record: Record) -> dict[str, object]:
    return {
        "key": image.key,
        "model": image.model,
        "concept": image.prompt.concept,
        "template": image.prompt.template,
        "prompt": image.prompt.text,
        "pair_group": image.prompt.pair_group,
        "replicate": image.replicate,
        "seed": image.seed,
        "outcome": record["outcome"],
        "reason": record["reason"],
        "revised_prompt": record["revised_prompt"],
        "pixels_sha256": record.get("pixels_sha256"),
        "file_sha256": record.get("file_sha256"),
        "path": record.get("path"),
        "width": record.get("width"),
        "height": record.get("height"),
        "facts": canonical_json(record["facts"]) if record["facts"] else "",
    }


def _batched(rows: Iterator[dict[str, object]]) -> Iterator[pa.RecordBatch]:
    while chunk := list(islice(rows, 512)):
        yield _to_batch(chunk)


def _to_batch(rows: Sequence[dict[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)
