"""Whole runs: continued, repeated, changed, checked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import tropescope
from tropescope.errors import FolderLocked, PromptError, StoreError, StudyError
from tropescope.generation.worker import committed
from tropescope.models.protocol import BatchTooLarge, Outcome, Request
from tropescope.store.lock import folder_lock
from tropescope.world.generator import WorldGenerator

from runs import contents, world_study, write_study


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keys of all images that the generator was asked to draw."""
    asked: list[str] = []
    original = WorldGenerator.generate

    def generate(
        self: WorldGenerator, requests: Sequence[Request]
    ) -> Iterator[tuple[Request, Outcome]]:
        asked.extend(request.key for request in requests)
        return original(self, requests)

    monkeypatch.setattr(WorldGenerator, "generate", generate)
    return asked


def test_a_run_holds_everything_and_a_second_does_nothing(tmp_path: Path, drawn: list[str]) -> None:
    study = write_study(tmp_path, world_study())
    run = tropescope.run(study, out=tmp_path / "run")
    assert len(drawn) == len(set(drawn)) == 40
    before = contents(run.path, everything=True)
    times = {p: p.stat().st_mtime_ns for p in run.path.rglob("*") if p.name != "lock"}
    again = tropescope.run(study, out=tmp_path / "run")
    assert len(drawn) == 40
    assert contents(again.path, everything=True) == before
    assert {p: p.stat().st_mtime_ns for p in run.path.rglob("*") if p.name != "lock"} == times
    assert run.verify() == []
    assert run.images().num_rows == 40
    assert run.presence().num_rows == 80
    assert run.report.read_text("utf-8").lower().startswith("<!doctype html>")


def test_every_estimate_is_complete(tmp_path: Path) -> None:
    run = tropescope.run(write_study(tmp_path, world_study()), out=tmp_path / "run")
    results = json.loads((run.path / "results.json").read_text("utf-8"))
    required = {"measure", "version", "model", "concept", "attribute", "value", "low", "high",
                "level", "n", "n_missing", "estimand", "method", "verdict", "items"}  # fmt: skip
    assert len(results["estimates"]) == 2 * 2 * 3
    keys = set(run.images()["key"].to_pylist())
    for estimate in results["estimates"]:
        assert required <= set(estimate)
        assert estimate["low"] <= estimate["value"] <= estimate["high"]
        behind = results["item_sets"][estimate["items"]]
        assert len(behind["keys"]) == estimate["n"] == 20
        assert set(behind["keys"]) <= keys


def test_estimates_follow_from_the_tables_by_plain_arithmetic(tmp_path: Path) -> None:
    run = tropescope.run(write_study(tmp_path, world_study()), out=tmp_path / "run")
    images = {r["key"]: r for r in run.images().to_pylist()}
    for estimate in run.results.select(measure="attribute_rate"):
        by_template: dict[str, list[bool]] = {}
        for row in run.presence().to_pylist():
            image = images[row["key"]]
            if image["concept"] == estimate.concept and row["attribute"] == estimate.attribute:
                shown = row["similarity_present"] > row["similarity_absent"]
                by_template.setdefault(image["template"], []).append(shown)
                labels = json.loads(image["facts"])["labels"]
                assert labels[estimate.attribute] == shown
        means = [sum(v) / len(v) for v in by_template.values()]
        assert estimate.value == pytest.approx(sum(means) / len(means))


def test_a_changed_study_reuses_every_unchanged_image(tmp_path: Path, drawn: list[str]) -> None:
    study = world_study()
    tropescope.run(write_study(tmp_path, study), out=tmp_path / "run")
    study["concepts"]["Velori"] = "Velori person"
    study["images_per_prompt"] = 12
    tropescope.run(write_study(tmp_path, study), out=tmp_path / "run")
    assert len(drawn) == len(set(drawn)) == 3 * 2 * 12
    study["zeta"] = 0.2
    study["references"][0]["value"] = 0.9
    run = tropescope.run(write_study(tmp_path, study), out=tmp_path / "run")
    assert len(drawn) == 72
    assert {e.zeta for e in run.results.select(measure="stereotype_score")} == {0.2}
    fresh = tropescope.run(write_study(tmp_path, study), out=tmp_path / "fresh")
    assert contents(fresh.path) == contents(run.path)


