"""What the docs show is true: studies load, code runs, links and pictures exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tropescope.cli.main import app
from tropescope.study import load_study_text

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(kind: str) -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for i, text in enumerate(
            re.findall(rf"```{kind}\n(.*?)```", page.read_text("utf-8"), re.S)
        ):
            found.append((f"{page.relative_to(ROOT)}-{i}", text))
    return found


@pytest.mark.parametrize(("name", "text"), [b for b in blocks("yaml") if b[1].startswith("study:")])
def test_studies_in_the_docs_load(name: str, text: str) -> None:
    load_study_text(text, name=name)


RUNNABLE = [
    b for b in blocks("python") if "import tropescope" in b[1] or "tropescope.measures" in b[1]
]


@pytest.mark.parametrize(("name", "text"), RUNNABLE)
def test_code_in_the_docs_runs(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(text, name, "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_and_pictures_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_in_the_docs_exist(page: Path) -> None:
    known = {command.callback.__name__ for command in app.registered_commands}  # type: ignore[union-attr]
    for command in re.findall(r"(?:\$ |`)tropescope ([a-z]+)", page.read_text("utf-8")):
        assert command in known, command
