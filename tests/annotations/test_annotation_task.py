"""The annotation task as data: blinded, balanced, with quotas, out and back without loss."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tropescope.annotations.cells import csv_bytes, escaped, unescaped
from tropescope.annotations.coco import read_coco, to_coco
from tropescope.annotations.exchange import (
    Answer,
    Answers,
    annotations_csv,
    answers_csv,
    export_task,
    key_csv,
    read_answers,
    screens_csv,
)
from tropescope.annotations.marks import read_marks
from tropescope.annotations.names import Names
from tropescope.annotations.task import (
    Quota,
    Rater,
    Task,
    TaskSettings,
    plan_task,
    random_attributes,
)
from tropescope.errors import AnnotationError

OWN = {"Kestran": ("hat", "scarf", "=cmd", "beard"), "Velori": ("boat", "net", "oar", "hook")}
OTHER = {"Kestran": ("fish", "tree", "bird", "dog"), "Velori": ("sun", "moon", "cat", "cow")}
IMAGES = {f"{name}{n}.png": name for name in OWN for n in range(1, 7)}
RATERS = [Rater(f"r{n}", {"origin": "asia" if n % 2 else "europe"}) for n in range(6)]


def _task(**settings: object) -> Task:
    return plan_task(IMAGES, OWN, OTHER, RATERS, TaskSettings(**settings))


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 9))
def test_balanced_and_complete(seed: int, raters: int, per_screen: int) -> None:
    task = _task(seed=seed, raters_per_image=raters, attributes_per_screen=per_screen)
    shown = Counter((s.image, a) for s in task.screens for a in s.attributes)
    assert set(shown.values()) == {raters}
    assert len(shown) == len(IMAGES) * 8
    once = Counter((s.rater, s.image, a) for s in task.screens for a in s.attributes)
    assert set(once.values()) == {1}
    load = Counter(rater for rater, _ in {(s.rater, s.image) for s in task.screens})
    assert max(load.values()) - min(load.get(r.name, 0) for r in RATERS) <= 1
    assert all(1 <= len(s.attributes) <= per_screen for s in task.screens)
    for rater in RATERS:
        orders = [s.order for s in task.screens if s.rater == rater.name]
        assert orders == list(range(len(orders)))


def test_the_same_seed_gives_the_same_plan_whatever_the_order() -> None:
    task = _task(seed=1)
    turned = plan_task(
        dict(reversed(IMAGES.items())), OWN, OTHER, RATERS[::-1], TaskSettings(seed=1)
    )
    assert turned.screens == task.screens
    assert _task(seed=2).screens != task.screens


def test_raters_cannot_tell() -> None:
    task = _task()
    text = screens_csv(task).decode()
    for word in ("Kestran", "Velori", "stereotyp", "random"):
        assert word not in text
    firsts = Counter(
        s.attributes[0] in task.stereotypical[task.identity_of[s.image]] for s in task.screens
    )
    assert 0.25 < firsts[True] / len(task.screens) < 0.75
    assert "stereotypical" in key_csv(task).decode()
    assert "none of the above" in text


def test_quotas() -> None:
    task = _task(quotas=(Quota("origin", "asia", 1), Quota("origin", "europe", 2)))
    origin = {rater.name: rater.traits["origin"] for rater in RATERS}
    for image in IMAGES:
        raters = {s.rater for s in task.screens if s.image == image}
        assert Counter(origin[r] for r in raters) == {"asia": 1, "europe": 2}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"raters_per_image": 7}, "6 raters for 7"),
        ({"raters_per_image": 0}, "at least one"),
        ({"quotas": (Quota("origin", "mars", 1),)}, "there are 0"),
        ({"quotas": (Quota("origin", "asia", 4),)}, "a quota of 4"),
        (
            {"quotas": (Quota("origin", "asia", 2), Quota("origin", "europe", 2))},
            "together need 4",
        ),
    ],
)
def test_impossible_settings(settings: dict[str, object], message: str) -> None:
    with pytest.raises(AnnotationError, match=message):
        _task(**settings)


def test_impossible_attributes() -> None:
    for own, other, message in (
        ({"Kestran": ()}, OTHER, "0 stereotypical"),
        ({"Kestran": ("hat",)}, {"Kestran": ("hat",)}, "both"),
        ({"Kestran": ("hat",)}, {"Kestran": ("dog", "cat")}, "1 stereotypical but 2 random"),
    ):
        with pytest.raises(AnnotationError, match=message):
            plan_task({"a.png": "Kestran"}, own, other, RATERS)
    with pytest.raises(AnnotationError, match="same name"):
        plan_task(IMAGES, OWN, OTHER, [Rater("x"), Rater("x")])


def test_random_attributes_are_never_listed() -> None:
    visual = [f"a{n}" for n in range(20)]
    listed = frozenset(visual[:5])
    drawn = random_attributes("Kestran", visual=visual, listed=listed, number=10, seed=4)
    assert len(set(drawn)) == 10
    assert not set(drawn) & listed
    assert drawn == random_attributes(
        "Kestran", visual=visual[::-1], listed=listed, number=10, seed=4
    )
    with pytest.raises(AnnotationError, match="16 random attributes wanted"):
        random_attributes("Kestran", visual=visual, listed=listed, number=16)


def _answers(task: Task) -> Answers:
    rows = [
        Answer(
            s.rater,
            s.image,
            a,
            a in ("hat", "=cmd"),
            (1.0, 2.0, 30.0, 40.5) if a == "hat" else None,
        )
        for s in task.screens
        for a in s.attributes
    ]
    return Answers(tuple(rows), 0)


def test_out_and_back(tmp_path: Path) -> None:
    task = _task()
    screens, key = export_task(task, tmp_path / "task")
    assert screens.read_bytes() == screens_csv(task)
    assert key.exists()
    answers = _answers(task)
    path = tmp_path / "answers.csv"
    path.write_bytes(answers_csv(answers, task))
    assert "'=cmd" in path.read_text("utf-8")
    back = read_answers(path, task)
    assert back == answers


def test_answers_become_annotations(tmp_path: Path) -> None:
    task = _task()
    path = tmp_path / "annotations.csv"
    path.write_bytes(annotations_csv(_answers(task), task))
    every = {a for names in (OWN, OTHER) for own in names.values() for a in own}
    marks = read_marks(path, identities=Names(OWN), attributes=Names(every))
    assert len(marks.images) == 12
    assert len(marks.image) == 12 * 8 * 3
    assert np.nanmax(marks.box[marks.present][:, 2]) == 30
    assert set(marks.attributes) == every


def _file(tmp_path: Path, *rows: str) -> Path:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["rater,order,attribute,present", *rows]) + "\n")
    return path


def test_only_what_was_shown_can_be_answered(tmp_path: Path) -> None:
    task = _task()
    screen = task.screens[0]
    first = screen.attributes[0].lstrip("=")
    seen = escaped(screen.attributes[0])
    none = f"{screen.rater},0,none of the above,yes"
    assert first
    declined = read_answers(_file(tmp_path, none), task)
    assert len(declined.rows) == len(screen.attributes)
    assert not any(answer.present for answer in declined.rows)
    assert declined.missing == len(IMAGES) * 8 * 3 - len(screen.attributes)
    for rows, message in (
        ((f"{screen.rater},0,unicorn,yes",), "was not on screen 0"),
        (("nobody,0,hat,yes",), "no screen 0 for the rater 'nobody'"),
        ((f"{screen.rater},0,{seen},perhaps",), "present is 'perhaps'"),
        ((f"{screen.rater},0,{seen},yes", f"{screen.rater},0,{seen},no"), "twice"),
        ((none, f"{screen.rater},0,{seen},yes"), "none of the above"),
    ):
        with pytest.raises(AnnotationError, match=message):
            read_answers(_file(tmp_path, *rows), task)


def test_coco_out_and_back(tmp_path: Path) -> None:
    task = _task()
    answers = _answers(task)
    sizes = dict.fromkeys(IMAGES, (64, 48))
    data = to_coco(answers, sizes)
    assert {"images", "categories", "annotations"} == set(data)
    assert all(a["bbox"][0] + a["bbox"][2] <= 64 for a in data["annotations"])
    path = tmp_path / "coco.json"
    path.write_text(json.dumps(data))
    back = read_coco(path, task)
    key = lambda a: (a.rater, a.image, a.attribute)  # noqa: E731
    assert [(key(a), a.present) for a in sorted(answers.rows, key=key)] == [
        (key(a), a.present) for a in back.rows
    ]
    boxed = next(a for a in back.rows if a.attribute == "hat" and a.present)
    assert boxed.box == (1.0, 2.0, 30.0, 40.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["annotations"][0].update(bbox=[1, 2]), "not a COCO box"),
        (lambda d: d["annotations"][0].update(category_id=99), "not a COCO box"),
        (lambda d: d["annotations"][0].update(bbox=[0, 0, -3, 2]), "a box of -3"),
        (lambda d: d["annotations"][0].update(attributes={"rater": "x"}), "was not shown"),
        (lambda d: d.pop("images"), "has lists"),
        (lambda d: d["images"][0].pop("file_name"), "needs id, file_name"),
    ],
)
def test_wrong_coco(tmp_path: Path, change: object, message: str) -> None:
    task = _task()
    data = to_coco(_answers(task), dict.fromkeys(IMAGES, (64, 48)))
    change(data)  # type: ignore[operator]
    path = tmp_path / "coco.json"
    path.write_text(json.dumps(data))
    with pytest.raises(AnnotationError, match=message):
        read_coco(path, task)
    path.write_text("[")
    with pytest.raises(AnnotationError, match="not a readable"):
        read_coco(path, task)


@given(st.text(max_size=12))
def test_no_cell_is_a_formula(text: str) -> None:
    assert not escaped(text).startswith(("=", "+", "-", "@", "\t", "\r"))
    assert unescaped(escaped(text)) == text


def test_numbers_are_not_escaped() -> None:
    assert csv_bytes(("a", "b", "c"), [(-1.5, None, True)]) == b"a,b,c\n-1.5,,yes\n"
