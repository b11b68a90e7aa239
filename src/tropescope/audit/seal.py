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
    _write(folder, hashes)


def reseal_report(folder: RunFolder) -> None:
    """Record the hash of a report that was written anew; nothing else is taken as it is."""
    hashes = _read(folder)
    if hashes is not None:
        _write(folder, {**hashes, folder.report.name: _hash(folder.report)})


def remove_changed(folder: RunFolder) -> list[str]:
    """Remove sealed files that were edited or damaged, so that they are made again; their names."""
    hashes = _read(folder)
    if hashes is None:
        return []
    changed = [
        name
        for name, expected in hashes.items()
        if (path := folder.root / name).is_file()
        and name not in ("study.yaml", "format.json")
        and _hash(path) != expected
    ]
    for name in changed:
        folder.unseal()
        (folder.root / name).unlink()
    return changed


def require_unchanged(folder: RunFolder) -> None:
    """Refuse to build on results that do not match their seal."""
    changed = [p for p in _check_seal(folder) if p.artefact != folder.report.name]
    if changed:
        raise Corruption(
            f"{changed[0].artefact}: {changed[0].message}",
            fix="run the study again: it makes anew what does not match",
        )


def _write(folder: RunFolder, hashes: dict[str, str]) -> None:
    text = json.dumps(hashes, indent=1, sort_keys=True) + "\n"
    write_if_changed(folder.seal, text.encode())


def _read(folder: RunFolder) -> dict[str, str] | None:
    """The sealed hashes; None where there is no readable seal."""
    try:
        sealed = json.loads(folder.seal.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return sealed if isinstance(sealed, dict) else None


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
    if not folder.seal.exists():
        yield Problem("seal.json", "missing: the run is not finished, or the file was removed")
        return
    sealed = _read(folder)
    if sealed is None:
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
