"""Traces as tables: which file belongs to which image, and SPI as one row per step."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tropescope.errors import Corruption
from tropescope.features.rows import image_rows
from tropescope.generation.traces import TracePlan, traced
from tropescope.store.canonical import digest_lines
from tropescope.store.folder import RunFolder
from tropescope.store.tables import fingerprint_of, table_batches, write_table

if TYPE_CHECKING:
    from tropescope.models.tracing import ImageTrace

TRACES = "traces"
SPI = "spi"

TRACES_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("trace", pa.string()),
        ("model", pa.string()),
        ("concept", pa.string()),
        ("template", pa.string()),
        ("same_image", pa.bool_()),
        ("path", pa.string()),
        ("sha256", pa.string()),
        ("raw_path", pa.string()),
        ("raw_sha256", pa.string()),
    ]
)
SPI_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("attribute", pa.string()),
        ("step", pa.int32()),
        ("timestep", pa.float32()),
        ("sigma", pa.float32()),
        ("spi_conditional", pa.float32()),
        ("spi_guided", pa.float32()),
        ("direction_norm", pa.float32()),
    ]
)


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One traced image. `same_image` says that tracing gave the very image of the run."""

    key: str
    trace: str
    model: str
    concept: str
    template: str
    same_image: bool
    path: str
    sha256: str
    raw_path: str | None
    raw_sha256: str | None


def trace_rows(folder: RunFolder) -> Iterator[TraceRow]:
    """All traced images, in the plan's order; none where the study does not trace."""
    if not folder.table(TRACES).exists():
        return
    for batch in table_batches(folder.table(TRACES)):
        for row in batch.to_pylist():
            yield TraceRow(**row)


def read_trace(folder: RunFolder, row: TraceRow) -> ImageTrace:
    """The trace of an image, checked against its hash."""
    from tropescope.models.tracing.result import ImageTrace

    try:
        content = (folder.root / row.path).read_bytes()
    except FileNotFoundError:
        raise Corruption(f"the trace {row.path} is missing from the run folder") from None
    if hashlib.sha256(content).hexdigest() != row.sha256:
        raise Corruption(f"the trace {row.path} was changed", fix="delete the run's traces folder")
    return ImageTrace.load(content)


def write_trace_tables(plan: TracePlan, folder: RunFolder) -> str:
    """Write both tables unless they are already the right ones; return their fingerprint."""
    records = traced(folder)
    pixels = {row.key: row.pixels_sha256 for row in image_rows(folder)}
    rows = []
    for item in plan.images:
        record = records[item.key]
        files = dict(record["files"])
        raw = next((name for name in files if name.endswith(".safetensors")), None)
        path = next(name for name in files if name.endswith(".npz"))
        rows.append(
            TraceRow(
                key=item.image.key,
                trace=item.key,
                model=item.image.model,
                concept=item.image.prompt.concept,
                template=item.image.prompt.template,
                same_image=record["pixels_sha256"] == pixels.get(item.image.key),
                path=path,
                sha256=files[path],
                raw_path=raw,
                raw_sha256=None if raw is None else files[raw],
            )
        )
    fingerprint = digest_lines(f"{row}" for row in rows)
    if fingerprint_of(folder.table(TRACES)) != fingerprint:
        write_table(
            folder.table(SPI), SPI_SCHEMA, _spi_batches(rows, folder), fingerprint=fingerprint
        )
        batch = pa.RecordBatch.from_pylist(
            [{name: getattr(row, name) for name in TRACES_SCHEMA.names} for row in rows],
            schema=TRACES_SCHEMA,
        )
        write_table(folder.table(TRACES), TRACES_SCHEMA, [batch], fingerprint=fingerprint)
    return fingerprint


def _spi_batches(rows: list[TraceRow], folder: RunFolder) -> Iterator[pa.RecordBatch]:
    for row in rows:
        trace = read_trace(folder, row)
        if trace.spi_conditional is None or trace.spi_guided is None:
            continue
        attributes, steps = trace.spi_conditional.shape
        norms = trace.direction_norm
        if norms is None:
            norms = np.full((attributes, steps), np.nan)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([row.key] * attributes * steps),
                pa.array(list(np.repeat(trace.facts.attributes, steps))),
                pa.array(np.tile(np.arange(steps, dtype=np.int32), attributes)),
                pa.array(np.tile(np.asarray(trace.timesteps, np.float32), attributes)),
                pa.array(np.tile(np.asarray(trace.sigma, np.float32), attributes)),
                pa.array(np.asarray(trace.spi_conditional, np.float32).reshape(-1)),
                pa.array(np.asarray(trace.spi_guided, np.float32).reshape(-1)),
                pa.array(np.asarray(norms, np.float32).reshape(-1)),
            ],
            schema=SPI_SCHEMA,
        )
