"""A task on its way to raters and back, as CSV.

Three files: `screens.csv` for whoever shows the images (no identity, no kind of attribute, images
by their blind names), `key.csv` that stays with the study (blind name → image, identity, kind), and
the answers that come back. Answers are checked against the plan: nobody can mark what was not
shown, "none of the above" with a mark is a contradiction, and what was not answered is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tropescope.annotations.cells import csv_bytes
from tropescope.annotations.marks import NONE_OF_THE_ABOVE
from tropescope.annotations.names import plain
from tropescope.annotations.tables import Table, read_table, shown
from tropescope.annotations.task import Screen, Task
from tropescope.errors import AnnotationError
from tropescope.store.atomic import write_atomically

SCREEN_COLUMNS = ("rater", "order", "view", "attributes")
KEY_COLUMNS = ("view", "image", "identity", "attribute", "kind")
ANSWER_COLUMNS = ("rater", "order", "attribute", "present", "left", "top", "right", "bottom")
_BETWEEN = " | "


@dataclass(frozen=True, slots=True)
class Answer:
    """One attribute of one screen, answered; the box is left, top, right, bottom in pixels."""

    rater: str
    image: str
    attribute: str
    present: bool
    box: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """What came back, and how many attributes that were shown have no answer."""

    rows: tuple[Answer, ...]
    missing: int


def export_task(task: Task, folder: Path) -> tuple[Path, Path]:
    """Write screens.csv (blind) and key.csv (not for raters)."""
    screens, key = folder / "screens.csv", folder / "key.csv"
    write_atomically(screens, screens_csv(task))
    write_atomically(key, key_csv(task))
    return screens, key


def screens_csv(task: Task) -> bytes:
    rows = (
        (s.rater, s.order, s.view, _BETWEEN.join((*s.attributes, NONE_OF_THE_ABOVE)))
        for s in task.screens
    )
    return csv_bytes(SCREEN_COLUMNS, rows)


def key_csv(task: Task) -> bytes:
    view_of = {screen.image: screen.view for screen in task.screens}
    rows = []
    for image in sorted(view_of):
        identity = task.identity_of[image]
        for kind, names in (
            ("stereotypical", task.stereotypical[identity]),
            ("random", task.random[identity]),
        ):
            rows += [(view_of[image], image, identity, name, kind) for name in names]
    return csv_bytes(KEY_COLUMNS, rows)


def read_answers(path: Path, task: Task) -> Answers:
    """Read answers.csv: a row for each attribute marked or declined, or “none of the above”."""
    table = read_table(path, ANSWER_COLUMNS[:4], what="file of answers")
    screens = {(screen.rater, screen.order): screen for screen in task.screens}
    given: dict[tuple[str, int], dict[str, Answer]] = {}
    none: set[tuple[str, int]] = set()
    for row in range(len(table)):
        screen = _screen(table, row, screens)
        place = (screen.rater, screen.order)
        name = table["attribute"][row].strip()
        present = _present(table, row)
        if plain(name) == NONE_OF_THE_ABOVE:
            if present:
                none.add(place)
            continue
        if name not in screen.attributes:
            raise table.problem(
                row,
                f"{shown(name)} was not on screen {screen.order} of {screen.rater!r}",
                fix=f"that screen had {', '.join(screen.attributes)}",
            )
        answers = given.setdefault(place, {})
        if name in answers:
            raise table.problem(row, f"{shown(name)} is answered twice on this screen")
        box = _box(table, row) if present else None
        answers[name] = Answer(screen.rater, screen.image, name, present, box)
    rows, missing = [], 0
    for place, screen in screens.items():
        answers = given.get(place, {})
        if place in none and any(answer.present for answer in answers.values()):
            raise _contradiction(path, screen)
        touched = place in none or bool(answers)
        for name in screen.attributes:
            if name in answers:
                rows.append(answers[name])
            elif touched:
                rows.append(Answer(screen.rater, screen.image, name, False))
            else:
                missing += 1
    return Answers(tuple(rows), missing)


def answers_csv(answers: Answers, task: Task) -> bytes:
    """Answers in the columns of `read_answers`."""
    where = {
        (screen.rater, screen.image, name): screen.order
        for screen in task.screens
        for name in screen.attributes
    }
    rows = (
        (
            a.rater,
            where[(a.rater, a.image, a.attribute)],
            a.attribute,
            a.present,
            *(a.box or (None,) * 4),
        )
        for a in answers.rows
    )
    return csv_bytes(ANSWER_COLUMNS, rows)


def annotations_csv(answers: Answers, task: Task) -> bytes:
    """Answers as a file that `tropescope visage --annotations` reads."""
    rows = (
        (
            a.rater,
            a.image,
            task.identity_of[a.image],
            a.attribute,
            a.present,
            "[]" if a.box is None else str(list(np.round(a.box, 2).tolist())),
        )
        for a in answers.rows
    )
    return csv_bytes(("worker_id", "image", "identity", "attribute", "present", "coords"), rows)


def _screen(table: Table, row: int, screens: dict[tuple[str, int], Screen]) -> Screen:
    order = table.number("order", row, low=0, high=1e9)
    place = (table["rater"][row].strip(), int(order))
    if place not in screens:
        raise table.problem(
            row,
            f"the task has no screen {place[1]} for the rater {shown(place[0])}",
            fix="answers must carry the rater and order of screens.csv",
        )
    return screens[place]


def _present(table: Table, row: int) -> bool:
    word = plain(table["present"][row])
    if word not in ("yes", "no"):
        raise table.problem(row, f"present is {shown(word)}", fix="write yes or no")
    return word == "yes"


def _box(table: Table, row: int) -> tuple[float, float, float, float] | None:
    names = ("left", "top", "right", "bottom")
    cells = [table[name][row].strip() if name in table else "" for name in names]
    if not any(cells):
        return None
    left, top, right, bottom = (table.number(n, row, low=-1e5, high=1e5) for n in names)
    return min(left, right), min(top, bottom), max(left, right), max(top, bottom)


def _contradiction(path: Path, screen: Screen) -> AnnotationError:
    return AnnotationError(
        f"{path.name}: screen {screen.order} of {screen.rater!r} says “none of the above” and "
        "marks an attribute",
        fix="remove one of the two",
    )
