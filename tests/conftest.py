"""Shared by all tests: small models built once, studies as text, the published data by path."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run in parallel processes already

REFERENCE_DATA = Path(
    os.environ.get("TROPESCOPE_REFERENCE_DATA", Path(__file__).parents[2] / "shared" / "data")
)


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """The folder of published data; tests that need it say so when it is not there."""
    if not REFERENCE_DATA.is_dir():
        pytest.skip(
            f"published data not found at {REFERENCE_DATA}; set TROPESCOPE_REFERENCE_DATA to it"
        )
    return REFERENCE_DATA


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folder of a tiny random-weight model, built on first use in this process."""
    import tiny

    builders = {**tiny.PIPELINES, "clip": tiny.clip, "siglip": tiny.siglip}
    root = tmp_path_factory.mktemp("tiny")
    made: dict[str, Path] = {}

    def build(name: str) -> Path:
        if name not in made:
            made[name] = builders[name](root / name)
        return made[name]

    return build


CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--headless=new",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium_path() -> str | None:
    named = os.environ.get("TROPESCOPE_CHROMIUM")
    if named:
        return named
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One real browser for all tests that look at pages; without it they are skipped and say so."""
    path = chromium_path()
    if path is None:
        pytest.skip("no Chromium found; install one or set TROPESCOPE_CHROMIUM to its path")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def browser_page(chromium: Any) -> Iterator[Any]:
    page = chromium.new_page()
    yield page
    page.close()
