"""A folder of images as a model: matching, replicates, fingerprints, bad images."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tropescope.errors import ModelError
from tropescope.generation.plan import SuppliesImages
from tropescope.models.entry import OpenContext
from tropescope.models.entry import plugin as find_plugin
from tropescope.models.fingerprints import FileFingerprints
from tropescope.models.folder import FolderEntry, plugin
from tropescope.models.protocol import Request, TextToImage

from loopback import image_bytes

ROWS = [
    {"file": "a0.png", "prompt": "a photo of a Veloran", "label_hat": "1"},
    {"file": "b0.jpg", "prompt": "a photo of a Quorian", "label_hat": "0"},
    {"file": "a1.webp", "prompt": "a photo of a Veloran", "label_hat": ""},
]
LEVELS = {"a0.png": 10, "b0.jpg": 80, "a1.webp": 160}


def write_csv(path, rows, **options):
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, **options)
        writer.writeheader()
        writer.writerows(rows)


def write_images(folder, names=LEVELS):
    folder.mkdir(exist_ok=True)
    for name, level in names.items():
        kind = {"png": "PNG", "jpg": "JPEG", "webp": "WEBP"}[name.rpartition(".")[2]]
        (folder / name).write_bytes(image_bytes(kind, level=level))


def open_folder(root, **settings):
    entry = FolderEntry(adapter="folder", path="images", **settings)
    return plugin.open(entry, OpenContext(fingerprints=FileFingerprints(), folder=root))


@pytest.fixture
def root(tmp_path):
    write_images(tmp_path / "images")
    write_csv(tmp_path / "images" / "metadata.csv", ROWS)
    return tmp_path


def ask(model, prompt, replicate, concept="x"):
    request = Request(prompt, seed=0, details={"concept": concept, "replicate": replicate})
    ((answered, outcome),) = model.generate([request])
    assert answered is request
    return outcome


def test_it_is_a_model_that_supplies_images(root):
    model = open_folder(root)
    assert isinstance(model, TextToImage)
    assert isinstance(model, SuppliesImages)
    assert model.batch_matters is False
    assert find_plugin("folder") is plugin
    assert model.facts() == {"metadata": "metadata.csv", "rows": 3}
    model.close()


def test_replicates_come_in_the_order_of_the_metadata(root):
    model = open_folder(root)
    for replicate, name in enumerate(["a0.png", "a1.webp"]):
        outcome = ask(model, "a photo of a Veloran", replicate)
        assert outcome.kind == "generated"
        assert outcome.encoded == (root / "images" / name).read_bytes()
        assert outcome.suffix == "." + name.rpartition(".")[2]
        np.testing.assert_allclose(outcome.pixels, LEVELS[name], atol=3)
    assert ask(model, "a photo of a Quorian", 0).suffix == ".jpg"


def test_labels_become_facts_and_unknown_ones_are_left_out(root):
    model = open_folder(root)
    assert ask(model, "a photo of a Veloran", 0).facts == {"labels": {"hat": True}}
    assert ask(model, "a photo of a Quorian", 0).facts == {"labels": {"hat": False}}
    assert ask(model, "a photo of a Veloran", 1).facts == {}


def test_white_space_does_not_matter_but_words_do(root):
    model = open_folder(root)
    assert len(model.sources("  a photo\n of  a Veloran ", "x")) == 2
    assert model.sources("a photo of a veloran", "x") == []


def test_one_replicate_too_many_failed(root):
    for replicate in (2, -1):
        outcome = ask(open_folder(root), "a photo of a Veloran", replicate)
        assert outcome.kind == "failed"
        assert "2 images" in outcome.reason


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_other_tables_say_the_same(root, kind):
    expected = open_folder(root)
    sources = expected.sources("a photo of a Veloran", "x")
    (root / "images" / "metadata.csv").unlink()
    typed = [
        {**row, "label_hat": {"1": True, "0": False, "": None}[row["label_hat"]]} for row in ROWS
    ]
    if kind == "jsonl":
        text = "\n\n".join(json.dumps(row) for row in typed)
        (root / "images" / "metadata.jsonl").write_text(text)
    else:
        # A column of images, as data sets on the hub have it, must not be read.
        table = pa.table(
            {
                **{name: [row[name] for row in typed] for name in typed[0]},
                "image": [{"bytes": b"x" * 1000, "path": "p"}] * 3,
            }
        )
        pq.write_table(table, root / "images" / "metadata.parquet")
    model = open_folder(root)
    assert model.sources("a photo of a Veloran", "x") == sources
    assert ask(model, "a photo of a Quorian", 0).facts == {"labels": {"hat": False}}


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1, 0, None], [True, False, None]),
        ([1.0, 0.0, float("nan")], [True, False, None]),
        ([True, False, None], [True, False, None]),
        (["TRUE", "false", " "], [True, False, None]),
    ],
)
def test_labels_as_other_tools_write_them(root, values, wanted):
    (root / "images" / "metadata.csv").unlink()
    table = pa.table({"file": list(LEVELS), "prompt": ["p"] * 3, "label_a b": values})
    pq.write_table(table, root / "images" / "metadata.parquet")
    model = open_folder(root)
    found = [ask(model, "p", i).facts.get("labels", {}).get("a b") for i in range(3)]
    assert found == wanted


# -- fingerprints ----------------------------------------------------------------------------------


def test_fingerprints_do_not_depend_on_the_place_or_the_names(root, tmp_path_factory):
    here = open_folder(root).sources("a photo of a Veloran", "x")
    there = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(root / "images", there / "images")
    assert open_folder(there).sources("a photo of a Veloran", "x") == here
    (there / "images" / "a0.png").rename(there / "images" / "z.png")
    write_csv(there / "images" / "metadata.csv", [{**ROWS[0], "file": "z.png"}, *ROWS[1:]])
    assert open_folder(there).sources("a photo of a Veloran", "x") == here
    assert open_folder(root).identity() == {"adapter": "folder"}


@pytest.mark.parametrize(
    "change",
    [
        {"label_hat": "0"},
        {"label_hat": ""},
        {"outcome": "filtered"},
        {"reason": "why"},
        {"file": "other.png"},
    ],
)
def test_a_fingerprint_changes_with_all_that_is_said_of_the_image(root, change):
    before = open_folder(root).sources("a photo of a Veloran", "x")
    (root / "images" / "other.png").write_bytes(image_bytes(level=11))
    write_csv(root / "images" / "metadata.csv", [{**ROWS[0], **change}, *ROWS[1:]])
    after = open_folder(root).sources("a photo of a Veloran", "x")
    assert after[0] != before[0]
    assert after[1] == before[1]


def test_equal_images_and_refusals_count_each(root):
    (root / "images" / "copy.png").write_bytes((root / "images" / "a0.png").read_bytes())
    rows = [{"file": name, "prompt": "p", "outcome": ""} for name in ("a0.png", "copy.png")]
    rows += [{"file": "", "prompt": p, "outcome": "refused"} for p in ("p", "p", "q")]
    write_csv(root / "images" / "metadata.csv", rows)
    model = open_folder(root)
    both = model.sources("p", "x") + model.sources("q", "y")
    assert len(both) == len(set(both)) == 5


def test_an_image_that_changes_during_the_run_is_not_taken(root):
    model = open_folder(root)
    model.sources("a photo of a Veloran", "x")
    (root / "images" / "a0.png").write_bytes(image_bytes(level=99))
    outcome = ask(model, "a photo of a Veloran", 0)
    assert outcome.kind == "failed"
    assert "changed" in outcome.reason


# -- missingness and bad images --------------------------------------------------------------------


def test_missing_images_are_imported_with_their_reason(root):
    kinds = ["filtered", "Refused", "failed", "invalid"]
    rows = [{"file": "", "prompt": "p", "outcome": kind, "reason": f"r {kind}"} for kind in kinds]
    rows.append({"file": "a0.png", "prompt": "p", "outcome": "filtered", "reason": "black"})
    write_csv(root / "images" / "metadata.csv", rows)
    model = open_folder(root)
    found = [ask(model, "p", i) for i in range(5)]
    assert [outcome.kind for outcome in found] == [k.lower() for k in kinds] + ["filtered"]
    assert found[1].reason == "r Refused"
    assert found[0].pixels is None
    assert found[4].pixels is not None


@pytest.mark.parametrize("content", [b"", b"GIF89a", image_bytes()[:-9], b"<html>"])
def test_a_bad_image_is_an_outcome_that_names_the_file(root, content):
    (root / "images" / "a0.png").write_bytes(content)
    model = open_folder(root)
    assert len(model.sources("a photo of a Veloran", "x")) == 2
    outcome = ask(model, "a photo of a Veloran", 0)
    assert outcome.kind == "invalid"
    assert "a0.png" in outcome.reason
    assert ask(model, "a photo of a Veloran", 1).kind == "generated"


def test_a_file_that_vanishes_during_the_run_is_an_outcome(root):
    model = open_folder(root)
    model.sources("a photo of a Veloran", "x")
    (root / "images" / "a0.png").unlink()
    outcome = ask(model, "a photo of a Veloran", 0)
    assert outcome.kind == "invalid"
    assert "a0.png" in outcome.reason


@pytest.mark.parametrize(
    "name", ["😀 שלום.png", "=HYPERLINK().png", "{{7*7}}<script>.png", "x" * 250]
)
def test_strange_names_work(root, name):
    (root / "images" / name).write_bytes(image_bytes())
    write_csv(root / "images" / "metadata.csv", [{"file": name, "prompt": name * 2}])
    model = open_folder(root)
    assert len(model.sources(name * 2, "x")) == 1
    assert ask(model, name * 2, 0).kind == "generated"


# -- prompts and concepts --------------------------------------------------------------------------


def test_a_prompt_without_images_is_an_error_with_the_nearest_ones(root):
    problems = open_folder(root).check_prompts(
        ["a photo of a Veloran", "a photo of one Veloran", "something entirely different"]
    )
    assert [problem.level for problem in problems] == ["error", "error"]
    assert "nearest: 'a photo of a Veloran'" in problems[0].message
    assert "nearest" not in problems[1].message


def test_many_missing_prompts_do_not_take_long(root):
    prompts = [f"a photo of a person number {i}" for i in range(3000)]
    write_csv(
        root / "images" / "metadata.csv",
        [{"file": "", "outcome": "refused", "prompt": prompt} for prompt in prompts],
    )
    problems = open_folder(root).check_prompts([prompt + "!" for prompt in prompts])
    assert len(problems) == 3000
    assert "nearest" in problems[0].message


def test_images_may_be_named_by_concept(root):
    rows = [{"file": name, "concept": "velora"} for name in ("a0.png", "a1.webp")]
    write_csv(root / "images" / "metadata.csv", rows)
    model = open_folder(root)
    assert model.check_prompts(["any"]) == []
    assert len(model.sources("any prompt", "velora")) == 2
    assert model.sources("any prompt", "other") == []
    assert ask(model, "any prompt", 1, concept="velora").suffix == ".webp"
    with pytest.raises(ModelError, match="several ways") as caught:
        model.sources("another prompt", "velora")
    assert "column with the prompt" in caught.value.fix


def test_a_prompt_goes_before_a_concept(root):
    rows = [
        {"file": "a0.png", "prompt": "p", "concept": "velora"},
        {"file": "a1.webp", "prompt": "", "concept": "velora"},
    ]
    write_csv(root / "images" / "metadata.csv", rows)
    model = open_folder(root)
    assert ask(model, "p", 0, concept="velora").suffix == ".png"
    assert ask(model, "q", 0, concept="velora").suffix == ".webp"


def test_the_entry_module_is_light():
    code = (
        "import sys, tropescope.models.folder; "
        "print([m for m in ('pyarrow', 'PIL', 'torch', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
