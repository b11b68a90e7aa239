"""Tiny pipelines of every family, loaded once; tests leave them as they found them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ABSENT = {"sd3-without-t5": ("text_encoder_3", "tokenizer_3")}


@pytest.fixture(scope="session")
def pipelines(tiny_model: Callable[[str], Path]) -> Callable[[str], Any]:
    from diffusers import DiffusionPipeline

    loaded: dict[str, Any] = {}

    def load(family: str) -> Any:
        if family not in loaded:
            absent = dict.fromkeys(ABSENT.get(family, ()))
            pipeline = DiffusionPipeline.from_pretrained(tiny_model(family), **absent)
            pipeline.set_progress_bar_config(disable=True)
            loaded[family] = pipeline
        return loaded[family]

    return load


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors gain nothing from a second thread, and wait long for it on a busy machine."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
