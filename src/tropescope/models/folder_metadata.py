"""What a folder's metadata says of each image, checked before any image is read.

A row names a `file` and the `prompt` it was made for (or only the `concept`). An `outcome` other
than `generated` records that the model gave no usable image; such a row needs no file. Columns
`label_<attribute>` hold what is known for certain: 1 or true, 0 or false, empty for unknown.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from tropescope.errors import ModelError
from tropescope.models.folder import FolderColumns
from tropescope.models.folder_tables import LONGEST_CELL, RawRow, read_rows
from tropescope.models.protocol import OutcomeKind
from tropescope.safety.paths import safe_join

DEFAULT_NAMES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
MOST_PROBLEMS_SHOWN = 10
#: Names that other tools give to our columns.
_SYNONYMS = {
    "file": ("file_name", "filename", "path", "image", "image_path", "image_file"),
    "prompt": ("text", "caption", "description"),
    "concept": ("identity", "group", "category"),
}
_OUTCOMES: tuple[str, ...] = get_args(OutcomeKind)
_TRUE, _FALSE = frozenset({"1", "1.0", "true"}), frozenset({"0", "0.0", "false"})


class _RowError(Exception):
    """One row is wrong; the text says how."""


@dataclass(frozen=True, slots=True)
class ImageRow:
    """One image, or the record that there is none."""

    file: str
    outcome: OutcomeKind
    reason: str
    labels: tuple[tuple[str, bool], ...]


@dataclass(slots=True)
class Metadata:
    """Rows by what was asked, in the order of the table."""

    name: str
    rows: int = 0
    by_prompt: dict[str, list[ImageRow]] = field(default_factory=dict)
    by_concept: dict[str, list[ImageRow]] = field(default_factory=dict)
    """Only rows without a prompt."""


def fold(text: str) -> str:
    """A prompt as it is compared: line breaks and runs of spaces count as one space."""
    return " ".join(text.split())


def read_metadata(folder: Path, *, name: str | None, columns: FolderColumns) -> Metadata:
    """Read and check the whole table. All problems are named at once, not one per attempt."""
    if not folder.is_dir():
        raise ModelError(
            f"there is no folder {folder}",
            fix="`path` starts at the folder of the study file; write it relative to that",
        )
    path = _find(folder, name)
    metadata = Metadata(path.name)
    problems: list[str] = []
    first_use: dict[str, str] = {}
    known = (columns.file, columns.prompt, columns.concept, columns.outcome, columns.reason)
    rows = read_rows(
        path,
        known=known,
        prefix=columns.labels_prefix,
        check=lambda found: _check_columns(path.name, found, columns),
    )
    for raw in rows:
        metadata.rows += 1
        try:
            _add(metadata, raw, folder=folder, columns=columns, first_use=first_use)
        except _RowError as problem:
            problems.append(f"{raw.place}: {problem}")
        except ModelError as problem:
            problems.append(problem.message)
    if problems:
        more = len(problems) - MOST_PROBLEMS_SHOWN
        shown = problems[:MOST_PROBLEMS_SHOWN] + ([f"… and {more} more"] if more > 0 else [])
        raise ModelError(
            "\n".join(shown),
            fix=f"correct {path.name}; images that the model never gave can stay in it with an "
            "outcome (filtered, refused, failed, invalid) and no file",
        )
    if not metadata.rows:
        raise ModelError(f"{path.name} has no rows", fix="write one row per image")
    return metadata


def _find(folder: Path, name: str | None) -> Path:
    if name is not None:
        path = safe_join(folder, name, where="metadata")
        if path.is_file():
            return path
        raise ModelError(
            f"there is no {name} in {folder}", fix=_tables_there(folder) or "check `metadata`"
        )
    for default in DEFAULT_NAMES:
        if (folder / default).is_file():
            return folder / default
    raise ModelError(
        f"{folder} has no metadata: none of {', '.join(DEFAULT_NAMES)} is there",
        fix=_tables_there(folder)
        or "write a metadata.csv with the columns file and prompt, one row per image",
    )


def _tables_there(folder: Path) -> str:
    kinds = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
    names = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in kinds)
    if names:
        return f"name the table with `metadata:`; the folder has {', '.join(names[:5])}"
    sheets = sorted(path.name for path in folder.iterdir() if path.suffix in (".xlsx", ".ods"))
    return f"save {sheets[0]} as “CSV UTF-8” under the name metadata.csv" if sheets else ""


def _check_columns(name: str, found: Sequence[str], columns: FolderColumns) -> None:
    required = {"file"} | {part for part in columns.model_fields_set if part != "labels_prefix"}
    for part in sorted(required):
        if getattr(columns, part) not in found:
            raise _missing_column(name, found, {part: getattr(columns, part)})
    if columns.prompt not in found and columns.concept not in found:
        raise _missing_column(name, found, {"prompt": columns.prompt, "concept": columns.concept})
    if columns.labels_prefix in found:
        raise ModelError(
            f"{name}: the column {columns.labels_prefix!r} names no attribute",
            fix=f"call it {columns.labels_prefix}<attribute>",
        )


def _missing_column(name: str, found: Sequence[str], parts: dict[str, str]) -> ModelError:
    shown = ", ".join(repr(column) for column in found[:20])
    wanted = " or ".join(repr(column) for column in parts.values())
    near = next(
        (
            (part, column)
            for part, wanted_name in parts.items()
            for column in _similar(wanted_name, _SYNONYMS.get(part, ()), found)
        ),
        None,
    )
    fix = "rename the column, or say with `columns:` what it is called"
    if near is not None:
        fix = f"did you mean {near[1]!r}? Then write `columns: {{{near[0]}: {near[1]}}}`"
    return ModelError(f"{name}: there is no column {wanted}; it has {shown}", fix=fix)


def _similar(wanted: str, synonyms: Iterable[str], found: Sequence[str]) -> list[str]:
    by_lower = {column.lower(): column for column in found}
    for name in (wanted, *synonyms):
        if name.lower() in by_lower:
            return [by_lower[name.lower()]]
    return [by_lower[name] for name in difflib.get_close_matches(wanted.lower(), by_lower, n=1)]


def _add(
    metadata: Metadata,
    raw: RawRow,
    *,
    folder: Path,
    columns: FolderColumns,
    first_use: dict[str, str],
) -> None:
    cells = raw.cells
    file = _text(cells, columns.file)
    outcome = _outcome(_text(cells, columns.outcome))
    if file:
        path = safe_join(folder, file, where=raw.place)
        if not path.is_file():
            raise _RowError(f"there is no image file {file!r} in the folder")
        before = first_use.setdefault(str(path), raw.place)
        if before != raw.place:
            raise _RowError(f"the image {file!r} stands already in {before.rpartition(', ')[2]}")
    elif outcome == "generated":
        raise _RowError("no file is named")
    row = ImageRow(
        file=file,
        outcome=outcome,
        reason=_text(cells, columns.reason),
        labels=_labels(cells, columns.labels_prefix),
    )
    prompt, concept = fold(_text(cells, columns.prompt)), _text(cells, columns.concept)
    if prompt:
        metadata.by_prompt.setdefault(prompt, []).append(row)
    elif concept:
        metadata.by_concept.setdefault(concept, []).append(row)
    else:
        raise _RowError("neither a prompt nor a concept is given")


def _text(cells: dict[str, Any], column: str) -> str:
    value = cells.get(column)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _RowError(f"{column!r} must be text, not {type(value).__name__}")
    if len(value) > LONGEST_CELL:
        raise _RowError(f"{column!r} is longer than {LONGEST_CELL:,} characters")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise _RowError(f"{column!r} contains half of a surrogate pair")
    return value.strip()


def _outcome(text: str) -> OutcomeKind:
    kind = text.lower() or "generated"
    for known in get_args(OutcomeKind):
        if kind == known:
            return known  # type: ignore[no-any-return]
    near = difflib.get_close_matches(kind, _OUTCOMES, n=1)
    hint = f", did you mean {near[0]!r}?" if near else f"; known are {', '.join(_OUTCOMES)}"
    raise _RowError(f"unknown outcome {text[:80]!r}{hint}")


def _labels(cells: dict[str, Any], prefix: str) -> tuple[tuple[str, bool], ...]:
    labels = []
    for column, value in cells.items():
        if column.startswith(prefix):
            label = _label(column, value)
            if label is not None:
                labels.append((column.removeprefix(prefix), label))
    return tuple(labels)


def _label(column: str, value: Any) -> bool | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    word = str(value).strip().lower()
    if not word:
        return None
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise _RowError(f"{column!r} is {str(value)[:80]!r}; write 1, 0 or nothing (unknown)")