def test_missing_images_are_results_by_identity_and_failures_are_tried_again(
    tmp_path: Path, drawn: list[str]
) -> None:
    study = world_study()
    study["models"]["planted"]["misbehave"] = {
        "Kestran": {"refuse": 0.4, "black": 0.2},
        "Nolvar": {"fail": 0.3},
    }
    run = tropescope.run(write_study(tmp_path, study), out=tmp_path / "run")
    kestran = run.results.item_sets["planted × Kestran"]
    nolvar = run.results.item_sets["planted × Nolvar"]
    assert set(kestran.missing) == {"invalid", "refused"}
    assert set(nolvar.missing) == {"failed"}
    for estimate in run.results.select(measure="attribute_rate"):
        behind = run.results.item_sets[estimate.items]
        assert estimate.n_missing == sum(map(len, behind.missing.values())) > 0
        assert estimate.n + estimate.n_missing == 20
        assert estimate.bounds is not None
        assert estimate.bounds[0] <= estimate.value <= estimate.bounds[1]  # type: ignore[operator]
    reasons = {r["reason"] for r in run.images().to_pylist() if r["outcome"] == "invalid"}
    assert reasons == {"the image is entirely black"}
    before = contents(run.path)
    drawn.clear()
    tropescope.run(write_study(tmp_path, study), out=tmp_path / "run")
    assert set(drawn) == set(nolvar.missing["failed"])
    assert contents(run.path) == before
    attempts = [committed(run.folder)[key]["attempt"] for key in nolvar.missing["failed"]]
    assert set(attempts) == {2}


def test_running_out_of_memory_halves_the_batch_and_changes_no_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = write_study(tmp_path, world_study())
    clean = tropescope.run(study, out=tmp_path / "clean")
    original = WorldGenerator.generate

    def generate(
        self: WorldGenerator, requests: Sequence[Request]
    ) -> Iterator[tuple[Request, Outcome]]:
        if len(requests) > 3:
            raise BatchTooLarge("no room for more than three")
        return original(self, requests)

    monkeypatch.setattr(WorldGenerator, "generate", generate)
    tight = tropescope.run(study, out=tmp_path / "tight")
    assert contents(tight.path) == contents(clean.path)
    assert {r["batch"] for r in committed(tight.folder).values()} <= {1, 2, 3}
    manifest = json.loads(tight.folder.manifest.read_text("utf-8"))
    assert manifest["batch_halvings"] > 0


def test_batch_size_changes_no_result(tmp_path: Path) -> None:
    study = world_study()
    runs = []
    for size in (1, 64):
        study["models"]["planted"]["batch_size"] = size
        path = write_study(tmp_path, study)
        runs.append(tropescope.run(path, out=tmp_path / str(size)))
    one, other = (contents(run.path) for run in runs)
    for name in ("results.json", "tables/images.parquet", "tables/presence.parquet"):
        assert one[name] == other[name]


def test_an_interrupted_run_keeps_what_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn: list[str]
) -> None:
    study = write_study(tmp_path, world_study())
    original = WorldGenerator.generate
    calls = 0

    def generate(
        self: WorldGenerator, requests: Sequence[Request]
    ) -> Iterator[tuple[Request, Outcome]]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return original(self, requests)

    monkeypatch.setattr(WorldGenerator, "generate", generate)
    with pytest.raises(KeyboardInterrupt):
        tropescope.run(study, out=tmp_path / "run")
    assert len(drawn) == 16
    run = tropescope.run(study, out=tmp_path / "run")
    assert len(drawn) == len(set(drawn)) == 40
    clean = tropescope.run(study, out=tmp_path / "clean")
    assert contents(run.path) == contents(clean.path)


def test_bad_prompts_are_refused_before_any_image(tmp_path: Path, drawn: list[str]) -> None:
    study = world_study(concepts={"K": "Kestrn person"})
    with pytest.raises(PromptError, match="did you mean 'kestran'"):
        tropescope.run(write_study(tmp_path, study), out=tmp_path / "run")
    assert drawn == []


def test_a_locked_folder_is_refused(tmp_path: Path) -> None:
    study = write_study(tmp_path, world_study())
    with folder_lock(tmp_path / "run"), pytest.raises(FolderLocked, match="another process"):
        tropescope.run(study, out=tmp_path / "run")


