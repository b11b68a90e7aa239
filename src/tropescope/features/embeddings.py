"""Image embeddings: one vector per distinct image and encoder, computed once.

While the stage runs, each batch is a small Parquet part that appears whole or not at all. When all
are there they are joined, a bounded number of rows at a time, into one table and removed. A changed
study reuses every vector the table already has.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tropescope.engine.background import read_ahead
from tropescope.engine.memory import BatchLimit, fitting_calls
from tropescope.engine.progress import Progress
from tropescope.errors import ModelError
from tropescope.models.protocol import BatchTooLarge
from tropescope.store.canonical import digest, digest_lines
from tropescope.store.folder import RunFolder
from tropescope.store.tables import fingerprint_of, read_table, table_batches, write_table


class ImageEncoder(Protocol):
    def identity(self) -> dict[str, Any]: ...

    def prepare(self, images: Sequence[NDArray[np.uint8]]) -> Any: ...

    def encode_prepared(self, prepared: Any) -> NDArray[np.float32]: ...


def table_name(encoder: ImageEncoder) -> str:
    return f"embeddings-{digest(encoder.identity())[:12]}"


def _schema(size: int) -> pa.Schema:
    return pa.schema([("image", pa.string()), ("embedding", pa.list_(pa.float32(), size))])


def _to_batch(names: Sequence[str], vectors: NDArray[np.float32]) -> pa.RecordBatch:
    size = vectors.shape[1]
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    column = pa.FixedSizeListArray.from_arrays(flat, size)
    return pa.RecordBatch.from_arrays([pa.array(names), column], schema=_schema(size))


def vectors_of(batch: pa.RecordBatch) -> NDArray[np.float32]:
    """The embeddings of a batch as a matrix."""
    column = batch.column(batch.schema.get_field_index("embedding"))
    flat = column.flatten().to_numpy(zero_copy_only=False)
    return np.asarray(flat.reshape(len(column), -1), dtype=np.float32)


def embed_images(
    images: dict[str, str],
    encoder: ImageEncoder,
    *,
    batch_size: int,
    folder: RunFolder,
    progress: Progress,
) -> Path:
    """Embed what is not embedded yet; return the path of the finished table."""
    name = table_name(encoder)
    path = folder.table(name)
    fingerprint = digest_lines([name, *images])
    if fingerprint_of(path) == fingerprint:
        return path
    have = set(read_table(path, ["image"])["image"].to_pylist()) if path.exists() else set()
    missing = [image for image in images if image not in have]
    chunks = [missing[i : i + batch_size] for i in range(0, len(missing), batch_size)]
    parts = folder.parts(name)
    todo = [chunk for chunk in chunks if not _part(parts, chunk).exists()]
    with progress.stage("embeddings", sum(map(len, todo))) as stage:
        for chunk in _embed_chunks(todo, images, encoder, folder, parts):
            stage.advance(len(chunk))
    write_table(
        path,
        _schema_of(path, parts, chunks),
        _joined(path, parts, chunks, set(images)),
        fingerprint=fingerprint,
    )
    shutil.rmtree(parts, ignore_errors=True)
    return path


def _part(parts: Path, chunk: Sequence[str]) -> Path:
    return parts / f"{digest_lines(chunk)[:24]}.parquet"


def _embed_chunks(
    chunks: Sequence[Sequence[str]],
    images: dict[str, str],
    encoder: ImageEncoder,
    folder: RunFolder,
    parts: Path,
) -> Iterator[Sequence[str]]:
    limit = BatchLimit()

    def load(chunk: Sequence[str]) -> Any:
        return encoder.prepare([folder.images.read(images[name]) for name in chunk])

    def give_up(item: int, error: BatchTooLarge) -> NDArray[np.float32]:
        raise ModelError(
            f"the encoder does not fit into memory even for a single image: {error}",
            fix="use a smaller encoder, or a device with more memory",
        )

    for chunk, prepared in read_ahead(chunks, load):
        positions = range(len(chunk))
        vectors = np.concatenate(
            [
                part
                for _, part in fitting_calls(
                    positions,
                    lambda some, prepared=prepared: encoder.encode_prepared(  # type: ignore[misc]
                        prepared[some[0] : some[-1] + 1]
                    ),
                    limit,
                    when_one_is_too_many=give_up,
                )
            ]
        )
        batch = _to_batch(chunk, vectors)
        write_table(_part(parts, chunk), batch.schema, [batch], fingerprint="part")
        yield chunk


def _schema_of(path: Path, parts: Path, chunks: Sequence[Sequence[str]]) -> pa.Schema:
    source = _part(parts, chunks[0]) if chunks else path
    if not source.exists():
        return _schema(1)
    return pa.schema(list(next(iter(table_batches(source))).schema))


def _joined(
    path: Path, parts: Path, chunks: Sequence[Sequence[str]], wanted: set[str]
) -> Iterator[pa.RecordBatch]:
    """Vectors that are still wanted from the old table, then the new parts in planned order."""
    if path.exists():
        for batch in table_batches(path):
            keep = pa.array([name in wanted for name in batch.column(0).to_pylist()])
            kept = batch.filter(keep)
            if kept.num_rows:
                yield kept
    for chunk in chunks:
        yield from table_batches(_part(parts, chunk))
