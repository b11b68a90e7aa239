"""Sealing a finished run and checking the seal: every artefact against its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tropescope.engine.progress import Progress
from tropescope.errors import Corruption, ImageError
from tropescope.features.traces import trace_rows
from tropescope.generation.table import TABLE
from tropescope.safety.images import decode_image
from tropescope.store.atomic import write_if_changed
from tropescope.store.folder import RunFolder
from tropescope.store.images import pixels_hash
from tropescope.store.ledger import read_ledger
from tropescope.store.tables import read_table

_SEALED = ("study.yaml", "format.json", "results.json", "report.html")


@dataclass(frozen=True, slots=True)
class Problem:
    artefact: str
    message: str


def _files(folder: RunFolder) -> Iterator[Path]:
    for name in _SEALED:
        if (folder.root / name).exists():
            yield folder.root / name
    yield from sorted((folder.root / "tables").glob("*"))


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_seal(folder: RunFolder) -> None:
    """Record the hash of every table and result of a finished run."""
    hashes = {path.relative_to(folder.root).as_posix(): _hash(path) for path in _files(folder)}
    text = json.dumps(hashes, indent=1, sort_keys=True) + "\n"
    write_if_changed(folder.root / "seal.json", text.encode())


def verify(folder: RunFolder, progress: Progress) -> list[Problem]:
    """Recompute every hash of a run; an empty list means that nothing was changed."""
    folder.require()
    problems = [*_check_ledger(folder), *_check_seal(folder), *_check_traces(folder)]
    try:
        problems += _check_images(folder, progress)
    except Corruption as error:
        problems.append(Problem(f"tables/{TABLE}.parquet", error.message))
    return problems


def _check_ledger(folder: RunFolder) -> Iterator[Problem]:
    try:
        for _ in read_ledger(folder.ledger):
            pass
    except Corruption as error:
        yield Problem("ledger.jsonl", error.message)


def _check_seal(folder: RunFolder) -> Iterator[Problem]:
    seal = folder.root / "seal.json"
    if not seal.exists():
        yield Problem("seal.json", "missing: the run is not finished, or the file was removed")
        return
    try:
        sealed = json.loads(seal.read_text("utf-8"))
    except ValueError:
        yield Problem("seal.json", "is not readable")
        return
    for name, expected in sealed.items():
        path = folder.root / name
        if not path.is_file():
            yield Problem(name, "is missing")
        elif _hash(path) != expected:
            yield Problem(name, "was changed after the run finished")
    for path in _files(folder):
        name = path.relative_to(folder.root).as_posix()
        if name not in sealed:
            yield Problem(name, "was added after the run finished")


def _check_traces(folder: RunFolder) -> Iterator[Problem]:
    for row in trace_rows(folder):
        for name, expected in ((row.path, row.sha256), (row.raw_path, row.raw_sha256)):
            if name is None:
                continue
            path = folder.root / name
            if not path.is_file():
                yield Problem(name, "is missing")
            elif _hash(path) != expected:
                yield Problem(name, "was changed")


def _check_images(folder: RunFolder, progress: Progress) -> list[Problem]:
    table = read_table(folder.table(TABLE), ["path", "file_sha256", "pixels_sha256"])
    expected = {
        row["path"]: (row["file_sha256"], row["pixels_sha256"])
        for row in table.to_pylist()
        if row["path"] is not None
    }
    problems = []
    with progress.stage("checking images", len(expected)) as stage:
        for name, (file_hash, pixel_hash) in expected.items():
            problem = _check_image(folder.root / name, name, file_hash, pixel_hash)
            if problem is not None:
                problems.append(problem)
            stage.advance()
    return problems


def _check_image(path: Path, name: str, file_hash: str, pixel_hash: str) -> Problem | None:
    if not path.is_file():
        return Problem(name, "is missing")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != file_hash:
        return Problem(name, "the file was changed")
    try:
        if pixels_hash(decode_image(content, name=name).pixels) != pixel_hash:
            return Problem(name, "its pixels do not match its name")
    except ImageError as error:
        return Problem(name, error.message)
    return None
