"""Boxes in the COCO format, to and from annotation tools (label editors read and write it).

A COCO file has images, categories (here: attributes) and annotations with `bbox` = left, top,
width, height. Raters are not part of the format; the rater is kept in each annotation's
`attributes.rater`, where label editors keep such things. A file that comes back can only say what
*is* there; with the task, everything shown and not boxed is "no".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tropescope.annotations.exchange import Answer, Answers
from tropescope.annotations.task import Task
from tropescope.errors import AnnotationError

Size = tuple[int, int]


def to_coco(answers: Answers, sizes: Mapping[str, Size]) -> dict[str, Any]:
    """Present attributes as COCO annotations; `sizes` gives width and height of each image.

    Boxes are cut at the edges of the image; a mark without a box becomes the whole image.
    """
    images = {name: number for number, name in enumerate(sorted(sizes), start=1)}
    present = [answer for answer in answers.rows if answer.present]
    names = sorted({answer.attribute for answer in answers.rows})
    categories = {name: number for number, name in enumerate(names, start=1)}
    annotations = []
    for number, answer in enumerate(present, start=1):
        if answer.image not in sizes:
            raise AnnotationError(f"no size for the image {answer.image!r}")
        width, height = sizes[answer.image]
        left, top, right, bottom = _inside(answer.box, width, height)
        box = [left, top, right - left, bottom - top]
        annotations.append(
            {
                "id": number,
                "image_id": images[answer.image],
                "category_id": categories[answer.attribute],
                "bbox": box,
                "area": box[2] * box[3],
                "iscrowd": 0,
                "attributes": {"rater": answer.rater},
            }
        )
    return {
        "images": [
            {
                "id": images[name],
                "file_name": name,
                "width": sizes[name][0],
                "height": sizes[name][1],
            }
            for name in images
        ],
        "categories": [{"id": number, "name": name} for name, number in categories.items()],
        "annotations": annotations,
    }


def read_coco(path: Path, task: Task, *, rater: str | None = None) -> Answers:
    """Boxes of a COCO file as answers to a task; `rater` names its author where the file does not.

    Everything that a rater was shown and did not box counts as declined if the rater boxed or
    opened anything at all in the file, and as missing otherwise.
    """
    data = _load(path)
    images = {entry["id"]: Path(str(entry["file_name"])).name for entry in data["images"]}
    names = {entry["id"]: str(entry["name"]) for entry in data["categories"]}
    views = {screen.view: screen.image for screen in task.screens}
    shown = {(s.rater, s.image, name) for s in task.screens for name in s.attributes}
    boxes: dict[tuple[str, str, str], tuple[float, float, float, float]] = {}
    raters = set() if rater is None else {rater}
    for number, entry in enumerate(data["annotations"]):
        where = f"{path.name}: annotation {entry.get('id', number)}"
        try:
            file, name = images[entry["image_id"]], names[entry["category_id"]]
            left, top, width, height = (float(value) for value in entry["bbox"])
        except (KeyError, TypeError, ValueError) as error:
            raise AnnotationError(f"{where}: not a COCO box ({error})") from error
        author = str(entry.get("attributes", {}).get("rater", rater or ""))
        image = views.get(Path(file).stem, file)
        if (author, image, name) not in shown:
            raise AnnotationError(
                f"{where}: {name!r} in {file!r} was not shown to the rater {author!r}",
                fix="give the rater with rater=…, and keep the names of images and attributes",
            )
        if not (width >= 0 and height >= 0):
            raise AnnotationError(f"{where}: a box of {width:g} × {height:g}")
        raters.add(author)
        boxes[(author, image, name)] = (left, top, left + width, top + height)
    rows = []
    missing = 0
    for person, image, name in sorted(shown):
        if person in raters:
            place = (person, image, name)
            rows.append(Answer(person, image, name, place in boxes, boxes.get(place)))
        else:
            missing += 1
    return Answers(tuple(rows), missing)


def _inside(
    box: tuple[float, float, float, float] | None, width: int, height: int
) -> tuple[float, float, float, float]:
    if box is None:
        return 0.0, 0.0, float(width), float(height)
    left, top, right, bottom = box
    return max(left, 0.0), max(top, 0.0), min(right, float(width)), min(bottom, float(height))


def _load(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise AnnotationError(f"{path.name}: not a readable COCO file ({error})") from error
    parts = ("images", "categories", "annotations")
    if not isinstance(data, dict) or not all(isinstance(data.get(part), list) for part in parts):
        raise AnnotationError(f"{path.name}: a COCO file has lists {', '.join(parts)}")
    for part, keys in (("images", ("id", "file_name")), ("categories", ("id", "name"))):
        for entry in data[part]:
            if not isinstance(entry, dict) or not all(key in entry for key in keys):
                raise AnnotationError(f"{path.name}: every entry of {part} needs {', '.join(keys)}")
    return data
