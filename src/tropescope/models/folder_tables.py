"""Rows of a CSV, JSONL or Parquet file, one at a time, with the place each stands at.

Files come from spreadsheets, scripts and strangers, so every way in which they are commonly broken
has its own message. Lines and cells are bounded; a table is never held in memory.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from tropescope.errors import ModelError

MOST_ROWS = 1_000_000
LONGEST_LINE = 1_000_000
LONGEST_CELL = 131_072
LARGEST_READ = 256_000_000
_DELIMITERS = (",", ";", "\t")
_AS_UTF8 = "save the table again as “CSV UTF-8”"

CheckColumns = Callable[[Sequence[str]], None]


@dataclass(frozen=True, slots=True)
class RawRow:
    place: str
    """Such as "metadata.csv, row 3"; the header is row 1, as spreadsheets count."""
    cells: dict[str, Any]


def read_rows(
    path: Path, *, known: Collection[str], prefix: str, check: CheckColumns
) -> Iterator[RawRow]:
    """The rows of a table. `check` is called with the names of its columns before the first row.

    Columns of interest are those in `known` and those that begin with `prefix`. They tell which
    character separates the columns of a CSV, and what to read of a Parquet file.
    """
    try:
        with path.open("rb") as file:
            start = file.read(8)
            file.seek(0)
            if start.startswith(b"PAR1"):
                yield from _parquet_rows(
                    path, lambda name: name in known or name.startswith(prefix), check
                )
                return
            _refuse_other_formats(path, start)
            if path.suffix.lower() in (".jsonl", ".ndjson"):
                yield from _json_rows(path.name, file, check)
            elif path.suffix.lower() in (".csv", ".tsv", ".txt"):
                yield from _csv_rows(path.name, file, known, check)
            else:
                raise ModelError(
                    f"{path.name} is not a kind of table that is read",
                    fix="use a .csv, .jsonl or .parquet file",
                )
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from None


def _refuse_other_formats(path: Path, start: bytes) -> None:
    if start.startswith(b"PK\x03\x04") or start.startswith(b"\xd0\xcf\x11\xe0"):
        raise ModelError(
            f"{path.name} is a spreadsheet (Excel, LibreOffice) or an archive, not a table of text",
            fix="open it, choose “save as”, and save the sheet as “CSV UTF-8”",
        )
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ModelError(f"{path.name} is encoded as UTF-16, not UTF-8", fix=_AS_UTF8)
    if start.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        raise ModelError(f"{path.name} is compressed", fix="unpack it first")
    if path.suffix.lower() == ".parquet":
        raise ModelError(f"{path.name} is not a Parquet file", fix="write it again")


def _lines(name: str, file: BinaryIO) -> Iterator[str]:
    """Decoded lines. Decoding line by line tells where the encoding goes wrong."""
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise ModelError(
                f"{name}, line {number}: longer than {LONGEST_LINE:,} bytes",
                fix="check that the lines are separated by line breaks",
            )
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise ModelError(f"{name}, line {number}: not UTF-8", fix=_AS_UTF8) from None


def _csv_rows(
    name: str, file: BinaryIO, known: Collection[str], check: CheckColumns
) -> Iterator[RawRow]:
    lines = _lines(name, file)
    header, row_number = next(lines, ""), 1
    if header.lower().startswith("sep="):
        # Excel writes this line so that it will understand its own file.
        header, row_number = next(lines, ""), 2
    if not header.strip():
        raise ModelError(f"{name} is empty", fix="write a header and one row per image")
    delimiter = _delimiter(header, known)
    columns = [cell.strip() for cell in _split(header, delimiter)]
    if len(set(columns)) != len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise ModelError(f"{name}: the column {twice!r} stands there twice", fix="rename one")
    check(columns)
    # `strict` notices an unclosed quote, which would otherwise swallow the rest of the file.
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        row_number += 1
        place = f"{name}, row {row_number}"
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise ModelError(
                f"{place}: {error}", fix="check the quotes in this row and the one before"
            ) from None
        if cells is None:
            return
        if len(cells) > len(columns):
            raise ModelError(
                f"{place}: {len(cells)} cells, but the header has {len(columns)}",
                fix=f"put quotes around texts that contain {delimiter!r}",
            )
        _check_row_count(name, row_number)
        if any(cells):
            yield RawRow(place, dict(zip(columns, cells, strict=False)))


def _split(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return [line]


def _delimiter(header: str, known: Collection[str]) -> str:
    """The character that splits the header into the most names that are expected."""

    def score(delimiter: str) -> tuple[int, int]:
        columns = [cell.strip() for cell in _split(header, delimiter)]
        return sum(column in known for column in columns), len(columns)

    return max(_DELIMITERS, key=score)


def _json_rows(name: str, file: BinaryIO, check: CheckColumns) -> Iterator[RawRow]:
    checked = False
    for number, line in enumerate(_lines(name, file), start=1):
        if not line.strip():
            continue
        place = f"{name}, line {number}"
        _check_row_count(name, number)
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ModelError(
                f"{place}: not JSON ({error})", fix="write one complete JSON object per line"
            ) from None
        if not isinstance(row, dict):
            raise ModelError(
                f"{place}: not a JSON object", fix='write lines such as {"file": …, "prompt": …}'
            )
        if not checked:
            check(list(row))
            checked = True
        yield RawRow(place, row)
    if not checked:
        raise ModelError(f"{name} is empty", fix="write one JSON object per image")


def _parquet_rows(
    path: Path, of_interest: Callable[[str], bool], check: CheckColumns
) -> Iterator[RawRow]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = path.name
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            _check_row_count(name, file.metadata.num_rows)
            for index in range(file.metadata.num_row_groups):
                if _bytes_of_interest(file.metadata.row_group(index), of_interest) > LARGEST_READ:
                    raise ModelError(
                        f"{name}: a row group has more than {LARGEST_READ:,} bytes of text",
                        fix="write the file again with smaller row groups",
                    )
        check(schema.names)
        wanted = [column for column in schema.names if of_interest(column)]
        # As dictionaries, one long text that a million rows share stays one text.
        texts = [column for column in wanted if str(schema.field(column).type).endswith("string")]
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            number = 0
            for batch in file.iter_batches(batch_size=1024, columns=wanted):
                columns = list(zip(batch.schema.names, batch.columns, strict=True))
                for index in range(batch.num_rows):
                    number += 1
                    cells = {column: values[index].as_py() for column, values in columns}
                    yield RawRow(f"{name}, row {number}", cells)
    except (pa.ArrowException, OSError, MemoryError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelError(
            f"{name} is not readable as Parquet: {first}", fix="write the file again"
        ) from None


def _bytes_of_interest(group: Any, of_interest: Callable[[str], bool]) -> int:
    chunks = (group.column(index) for index in range(group.num_columns))
    return sum(
        chunk.total_uncompressed_size
        for chunk in chunks
        if of_interest(chunk.path_in_schema.partition(".")[0])
    )


def _check_row_count(name: str, number: int) -> None:
    if number > MOST_ROWS + 2:
        raise ModelError(
            f"{name} has more than {MOST_ROWS:,} rows", fix="split the folder into several models"
        )
