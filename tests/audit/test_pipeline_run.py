"""Whole runs of a real pipeline and judge: batch size, half precision, SigLIP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tropescope
from tropescope.store.images import ImageStore

from runs import contents, world_study, write_study

pytestmark = pytest.mark.models
Build = Callable[[str], Path]
HAT = {"present": "a person wearing a hat", "absent": "a person wearing no hat"}


def study(model: Path, judge: Path, **settings: Any) -> dict[str, Any]:
    entry = {"adapter": "diffusers", "id": str(model), "steps": 2, "guidance": 2.0, "height": 16,
             "width": 16, "batch_size": 4, **settings}  # fmt: skip
    return world_study(
        models={"tiny": entry},
        concepts={"kestran": "kestran person", "velori": "velori person"},
        attributes={"hat": HAT},
        references=[{"concept": "*", "attribute": "hat", "value": 0.5, "kind": "assumed",
                     "source": "a coin"}],
        estimators=["mean", "soft", "posterior"],
        measures=["stereotype_score", "parity_gap"],
        judge={"kind": "clip", "id": str(judge), "batch_size": 8},
        images_per_prompt=6,
    )  # fmt: skip


def soft_rates(run: tropescope.Run) -> list[float]:
    return [
        float(e.value or 0) for e in run.results.select(measure="attribute_rate", estimator="soft")
    ]


def test_batch_size_changes_images_and_estimates_only_by_rounding(
    tmp_path: Path, tiny_model: Build
) -> None:
    runs = []
    for size in (1, 4):
        settings = study(tiny_model("sd"), tiny_model("clip"), batch_size=size)
        settings["judge"]["batch_size"] = size
        path = write_study(tmp_path, settings, f"s{size}.yaml")
        runs.append(tropescope.run(path, out=tmp_path / str(size), offline=True))
    for one, other in zip(*(run.images().to_pylist() for run in runs), strict=True):
        assert one["key"] == other["key"]
        pictures = [
            ImageStore(run.path).read(row["path"]).astype(int)
            for run, row in zip(runs, (one, other), strict=True)
        ]
        assert np.abs(pictures[0] - pictures[1]).max() <= 2
    assert soft_rates(runs[0]) == pytest.approx(soft_rates(runs[1]), abs=1e-3)


def test_half_precision_gives_the_same_estimates_within_a_tolerance(
    tmp_path: Path, tiny_model: Build
) -> None:
    rates = []
    for dtype in ("float32", "bfloat16"):
        path = write_study(tmp_path, study(tiny_model("sd"), tiny_model("clip"), dtype=dtype))
        run = tropescope.run(path, out=tmp_path / dtype, offline=True)
        rates.append(soft_rates(run))
        facts = json.loads((run.path / "manifest.json").read_text("utf-8"))["models"]["tiny"]
        assert facts["dtype"] == dtype
        assert {"threads", "attention_backends", "device", "torch"} <= set(facts)
    assert rates[0] == pytest.approx(rates[1], abs=0.05)


@pytest.mark.parametrize(("family", "judge"), [("sdxl", "siglip"), ("flux", "clip")])
def test_a_finished_run_loads_nothing(
    tmp_path: Path, tiny_model: Build, family: str, judge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = study(tiny_model(family), tiny_model(judge))
    settings["images_per_prompt"] = 2
    path = write_study(tmp_path, settings)
    run = tropescope.run(path, out=tmp_path / "run", offline=True)
    before = contents(run.path, everything=True)
    assert {e.estimator for e in run.results.estimates} == {"mean", "soft", "posterior"}

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a finished run must not load weights")

    monkeypatch.setattr("tropescope.models.diffusers_pipeline.DiffusersModel.pipeline", refuse)
    monkeypatch.setattr("tropescope.models.clip.ClipEncoder._load", refuse)
    tropescope.run(path, out=tmp_path / "run", offline=True)
    assert contents(run.path, everything=True) == before


def test_embeddings_survive_a_changed_study(tmp_path: Path, tiny_model: Build) -> None:
    settings = study(tiny_model("sd"), tiny_model("clip"))
    run = tropescope.run(write_study(tmp_path, settings), out=tmp_path / "run", offline=True)
    table = next((run.path / "tables").glob("embeddings-*.parquet"))
    one = {r["image"]: r["embedding"] for r in _rows(table)}
    settings["concepts"]["doctor"] = "doctor"
    tropescope.run(write_study(tmp_path, settings), out=tmp_path / "run", offline=True)
    two = {r["image"]: r["embedding"] for r in _rows(table)}
    assert len(two) == len(one) + 12
    assert all(two[image] == vector for image, vector in one.items())
    assert not (run.path / "parts").exists() or not list((run.path / "parts").iterdir())


def _rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    return list(pq.read_table(path).to_pylist())
