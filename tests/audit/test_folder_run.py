"""Whole runs on a folder of images: any names, any faults, and a real browser that stays calm."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import tropescope
from tropescope.errors import PromptError

from runs import contents, world_study, write_study

HOSTILE = [
    "../../etc/passwd", "<script>document.title='pwned'</script>", "{{7*7}}", "{% raw %}",
    "=HYPERLINK(\"http://x\")", "\u202egnp.exe", "😀" * 50, "x" * 4000, "a\u0301\u0327",
    "'; DROP TABLE images; --", "%s%n", "\\..\\..", "con", "</title><img src=x onerror=alert(1)>",
]  # fmt: skip


def pictures(folder: Path, rows: list[dict[str, Any]]) -> None:
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for i, row in enumerate(rows):
        row.setdefault("file", f"{i}.png")
        if row["file"]:
            pixels = rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / row["file"])
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(rows)
    (folder / "metadata.csv").write_bytes(text.getvalue().encode())


def folder_study(concepts: dict[str, str], attribute: str = "hat") -> dict[str, Any]:
    text = {"present": f"{attribute} is there", "absent": f"{attribute} is not there"}
    return world_study(
        study="A folder " + attribute[:100],
        models={"pictures": {"adapter": "folder", "path": "pictures"}},
        concepts=concepts,
        prompts={"templates": ["{concept}"], "articles": "published"},
        images_per_prompt=50,
        attributes={attribute: text},
        references=[{"concept": "*", "attribute": attribute, "value": 0.5, "source": attribute,
                     "kind": "assumed"}],
    )  # fmt: skip


def test_rates_of_a_labelled_folder(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"prompt": "Kestran person", "label_hat": int(i < 15)} for i in range(20)
    ]
    rows += [{"prompt": "Nolvar person", "label_hat": ""} for _ in range(3)]
    rows += [{"prompt": "Nolvar person", "file": "", "outcome": "refused", "reason": "policy"}]
    rows += [{"prompt": "Nolvar person", "label_hat": 1}]
    pictures(tmp_path / "pictures", rows)
    study = folder_study({"k": "Kestran person", "n": "Nolvar person"})
    run = tropescope.run(write_study(tmp_path, study), out=tmp_path / "run")
    rates = {e.concept: e for e in run.results.select(measure="attribute_rate")}
    assert rates["k"].value == 0.75
    assert (rates["n"].value, rates["n"].n, rates["n"].n_missing) == (1.0, 1, 4)
    before = contents(run.path, everything=True)
    tropescope.run(write_study(tmp_path, study), out=tmp_path / "run")
    assert contents(run.path, everything=True) == before


def test_a_changed_picture_is_imported_again(tmp_path: Path) -> None:
    pictures(tmp_path / "pictures", [{"prompt": "p", "label_hat": 1} for _ in range(3)])
    path = write_study(tmp_path, folder_study({"p": "p"}))
    one = tropescope.run(path, out=tmp_path / "run").images().to_pylist()
    Image.new("RGB", (9, 9), "red").save(tmp_path / "pictures" / "1.png")
    two = tropescope.run(path, out=tmp_path / "run").images().to_pylist()
    assert [a["key"] == b["key"] for a, b in zip(one, two, strict=True)] == [True, False, True]


def test_damaged_pictures_are_counted_not_fatal(tmp_path: Path) -> None:
    pictures(tmp_path / "pictures", [{"prompt": "p", "label_hat": 1} for _ in range(4)])
    (tmp_path / "pictures" / "2.png").write_bytes(b"not a picture")
    run = tropescope.run(write_study(tmp_path, folder_study({"p": "p"})), out=tmp_path / "run")
    row = run.images().to_pylist()[2]
    assert row["outcome"] == "invalid"
    assert "2.png" in row["reason"]
    assert run.results.estimates[0].n_missing == 1


def test_a_prompt_without_pictures_is_refused_with_the_nearest(tmp_path: Path) -> None:
    pictures(tmp_path / "pictures", [{"prompt": "Kestran person", "label_hat": 1}])
    study = folder_study({"k": "Kestran persn"})
    with pytest.raises(PromptError, match="Kestran person"):
        tropescope.run(write_study(tmp_path, study), out=tmp_path / "run")


def check_names(root: Path, names: list[str]) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    attribute = names[0]
    rows = [{"prompt": name, f"label_{attribute}": i % 2} for i, name in enumerate(names * 2)]
    pictures(root / "pictures", rows)
    study = folder_study(dict(zip(names, names, strict=True)), attribute)
    run = tropescope.run(write_study(root, study), out=root / "run")
    assert {e.concept for e in run.results.estimates} == set(names)
    assert run.verify() == []
    inside = {p.name for p in (root / "run").rglob("*")}
    for name in names:
        assert not any(name in file and len(name) > 12 for file in inside)
    assert {p.name for p in root.iterdir()} == {"pictures", "run", "study.yaml"}
    return run.report


@pytest.mark.browser
def test_hostile_names_reach_the_report_as_text(tmp_path: Path, browser_page: Any) -> None:
    report = check_names(tmp_path / "x", HOSTILE)
    complaints: list[str] = []
    browser_page.on("console", lambda message: complaints.append(message.text))
    browser_page.on("dialog", lambda dialog: complaints.append("dialog"))
    browser_page.on("pageerror", lambda problem: complaints.append(str(problem)))
    browser_page.goto(report.as_uri())
    assert complaints == []
    assert browser_page.title() != "pwned"
    text = browser_page.inner_text("body")
    assert "{{7*7}}" in text
    assert "<script>document.title='pwned'</script>" in text


names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40
).filter(lambda s: " ".join(s.split()).casefold())


@settings(
    max_examples=12, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(st.lists(names, min_size=1, max_size=3, unique_by=lambda s: " ".join(s.casefold().split())))
def test_any_names_survive_the_whole_way(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[str]
) -> None:
    check_names(tmp_path_factory.mktemp("names") / "x", drawn)
