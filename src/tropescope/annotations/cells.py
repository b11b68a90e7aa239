"""Text in CSV cells that a spreadsheet will not take for a formula.

A cell that begins with = + - @ (or a tab or carriage return before them) is run as a formula by
spreadsheet programs. Names come from files of strangers, so such text gets an apostrophe in front,
which spreadsheets hide; readers take it away again. Numbers are ours and are left alone.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "'")


def escaped(text: str) -> str:
    """Text that stays text in a spreadsheet.

    >>> escaped("=1+1"), escaped("hat")
    ("'=1+1", 'hat')
    """
    return "'" + text if text.startswith(_FORMULA) else text


def unescaped(text: str) -> str:
    """The text before `escaped`; an apostrophe that guards nothing is part of the text."""
    return text[1:] if text[:1] == "'" and text[1:].startswith(_FORMULA) else text


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """A CSV file: text escaped, numbers to twelve digits, None empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return buffer.getvalue().encode("utf-8")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.12g}"
    return escaped(value) if isinstance(value, str) else str(value)
