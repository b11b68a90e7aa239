"""The page about the world says what the world file says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tropescope.world.definition import load_world
from tropescope.world.truth import Truth

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/world.md"


def docs_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_docs", ROOT / "tools/world/write_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == docs_tool().page_with_tables(page, load_world()), "run tools/world/write_docs.py"


def test_pictures_of_the_page_exist() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = [part.split(")")[0] for part in page.split("](pictures/")[1:]]
    assert names
    for name in names:
        assert (ROOT / "docs/pictures" / name).is_file()


def test_the_numbers_in_the_example_are_true() -> None:
    trained = Truth("training")
    assert trained.rate("hat", nation="Kestran") == pytest.approx(0.8)
    assert Truth("world").rate("hat", nation="Kestran") == pytest.approx(0.2)
    assert trained.share_of_women(profession="nurse") == pytest.approx(0.98)
    assert round(trained.object_bias_score("hammer"), 2) == 0.89
