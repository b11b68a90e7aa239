"""Killed at any moment and run again, a study gives the same bytes as one that was left alone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tropescope

from runs import contents, world_study, write_study

KILLS = 50


def _start(study: Path, out: Path) -> int:
    """A forked child that runs the study; everything is imported already."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            tropescope.run(study, out=out)
            code = 0
        finally:
            os._exit(code)
    return child


def _finished_or_killed(child: int, delay: float) -> bool:
    """True where the child was killed; a child that ends first must have succeeded."""
    deadline = time.monotonic() + delay
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return False
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


@pytest.mark.slow
def test_fifty_kills_change_no_byte(tmp_path: Path) -> None:
    study = write_study(tmp_path, world_study())
    started = time.monotonic()
    clean = contents(tropescope.run(study, out=tmp_path / "clean").path)
    whole = time.monotonic() - started
    moments = random.Random(1)
    kills = rounds = 0
    while kills < KILLS:
        out = tmp_path / f"killed{rounds}"
        rounds += 1
        for _ in range(12):
            if not _finished_or_killed(_start(study, out), moments.uniform(0, 0.7 * whole)):
                break
            kills += 1
        tropescope.run(study, out=out)
        assert contents(out) == clean
    assert rounds > 1


RUN_PIPELINE = """
import sys, torch
torch.set_num_threads(1)
import tropescope
tropescope.run(sys.argv[1], out=sys.argv[2], offline=True)
"""


@pytest.mark.slow
@pytest.mark.models
def test_a_real_pipeline_killed_three_times(
    tmp_path: Path, tiny_model: Callable[[str], Path]
) -> None:
    study = world_study(
        models={
            "sd": {
                "adapter": "diffusers", "id": str(tiny_model("sd")), "steps": 3, "height": 16,
                "width": 16, "guidance": 2.0, "batch_size": 4,
            }
        },
        concepts={"kestran": "kestran person", "velori": "velori person"},
        judge={"kind": "clip", "id": str(tiny_model("clip")), "batch_size": 8},
        images_per_prompt=30,
    )  # fmt: skip
    for attribute in study["attributes"].values():
        attribute["present"] = attribute["present"].replace("moustache", "beard")
        attribute["absent"] = attribute["absent"].replace("moustache", "beard")
    path = write_study(tmp_path, study)
    out, clean = tmp_path / "killed", tmp_path / "clean"

    def start(folder: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", RUN_PIPELINE, path, folder])

    ledger = out / "ledger.jsonl"
    for kill in range(3):
        before = ledger.stat().st_size if ledger.exists() else 0
        child = start(out)
        deadline = time.monotonic() + 120
        while not (ledger.exists() and ledger.stat().st_size > before + 4000 * kill):
            assert child.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        child.kill()
        child.wait()
        assert not (out / "results.json").exists()
    assert start(out).wait(120) == 0
    assert start(clean).wait(120) == 0
    assert contents(out) == contents(clean)
