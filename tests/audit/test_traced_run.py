"""Whole runs that look inside the model: the images stay the same, the traces are small and sealed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tropescope
from tropescope.errors import StudyError
from tropescope.features.traces import read_trace, trace_rows

from runs import contents, world_study, write_study

pytestmark = pytest.mark.models
Build = Callable[[str], Path]
HAT = {"present": "a person wearing a hat", "absent": "a person wearing no hat"}
BEARD = {"present": "a person with a beard", "absent": "a person with no beard"}


def study(model: Path, judge: Path, **trace: Any) -> dict[str, Any]:
    entry = {"adapter": "diffusers", "id": str(model), "steps": 3, "guidance": 2.0, "height": 16,
             "width": 16, "batch_size": 2}  # fmt: skip
    references = [
        {"concept": "*", "attribute": name, "value": 0.5, "kind": "assumed", "source": "a coin"}
        for name in ("hat", "beard")
    ]
    return world_study(
        models={"tiny": entry},
        concepts={"kestran": "kestran person", "velori": "velori person"},
        attributes={"hat": HAT, "beard": BEARD},
        references=references,
        judge={"kind": "clip", "id": str(judge)},
        images_per_prompt=4,
        trace={"images_per_prompt": 1, "show_steps": 2, "words": ["kestran", "person"], **trace},
    )


@pytest.mark.parametrize("family", ["sd", "sd3"])
def test_tracing_changes_no_image_and_gives_curves(
    tmp_path: Path, tiny_model: Build, family: str
) -> None:
    settings = study(tiny_model(family), tiny_model("clip"))
    run = tropescope.run(write_study(tmp_path, settings), out=tmp_path / "run", offline=True)
    plain = dict(settings)
    del plain["trace"]
    untraced = tropescope.run(write_study(tmp_path, plain), out=tmp_path / "plain", offline=True)
    tables = (contents(r.path)["tables/images.parquet"] for r in (run, untraced))
    assert len(set(tables)) == 1

    rows = list(trace_rows(run.folder))
    assert len(rows) == 2 * 2 * 2  # rounded up to whole batches of two
    assert all(row.same_image for row in rows)
    trace = read_trace(run.folder, rows[0])
    assert trace.spi_conditional is not None
    assert trace.spi_conditional.shape == (2, 3)
    assert trace.thumbnails is not None
    assert len(trace.thumbnails) == 2
    assert [word.text for word in trace.words] == ["kestran", "person"]
    velori = next(row for row in rows if row.concept == "velori")
    assert [word.text for word in read_trace(run.folder, velori).words] == ["person"]

    curves = run.results.curves
    assert {(c.concept, c.attribute, c.velocity) for c in curves} == {
        (concept, attribute, velocity)
        for concept in ("kestran", "velori")
        for attribute in ("hat", "beard")
        for velocity in ("conditional", "guided")
    }
    first = curves[0]
    expected = np.mean(
        [
            np.asarray(read_trace(run.folder, row).spi_conditional)[0]
            for row in rows
            if row.concept == "kestran"
        ],
        axis=0,
    )
    assert first.value == pytest.approx(expected.tolist(), abs=1e-5)
    assert first.n == 4
    assert run.verify() == []


def test_a_traced_run_continues_and_does_nothing_when_finished(
    tmp_path: Path, tiny_model: Build
) -> None:
    settings = study(tiny_model("sd"), tiny_model("clip"), keep="everything")
    path = write_study(tmp_path, settings)
    run = tropescope.run(path, out=tmp_path / "run", offline=True)
    before = contents(run.path, everything=True)
    tropescope.run(path, out=tmp_path / "run", offline=True)
    assert contents(run.path, everything=True) == before
    lines = run.folder.ledger.read_bytes().splitlines(keepends=True)
    traces = [line for line in lines if b'"stage":"tracing"' in line]
    run.folder.ledger.write_bytes(b"".join(line for line in lines if line not in traces[3:]))
    (run.path / "results.json").unlink()
    tropescope.run(path, out=tmp_path / "run", offline=True)
    after = contents(run.path)
    assert after == {name: value for name, value in before.items() if name in after}
    raw = next((run.path / "traces").rglob("*.safetensors"))
    raw.write_bytes(b"x")
    assert [p.message for p in run.verify()] == ["was changed"]


def test_tracing_can_be_added_to_a_finished_run(tmp_path: Path, tiny_model: Build) -> None:
    settings = study(tiny_model("sd"), tiny_model("clip"), attributes=["hat"], words=[])
    trace = settings.pop("trace")
    run = tropescope.run(write_study(tmp_path, settings), out=tmp_path / "run", offline=True)
    assert run.results.curves == ()
    settings["trace"] = trace
    run = tropescope.run(write_study(tmp_path, settings), out=tmp_path / "run", offline=True)
    assert {c.attribute for c in run.results.curves} == {"hat"}
    stages = [json.loads(line[17:])["stage"] for line in run.folder.ledger.read_text().splitlines()]
    assert stages.count("generation") == 16


def test_early_steps_are_scored_where_there_are_enough_images(
    tmp_path: Path, tiny_model: Build
) -> None:
    settings = study(tiny_model("sd"), tiny_model("clip"), images_per_prompt=24, attributes=["hat"])
    settings["images_per_prompt"] = 24
    settings["models"]["tiny"]["batch_size"] = 8
    settings["prompts"] = {"templates": ["a photo of a {concept}"]}
    run = tropescope.run(write_study(tmp_path, settings), out=tmp_path / "run", offline=True)
    found = [e for e in run.results.estimates if e.measure == "spi_foretelling"]
    assert {e.concept for e in found} == {"kestran", "velori"}
    assert all(e.n + e.n_missing == 24 for e in found)


def test_a_study_without_a_model_to_look_into_is_refused(tmp_path: Path) -> None:
    settings = world_study(trace={"images_per_prompt": 1})
    with pytest.raises(StudyError, match="no model of this study can be traced"):
        tropescope.run(write_study(tmp_path, settings), out=tmp_path / "run")
    settings = world_study(trace={"attributes": ["hut"]})
    with pytest.raises(StudyError, match="did you mean 'hat'"):
        tropescope.run(write_study(tmp_path, settings), out=tmp_path / "run")
