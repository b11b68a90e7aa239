"""What has been done: one checksummed line per committed item, appended and never rewritten.

A line is ``<16 hex digits of its SHA-256> <JSON>``. A process that dies while writing leaves at
most one torn line at the end; it is cut off when the ledger is next opened for writing. A damaged
line anywhere else means that the file was edited or the disk failed, and is an error.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tropescope.errors import Corruption
from tropescope.store.atomic import store_errors
from tropescope.store.canonical import canonical_json

Record = dict[str, Any]


def _line(record: Record) -> bytes:
    text = canonical_json(record).encode()
    return hashlib.sha256(text).hexdigest()[:16].encode() + b" " + text + b"\n"


def _parse(line: bytes) -> Record | None:
    check, _, text = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or hashlib.sha256(text).hexdigest()[:16].encode() != check:
        return None
    record = json.loads(text)
    return record if isinstance(record, dict) else None


def _scan(path: Path) -> Iterator[tuple[Record, int, int]]:
    """Each intact record with its first offset and the one behind it; stops at a torn tail."""
    if not path.exists():
        return
    offset = 0
    size = path.stat().st_size
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            record = _parse(line)
            end = offset + len(line)
            if record is None:
                if end >= size and not line.endswith(b"\n"):
                    return
                raise Corruption(
                    f"{path.name}, line {number}: the line does not match its checksum",
                    fix="restore the file from a backup, or delete the line to redo that item",
                )
            yield record, offset, end
            offset = end


def read_ledger(path: Path) -> Iterator[Record]:
    for record, _, _ in _scan(path):
        yield record


class LedgerIndex(Mapping[str, Record]):
    """The latest record of every key of one stage, read from the file when it is asked for.

    Only where a record stands, its outcome and its attempt are kept in memory, so that a run of a
    million images can be continued on a small machine.
    """

    def __init__(self, path: Path, stage: str) -> None:
        self._path = path
        self._places: dict[str, int] = {}
        self.outcomes: dict[str, str] = {}
        self.attempts: dict[str, int] = {}
        self.paths: dict[str, str] = {}
        for record, start, _ in _scan(path):
            if record.get("stage") == stage:
                key = record["key"]
                self._places[key] = start
                self.outcomes[key] = sys.intern(record["outcome"])
                self.attempts[key] = record["attempt"]
                if record.get("path"):
                    self.paths[key] = record["path"]
        self._file: IO[bytes] | None = None

    def __getitem__(self, key: str) -> Record:
        if self._file is None:
            self._file = self._path.open("rb")
        self._file.seek(self._places[key])
        record = _parse(self._file.readline())
        if record is None:
            raise Corruption(f"{self._path.name} was changed while it was being read")
        return record

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self._file.close()  # type: ignore[union-attr]


class Ledger:
    """A ledger open for appending; use as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Ledger:
        intact = 0
        for _, _, end in _scan(self.path):
            intact = end
        with store_errors(self.path):
            if self.path.exists() and self.path.stat().st_size > intact:
                os.truncate(self.path, intact)
            self._file = self.path.open("ab", buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def append(self, records: Sequence[Record]) -> None:
        """Write records and force them to disk before returning."""
        assert self._file is not None, "the ledger is not open"
        with store_errors(self.path):
            data = b"".join(_line(record) for record in records)
            written = self._file.write(data)
            while written is not None and written < len(data):
                data = data[written:]
                written = self._file.write(data)
            os.fsync(self._file.fileno())
