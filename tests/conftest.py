"""Shared by all tests: small models built once, studies as text, the published data by path."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

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
