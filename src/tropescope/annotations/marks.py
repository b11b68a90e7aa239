"""What raters marked in images: the released ViSAGe annotations, or a file with their columns.

A row is one answer: in this image, is this attribute present? The identity is not a column in the
released file; it is the image's file name without its number ("Mexican5.png"). What to know:

- 2,505 rows are blank (no image, no attribute) and are dropped; *nothing else* is. Equal rows are
  different raters who agree, because `worker_id` names a task, not a person.
- "none of the above" is an option, not an attribute. It is never marked present in the file.
- The same image stands in two folders (657 names in both); images are known by their file name.
- A box is two opposite corners in any order, partly outside the image.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from tropescope.annotations.names import Names, plain
from tropescope.annotations.tables import Table, read_table, shown
from tropescope.errors import AnnotationError
from tropescope.statistics.intervals import FloatArray

NONE_OF_THE_ABOVE = "none of the above"
_YES = frozenset({"yes", "y", "true", "1"})
_NO = frozenset({"no", "n", "false", "0"})
_NUMBERED = re.compile(r"[\s_-]*\d+$")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_ALIASES = {"img_path": "image", "img": "image", "image_path": "image", "file_name": "image"}

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class ImageMarks:
    """Answers as arrays: row i says whether attribute `attribute[i]` is in image `image[i]`."""

    identities: tuple[str, ...]
    images: tuple[str, ...]
    attributes: tuple[str, ...]
    tasks: int
    identity_of_image: IntArray
    image: IntArray
    attribute: IntArray
    present: NDArray[np.bool_]
    box: FloatArray
    blank: int
    notes: tuple[str, ...] = ()

    @property
    def identity(self) -> IntArray:
        return self.identity_of_image[self.image]

    @property
    def none_option(self) -> int | None:
        """The number of “none of the above”, where the file has it."""
        wanted = (n for n, name in enumerate(self.attributes) if plain(name) == NONE_OF_THE_ABOVE)
        return next(wanted, None)


def read_marks(path: Path, *, identities: Names, attributes: Names) -> ImageMarks:
    """Read annotations whose identities and attributes are among the given names."""
    table = read_table(
        path, ("image", "attribute", "present"), aliases=_ALIASES, what="file of annotations"
    )
    rows = [row for row in range(len(table)) if not _is_blank(table, row)]
    blank = len(table) - len(rows)
    if not rows:
        raise AnnotationError(f"{path.name}: every row is blank")
    image_of, identity_of = _images(table, rows, identities)
    image_names = tuple(dict.fromkeys(name for name in image_of.values()))
    image_number = {name: number for number, name in enumerate(image_names)}
    identity_names = tuple(sorted(set(identity_of.values())))
    identity_number = {name: number for number, name in enumerate(identity_names)}
    attribute_names, attribute_column = _attributes(table, rows, attributes)
    cells = table["image"]
    return ImageMarks(
        identities=identity_names,
        images=image_names,
        attributes=attribute_names,
        tasks=len(set(table["worker_id"])) if "worker_id" in table else 0,
        identity_of_image=np.array([identity_number[identity_of[name]] for name in image_names]),
        image=np.array([image_number[image_of[cells[row]]] for row in rows]),
        attribute=attribute_column,
        present=_presence(table, rows),
        box=_boxes(table, rows),
        blank=blank,
        notes=(f"{blank:,} blank rows left out",) if blank else (),
    )


def _is_blank(table: Table, row: int) -> bool:
    return not table["image"][row].strip() and not table["attribute"][row].strip()


def _images(
    table: Table, rows: list[int], identities: Names
) -> tuple[dict[str, str], dict[str, str]]:
    """Each path's image name, and each image's identity."""
    image_of: dict[str, str] = {}
    identity_of: dict[str, str] = {}
    told = table.columns.get("identity")
    for row in rows:
        path = table["image"][row]
        if path in image_of and told is None:
            continue
        name = PurePosixPath(path.replace("\\", "/")).name.strip()
        written = told[row].strip() if told else _NUMBERED.sub("", PurePosixPath(name).stem)
        if not name:
            raise table.problem(row, "the image is empty", fix="name it, or remove the row")
        if not written:
            raise table.problem(
                row,
                f"no identity: {shown(name)} is only a number" if not told else "no identity",
                fix="name images <identity><number>.png, or add a column “identity”",
            )
        identity = identities.find(written)
        if identity is None:
            raise table.problem(
                row,
                f"the identity {shown(written)} is not in the file of stereotypes",
                fix=identities.suggestion(written) or "add it there, or remove these rows",
            )
        if identity_of.setdefault(name, identity) != identity:
            raise table.problem(
                row,
                f"the image {shown(name)} has two identities, {identity_of[name]!r} and "
                f"{identity!r}",
                fix="give different images different names",
            )
        image_of[path] = name
    return image_of, identity_of


def _attributes(
    table: Table, rows: list[int], attributes: Names
) -> tuple[tuple[str, ...], IntArray]:
    cells = table["attribute"]
    number: dict[str, int] = {}
    seen: dict[str, int] = {}
    column = np.empty(len(rows), dtype=np.int64)
    for place, row in enumerate(rows):
        written = cells[row]
        if written not in seen:
            seen[written] = number.setdefault(_attribute(table, row, attributes), len(number))
        column[place] = seen[written]
    return tuple(number), column


def _attribute(table: Table, row: int, attributes: Names) -> str:
    written = table["attribute"][row]
    if not written.strip():
        raise table.problem(row, "the attribute is empty", fix="name it, or remove the row")
    if plain(written) == NONE_OF_THE_ABOVE:
        return NONE_OF_THE_ABOVE
    found = attributes.find(written)
    if found is None:
        raise table.problem(
            row,
            f"the attribute {shown(written)} is not in the file of visual attributes",
            fix=attributes.suggestion(written) or "add its ratings there, or remove these rows",
        )
    return found


def _presence(table: Table, rows: list[int]) -> NDArray[np.bool_]:
    cells = table["present"]
    answers: dict[str, bool] = {}
    for row in rows:
        text = cells[row]
        if text not in answers:
            word = plain(text)
            if word not in _YES | _NO:
                raise table.problem(row, f"present is {shown(text)}", fix="write yes or no")
            answers[text] = word in _YES
    return np.array([answers[cells[row]] for row in rows], dtype=bool)


def _boxes(table: Table, rows: list[int]) -> FloatArray:
    """left, top, right, bottom; NaN where there is no box."""
    boxes = np.full((len(rows), 4), np.nan)
    cells = table.columns.get("coords")
    if cells is None:
        return boxes
    for place, row in enumerate(rows):
        if len(cells[row]) > 2:
            numbers = [float(number) for number in _NUMBER.findall(cells[row])]
            if len(numbers) == 4:
                x, y = sorted(numbers[0::2]), sorted(numbers[1::2])
                boxes[place] = (x[0], y[0], x[1], y[1])
    return boxes
