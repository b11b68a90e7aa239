"""One Chromium for all browser tests; without it they are skipped and say so."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))

FLAGS = [
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
    path = chromium_path()
    if path is None:
        pytest.skip("no Chromium found; install one or set TROPESCOPE_CHROMIUM to its path")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()
