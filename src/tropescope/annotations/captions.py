"""Captions of the annotated images: a CSV with `image` and `caption`, several rows an image."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from tropescope.annotations.marks import ImageMarks, IntArray
from tropescope.annotations.tables import read_table, shown

_ALIASES = {"img_path": "image", "file_name": "image", "text": "caption"}


@dataclass(frozen=True)
class Captions:
    """Texts, and the number of the image (in the annotations) that each describes."""

    texts: tuple[str, ...]
    image: IntArray


def read_captions(path: Path, marks: ImageMarks) -> Captions:
    """Read captions; every image must be one of the annotations."""
    table = read_table(path, ("image", "caption"), aliases=_ALIASES, what="file of captions")
    number = {name: place for place, name in enumerate(marks.images)}
    images = np.empty(len(table), dtype=np.int64)
    for row, written in enumerate(table["image"]):
        name = PurePosixPath(written.replace("\\", "/")).name.strip()
        if name not in number:
            raise table.problem(
                row,
                f"the image {shown(name)} is not in the annotations",
                fix="captions are matched to annotated images by file name",
            )
        images[row] = number[name]
    return Captions(tuple(table["caption"]), images)
