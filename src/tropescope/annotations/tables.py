"""CSV files from other people: read strictly, refused with file, row and fix."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tropescope.annotations.cells import unescaped
from tropescope.errors import AnnotationError

LARGEST_FILE = 2_000_000_000
_CELL = 1_000_000
_NOT_TEXT = {
    b"PK\x03\x04": "a spreadsheet (.xlsx or .ods)",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet (.xls)",
    b"%PDF": "a PDF file",
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "a compressed file",
    b"<": "a web page or XML file",
}
_SAVE_AS = "open it in a spreadsheet program and save the sheet as “CSV UTF-8 (comma separated)”"


@dataclass(frozen=True)
class Table:
    """Columns of text and, for each row, the line of the file on which it ends."""

    path: Path
    columns: Mapping[str, list[str]]
    lines: list[int]

    def __len__(self) -> int:
        return len(self.lines)

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    def __getitem__(self, column: str) -> list[str]:
        return self.columns[column]

    def problem(self, row: int, message: str, *, fix: str = "") -> AnnotationError:
        """An error about one row, to be raised by the caller."""
        return AnnotationError(f"{self.path.name}, line {self.lines[row]}: {message}", fix=fix)

    def number(self, column: str, row: int, *, low: float, high: float) -> float:
        text = self.columns[column][row].strip()
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise self.problem(
                row,
                f"{column} is {shown(text)}, not a number from {low:g} to {high:g}",
                fix="correct the cell, or remove the row",
            )
        return value


def shown(text: str, length: int = 60) -> str:
    """Text of a file, quoted and cut, for a message."""
    return repr(text if len(text) <= length else text[: length - 1] + "…")


def read_table(
    path: Path,
    required: Sequence[str],
    *,
    aliases: Mapping[str, str] | None = None,
    what: str = "table",
) -> Table:
    """Read a CSV with at least the `required` columns; names match without case and spaces.

    `aliases` maps other column names to ours.
    """
    with _opened(path, what) as lines:
        reader = csv.reader(lines, strict=True)
        try:
            header = [_column(name) for name in next(reader, [])]
            names = [(aliases or {}).get(name, name) for name in header]
            _check_header(path, names, header, required, what)
            columns: list[list[str]] = [[] for _ in names]
            line_numbers: list[int] = []
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(names):
                    raise AnnotationError(
                        f"{path.name}, line {reader.line_num}: {len(cells)} cells where the "
                        f"header has {len(names)} columns",
                        fix="a text with a comma must stand in double quotes; " + _SAVE_AS,
                    )
                for column, cell in zip(columns, cells, strict=True):
                    column.append(unescaped(cell) if cell[:1] == "'" else cell)
                line_numbers.append(reader.line_num)
        except csv.Error as error:
            raise AnnotationError(
                f"{path.name}, line {reader.line_num}: not valid CSV ({error})", fix=_SAVE_AS
            ) from error
        except UnicodeDecodeError as error:
            raise AnnotationError(
                f"{path.name}: not UTF-8 text (byte {error.start:,})", fix=_SAVE_AS
            ) from error
    if not line_numbers:
        raise AnnotationError(f"{path.name}: the file has a header and no rows")
    return Table(path, dict(zip(names, columns, strict=True)), line_numbers)


def _opened(path: Path, what: str) -> _Lines:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise AnnotationError(f"{path.name}: larger than {LARGEST_FILE:,} bytes")
        with path.open("rb") as file:
            start = file.read(4096)
    except FileNotFoundError as error:
        raise AnnotationError(f"no {what} at {path}", fix="check the path") from error
    except OSError as error:
        raise AnnotationError(f"cannot read {path}: {error.strerror}") from error
    if not start.strip():
        raise AnnotationError(f"{path.name}: the file is empty")
    for magic, kind in _NOT_TEXT.items():
        if start.lstrip()[: len(magic)] == magic:
            raise AnnotationError(f"{path.name}: this is {kind}, not a CSV", fix=_SAVE_AS)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in start:
        raise AnnotationError(f"{path.name}: not UTF-8 text", fix=_SAVE_AS)
    return _Lines(path)


class _Lines:
    """The lines of a UTF-8 file, with or without a byte order mark."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Iterator[str]:
        csv.field_size_limit(_CELL)
        self._file = self.path.open(encoding="utf-8-sig", newline="")
        return self._file

    def __exit__(self, *problem: object) -> None:
        self._file.close()


def _column(name: str) -> str:
    return "_".join(name.strip().lower().split())


def _check_header(
    path: Path, names: Sequence[str], header: Sequence[str], required: Sequence[str], what: str
) -> None:
    if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
        raise AnnotationError(f"{path.name}: columns are not separated by commas", fix=_SAVE_AS)
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise AnnotationError(f"{path.name}: the column {shown(min(twice))} is there twice")
    missing = [name for name in required if name not in names]
    if missing:
        near = difflib.get_close_matches(missing[0], names, n=1)
        hint = f"; did you mean {shown(near[0])}?" if near else ""
        raise AnnotationError(
            f"{path.name}: the {what} has no column {', '.join(map(shown, missing))}{hint}",
            fix=f"its columns are {', '.join(names[:20])}; it needs {', '.join(required)}",
        )
