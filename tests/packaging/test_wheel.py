"""The wheel holds everything: installed elsewhere, it finds its studies and loads every model."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LOAD_EVERYTHING = """
import pathlib, sys
import tropescope
assert pathlib.Path(tropescope.__file__).is_relative_to(sys.argv[1]), tropescope.__file__

import transformers
from tropescope.audit.source import ready_studies
from tropescope.models.clip import ClipEncoder
from tropescope.models.diffusers_entry import DiffusersEntry
from tropescope.models.diffusers_pipeline import DiffusersModel
from tropescope.models.entry import OpenContext
from tropescope.models.fingerprints import FileFingerprints
from tropescope.models.protocol import Request
from tropescope.world.models import MODELS, model_folder

assert {"demo", "world_national", "world_inside"} <= set(ready_studies()), ready_studies()
context = OpenContext(FileFingerprints(), pathlib.Path(), offline=True)
loaded = set()
for name in ("unet", "flow"):
    entry = DiffusersEntry(adapter="diffusers", id=f"embedded:{name}", steps=1)
    model = DiffusersModel(entry, context)
    [(_, outcome)] = model.generate([Request("a photo of a Kestran person", 1)])
    assert outcome.kind == "generated", outcome.reason
    loaded.add(name)
for name in ("judge", "judge_small"):
    encoder = ClipEncoder(f"embedded:{name}", revision=None, dtype=None, context=context)
    assert encoder.encode_texts(["a photo of a person wearing a hat"]).shape[0] == 1
    loaded.add(name)
for name, kind in {
    "captioner": "BlipForConditionalGeneration",
    "answerer": "BlipForQuestionAnswering",
    "language": "LlamaForCausalLM",
    "segmenter": "SegformerForSemanticSegmentation",
}.items():
    getattr(transformers, kind).from_pretrained(model_folder(name))
    loaded.add(name)
assert loaded == set(MODELS), set(MODELS) - loaded
print("loaded", len(loaded))
"""


@pytest.mark.slow
@pytest.mark.models
def test_the_wheel_works_in_another_place(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT]
    subprocess.run(build, check=True, capture_output=True)
    wheel = next(tmp_path.glob("*.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    assert "tropescope/studies/demo.yaml" in names
    assert "tropescope/py.typed" in names
    assert not [name for name in names if name.startswith(("tests", "tools", "docs"))]
    place = tmp_path / "installed"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", place, wheel],
        check=True,
        capture_output=True,
    )
    done = subprocess.run(
        [sys.executable, "-c", LOAD_EVERYTHING, place],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "loaded 8" in done.stdout