def test_two_entries_with_equal_settings_share_their_images(
    tmp_path: Path, drawn: list[str]
) -> None:
    study = world_study()
    study["models"]["twin"] = dict(study["models"]["planted"])
    run = tropescope.run(write_study(tmp_path, study), out=tmp_path / "run")
    assert len(drawn) == 40
    assert run.images().num_rows == 80
    one, other = (
        [e.value for e in run.results.select(measure="attribute_rate", model=name)]
        for name in ("planted", "twin")
    )
    assert one == other
    del study["models"]["twin"]
    alone = tropescope.run(write_study(tmp_path, study), out=tmp_path / "alone")
    assert one == [e.value for e in alone.results.select(measure="attribute_rate")]


def test_a_limit_runs_a_small_trial_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = tropescope.run(write_study(tmp_path, world_study()), limit=8)
    assert run.images().num_rows == 8
    assert run.path == Path("runs/study-limit8")


def test_an_erring_judge_errs_at_its_rates(tmp_path: Path) -> None:
    study = world_study(images_per_prompt=200)
    exact = tropescope.run(write_study(tmp_path, study), out=tmp_path / "exact")
    study["judge"] = {"kind": "labels", "sensitivity": 0.7, "specificity": 0.9}
    erring = tropescope.run(write_study(tmp_path, study), out=tmp_path / "erring")
    for right, seen in zip(
        exact.results.select(measure="attribute_rate"),
        erring.results.select(measure="attribute_rate"),
        strict=True,
    ):
        assert right.value is not None
        expected = 0.7 * right.value + 0.1 * (1 - right.value)
        assert seen.value == pytest.approx(expected, abs=0.07)


@pytest.mark.parametrize(
    ("victim", "expected"),
    [
        ("tables/images.parquet", "changed"),
        ("tables/presence.parquet", "changed"),
        ("results.json", "changed"),
        ("report.html", "changed"),
        ("study.yaml", "changed"),
        ("ledger.jsonl", "checksum"),
        ("images", "file was changed"),
    ],
)
def test_every_edited_artefact_is_detected(tmp_path: Path, victim: str, expected: str) -> None:
    run = tropescope.run(write_study(tmp_path, world_study()), out=tmp_path / "run")
    path = run.path / victim
    if path.is_dir():
        path = next(path.rglob("*.png"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    problems = run.verify()
    assert problems
    assert expected in problems[0].message
    path.unlink()
    if victim != "ledger.jsonl":
        assert any("missing" in p.message for p in run.verify())


def test_a_lost_table_is_rebuilt_by_the_same_command(tmp_path: Path, drawn: list[str]) -> None:
    study = write_study(tmp_path, world_study())
    run = tropescope.run(study, out=tmp_path / "run")
    before = contents(run.path)
    for name in ("tables/images.parquet", "tables/presence.parquet", "results.json", "report.html"):
        (run.path / name).unlink()
    tropescope.run(study, out=tmp_path / "run")
    assert contents(run.path) == before
    assert len(drawn) == 40


def test_a_study_made_in_python_runs_and_is_stored(tmp_path: Path) -> None:
    path = write_study(tmp_path, world_study())
    study = tropescope.load_study(path)
    run = tropescope.run(study, out=tmp_path / "run")
    assert tropescope.open_run(run.path).study.model_dump() == study.model_dump()


def test_wrong_calls(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no study file"):
        tropescope.run("not-there.yaml", out=tmp_path / "run")
    with pytest.raises(StoreError, match="not a run folder"):
        tropescope.open_run(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_text("x")
    with pytest.raises(StoreError, match="not empty"):
        tropescope.run(write_study(tmp_path, world_study()), out=other)


def test_planted_truth_stands_beside_the_estimates(tmp_path: Path) -> None:
    study: dict[str, Any] = world_study(images_per_prompt=100)
    run = tropescope.run(write_study(tmp_path, study), out=tmp_path / "run")
    for estimate in run.results.estimates:
        assert estimate.truth is not None
        assert estimate.low is not None
        assert estimate.high is not None
        slack = 0.05
        assert estimate.low - slack <= estimate.truth <= estimate.high + slack
