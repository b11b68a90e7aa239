"""Nothing that was edited is taken over, and no report is older than its results."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tropescope
from tropescope.audit import pipeline
from tropescope.cli.report import report as report_command
from tropescope.errors import Corruption, MeasureError, PromptError, StoreError

from runs import contents, world_study, write_study


@pytest.mark.parametrize("victim", ["results.json", "report.html", "tables/presence.parquet"])
def test_an_edited_file_is_made_again_not_sealed(tmp_path: Path, victim: str) -> None:
    study = write_study(tmp_path, world_study())
    run = tropescope.run(study, out=tmp_path / "run")
    before = contents(run.path)
    data = bytearray((run.path / victim).read_bytes())
    data[len(data) // 2] ^= 1
    (run.path / victim).write_bytes(bytes(data))
    if victim != "report.html":
        with pytest.raises(Corruption, match="was changed after the run finished"):
            report_command(run.path)
    assert run.verify()
    tropescope.run(study, out=tmp_path / "run")
    assert contents(run.path) == before


def test_a_report_is_never_older_than_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = world_study()
    tropescope.run(write_study(tmp_path, settings), out=tmp_path / "run")
    settings["zeta"] = 0.3
    path = write_study(tmp_path, settings)

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(pipeline, "write_report", interrupted)
        tropescope.run(path, out=tmp_path / "run")
    assert not (tmp_path / "run" / "seal.json").exists()
    run = tropescope.run(path, out=tmp_path / "run")
    clean = tropescope.run(path, out=tmp_path / "clean")
    assert contents(run.path) == contents(clean.path)


def test_a_study_that_is_refused_leaves_a_finished_run_as_it_was(tmp_path: Path) -> None:
    settings = world_study()
    run = tropescope.run(write_study(tmp_path, settings), out=tmp_path / "run")
    before = contents(run.path, everything=True)
    settings["concepts"]["K"] = "Kestrn person"
    with pytest.raises(PromptError):
        tropescope.run(write_study(tmp_path, settings), out=tmp_path / "run")
    assert contents(run.path, everything=True) == before
    assert run.verify() == []


def test_a_lost_image_is_made_again(tmp_path: Path) -> None:
    study = write_study(tmp_path, world_study())
    run = tropescope.run(study, out=tmp_path / "run")
    before = contents(run.path)
    images = sorted((run.path / "images").rglob("*.png"))
    images[0].unlink()
    images[1].write_bytes(images[1].read_bytes()[:100])
    images[2].unlink()
    tropescope.run(study, out=tmp_path / "run")
    assert [p.artefact for p in run.verify()] == [images[1].relative_to(run.path).as_posix()]
    images[1].unlink()
    tropescope.run(study, out=tmp_path / "run")
    assert contents(run.path) == before


def test_labels_that_nobody_has_are_named(tmp_path: Path) -> None:
    settings = world_study()
    settings["attributes"]["hta"] = settings["attributes"].pop("hat")
    settings["references"][0]["attribute"] = "hta"
    with pytest.raises(MeasureError, match="no image has a label for 'hta'"):
        tropescope.run(write_study(tmp_path, settings), out=tmp_path / "run")


def test_a_study_read_from_a_file_keeps_its_folder_and_every_word(tmp_path: Path) -> None:
    settings = world_study(study="1e3", concepts={"no": "Kestran person", "on": "Nolvar person"})
    (tmp_path / "study.yaml").write_text(json.dumps(settings))  # JSON is YAML, all quoted
    study = tropescope.load_study(tmp_path / "study.yaml")
    run = tropescope.run(study, out=tmp_path / "run")
    assert tropescope.open_run(run.path).study.model_dump() == study.model_dump()


@pytest.mark.parametrize("name", ["file", "file/below", "x" * 300])
def test_impossible_folders_are_refused_in_words(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    study = write_study(tmp_path, world_study())
    with pytest.raises(StoreError):
        tropescope.run(study, out=tmp_path / name)
    with pytest.raises(StoreError):
        tropescope.open_run(tmp_path / name)


def test_damaged_notes_do_not_stop_a_run(tmp_path: Path) -> None:
    study = write_study(tmp_path, world_study())
    run = tropescope.run(study, out=tmp_path / "run")
    for name, text in (("manifest.json", "{"), ("seal.json", "[]"), ("fingerprints.json", "[")):
        (run.path / name).write_text(text)
    assert run.verify()[0].message == "is not readable"
    tropescope.run(study, out=tmp_path / "run")
    assert run.verify() == []


def test_stopping_with_the_keyboard_says_that_nothing_is_lost(tmp_path: Path) -> None:
    settings = world_study(images_per_prompt=4000)
    settings["models"] = {"a{x}b": settings["models"]["planted"]}
    study = write_study(tmp_path, settings)
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "tropescope.cli.main", "run", str(study), "--out", "run"]
    child = subprocess.Popen(
        command, cwd=tmp_path, stderr=slave, stdout=subprocess.PIPE, start_new_session=True
    )
    ledger = tmp_path / "run" / "ledger.jsonl"
    deadline = time.monotonic() + 60
    while not (ledger.exists() and ledger.stat().st_size > 1000):
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    os.set_blocking(master, False)
    said = b""
    while child.poll() is None or said == b"":
        try:
            said += os.read(master, 65536)
        except BlockingIOError:
            time.sleep(0.01)
    time.sleep(0.2)
    while True:
        try:
            said += os.read(master, 65536)
        except BlockingIOError:
            break
    assert child.wait(30) == 130
    assert b"finished items are kept" in said
    assert json.loads((tmp_path / "run" / "format.json").read_text())["format"] == 1
