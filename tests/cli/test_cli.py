"""The command line as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tropescope.audit.source import ready_studies

import tiny
from runs import world_study, write_study


def tropescope(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tropescope.cli.main", *map(str, arguments)],
        capture_output=True, text=True, check=False, cwd=cwd,
    )  # fmt: skip


def test_help_answers_without_heavy_imports() -> None:
    code = (
        "import sys; sys.argv = ['tropescope', '--help']\n"
        "from tropescope.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'diffusers', 'pyarrow', 'scipy', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for command in ("demo", "run", "plan", "report", "verify", "doctor"):
        assert command in done.stdout


def test_a_run_from_the_command_line(tmp_path: Path) -> None:
    study = write_study(tmp_path, world_study())
    done = tropescope("run", study, "--out", "out", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["images"] == 40
    assert sum(said["verdicts"].values()) == 4
    assert (tmp_path / said["report"]).is_file()
    plain = tropescope("run", study, "--out", "out", cwd=tmp_path)
    assert plain.stdout.splitlines()[-1] == "report: out/report.html"
    assert "images of “Kestran person”" in plain.stdout
    assert tropescope("verify", tmp_path / "out").returncode == 0
    assert "report: " in tropescope("report", tmp_path / "out").stdout
    (tmp_path / "out" / "results.json").write_text("{}")
    checked = tropescope("verify", tmp_path / "out", "--json")
    assert checked.returncode == 5
    assert json.loads(checked.stdout)[0]["artefact"] == "results.json"


def test_plan_counts_and_makes_nothing(tmp_path: Path) -> None:
    study = write_study(tmp_path, world_study())
    done = tropescope("plan", study, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert len(said["prompts"]) == 4
    assert said["models"][0]["images"] == 40
    assert said["models"][0]["calls"] == 5
    assert [p.name for p in tmp_path.iterdir()] == ["study.yaml"]
    assert "40 images in 5 calls" in tropescope("plan", study).stdout


def test_plan_prints_the_cost_of_an_api(tmp_path: Path) -> None:
    entry = {"adapter": "openai", "id": "x", "base_url": "https://images.example/v1",
             "price_per_image": 0.04}  # fmt: skip
    judge = {"kind": "clip", "id": str(tiny.clip(tmp_path / "clip", length=32))}
    study = write_study(tmp_path, world_study(models={"api": entry}, judge=judge))
    done = tropescope("plan", study)
    assert done.returncode == 0, done.stderr
    assert "about 1.60 USD" in done.stdout


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"seeed": 1}, 3, "did you mean 'seed'"),
        ({"concepts": {"k": "Kestrn person"}}, 3, "did you mean 'kestran'"),
        (
            {
                "models": {"m": {"adapter": "diffusers", "id": "no/such-model"}},
                "judge": {"kind": "clip", "id": "no/such-judge"},
            },
            4,
            "offline",
        ),
    ],
)
def test_errors_are_short_and_have_their_exit_code(
    tmp_path: Path, change: dict[str, object], code: int, message: str
) -> None:
    study = write_study(tmp_path, world_study(**change))
    done = tropescope("run", study, "--offline", "--out", tmp_path / "out")
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_failed_images_have_an_exit_code_of_their_own(tmp_path: Path) -> None:
    settings = world_study()
    settings["models"]["planted"]["misbehave"] = {"Kestran": {"fail": 0.5}}
    done = tropescope("run", write_study(tmp_path, settings), "--out", tmp_path / "out")
    assert done.returncode == 6
    assert "images failed" in done.stdout


def test_other_refusals(tmp_path: Path) -> None:
    missing = tropescope("run", "not-there")
    assert missing.returncode == 3
    assert "ready studies" in missing.stderr
    folder = tropescope("verify", tmp_path)
    assert folder.returncode == 5
    assert "not a run folder" in folder.stderr
    assert tropescope("run").returncode == 2


def test_doctor_says_what_is_here(tmp_path: Path) -> None:
    entry = {"adapter": "diffusers", "id": "no/such-model"}
    judge = {"kind": "clip", "id": "no/such-judge", "revision": "a" * 40}
    study = write_study(tmp_path, world_study(models={"m": entry}, judge=judge))
    done = tropescope("doctor", study)
    assert done.returncode == 0, done.stderr
    assert "no/such-model" in done.stdout
    assert done.stdout.count("not on this machine") == 2
    assert json.loads(tropescope("doctor", "--json").stdout)[0]["what"] == "tropescope"


@pytest.mark.parametrize("name", sorted(ready_studies()))
def test_every_ready_study_can_be_planned(name: str) -> None:
    done = tropescope("plan", name, "--json", "--offline")
    assert done.returncode == 0, done.stderr
