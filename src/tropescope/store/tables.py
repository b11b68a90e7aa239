"""Tables as Parquet files: written whole, sorted, without times, with a fingerprint.

The fingerprint in a table's metadata says from which inputs it was made. A stage whose table
carries the right fingerprint has nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tropescope.errors import Corruption
from tropescope.store.atomic import replacing

_FINGERPRINT = b"tropescope.fingerprint"


def write_table(
    path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, fingerprint: str
) -> None:
    """Stream record batches into one file that appears only when it is complete."""
    marked = schema.with_metadata({_FINGERPRINT: fingerprint.encode()})
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(temporary, marked, compression="zstd", write_statistics=False) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch.replace_schema_metadata(marked.metadata))


def fingerprint_of(path: Path) -> str | None:
    """The fingerprint of a table, or None where there is no readable table."""
    if not path.exists():
        return None
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (pa.ArrowInvalid, OSError):
        return None
    value = metadata.get(_FINGERPRINT)
    return None if value is None else str(value, "ascii")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Say which table is missing or damaged, and that it can be made again."""
    try:
        yield
    except FileNotFoundError:
        raise Corruption(
            f"the table {path.name} is missing from the run folder",
            fix="run the study again: the same command rebuilds it",
        ) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise Corruption(
            f"the table {path.name} cannot be read: {error}",
            fix="delete it and run the study again: the same command rebuilds it",
        ) from None


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    with _readable(path):
        return pq.read_table(path, columns=columns)


def table_batches(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a table, a bounded number at a time."""
    with _readable(path), pq.ParquetFile(path) as file:
        yield from file.iter_batches(batch_size=1024, columns=columns)
