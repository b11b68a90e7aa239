"""Whole runs against an images API: nothing is asked twice, money is not spent beyond the cap."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tropescope
from tropescope.errors import ModelError, OfflineError, SpendLimit

from loopback import LoopbackAPI, Reply, error, image_bytes, picture
from runs import contents, world_study, write_study

Study = Callable[..., dict[str, Any]]
KEY = "sk-a-very-secret-key-0123456789"

pytestmark = pytest.mark.models


@pytest.fixture
def study(tiny_model: Callable[[str], Path]) -> Callable[..., dict[str, Any]]:
    """A study of the loopback API, judged by a tiny CLIP."""
    return lambda api, **settings: api_study(api, tiny_model("clip"), **settings)


def api_study(api: LoopbackAPI, judge: Path, **settings: Any) -> dict[str, Any]:
    entry = {"adapter": "openai", "id": "painter", "base_url": api.base_url, "batch_size": 4,
             "concurrency": 2, "retries": 1, "timeout_s": 5, **settings}  # fmt: skip
    return world_study(
        models={"api": entry},
        images_per_prompt=4,
        measures=["attribute_rate"],
        judge={"kind": "clip", "id": str(judge)},
        attributes={"hat": {"present": "a person wearing a hat", "absent": "a person"}},
        references=[],
    )


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def pictures() -> list[Reply]:
    return [picture(image_bytes(level=10 + 7 * i)) for i in range(24)]


def asked(api: LoopbackAPI) -> int:
    return sum(seen.method == "POST" for seen in api.seen)


def test_a_finished_item_is_never_asked_for_again(tmp_path: Path, study: Study) -> None:
    with LoopbackAPI(pictures()) as api:
        path = write_study(tmp_path, study(api))
        run = tropescope.run(path, out=tmp_path / "run")
        assert asked(api) == 16
        before = contents(run.path, everything=True)
        tropescope.run(path, out=tmp_path / "run")
        assert asked(api) == 16
        assert contents(run.path, everything=True) == before


def test_after_an_error_only_the_missing_items_are_asked_for(tmp_path: Path, study: Study) -> None:
    replies = [*pictures()[:6], error(401, message=f"bad key {KEY}")]
    with LoopbackAPI(replies) as api:
        path = write_study(tmp_path, study(api, concurrency=1))
        with pytest.raises(ModelError) as caught:
            tropescope.run(path, out=tmp_path / "run")
        assert "OPENAI_API_KEY" in str(caught.value)
        assert KEY not in str(caught.value)
        before = asked(api)
        run = tropescope.run(path, out=tmp_path / "run")
        assert asked(api) - before <= 10 + 3
        assert {r["outcome"] for r in run.images().to_pylist()} == {"generated"}


def test_refusals_are_results_and_failures_are_tried_again(tmp_path: Path, study: Study) -> None:
    prompt = "a photo of a Kestran person"
    refused = error(400, code="content_policy_violation", message="no such pictures")
    recovering = [*[Reply(500, b"<html>oops</html>")] * 8, picture()]
    other = "a photo of a Nolvar person"
    with LoopbackAPI(by_prompt={prompt: [refused], other: recovering}) as api:
        path = write_study(tmp_path, study(api))
        run = tropescope.run(path, out=tmp_path / "run")
        outcomes = {(r["prompt"], r["outcome"]) for r in run.images().to_pylist()}
        assert (prompt, "refused") in outcomes
        assert (other, "failed") in outcomes
        sets = run.results.item_sets
        assert len(sets["api × Kestran"].missing["refused"]) == 4
        before = asked(api)
        again = tropescope.run(path, out=tmp_path / "run")
        assert asked(api) == before + 4
        assert {r["outcome"] for r in again.images().to_pylist()} == {"generated", "refused"}


def test_the_spending_cap_holds_over_all_continuations(tmp_path: Path, study: Study) -> None:
    with LoopbackAPI(pictures()) as api:
        settings = study(api, price_per_image=0.5, spend_cap=3.0, concurrency=1)
        path = write_study(tmp_path, settings)
        for _ in range(3):
            with pytest.raises(SpendLimit):
                tropescope.run(path, out=tmp_path / "run")
            assert asked(api) == 6
        manifest = json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))
        assert manifest["spending"]["api"]["spent"] == pytest.approx(3.0)
        settings["models"]["api"]["spend_cap"] = 100.0
        run = tropescope.run(write_study(tmp_path, settings), out=tmp_path / "run")
        assert asked(api) == 16
        assert run.images().num_rows == 16


def test_no_file_of_a_run_holds_the_key(tmp_path: Path, study: Study) -> None:
    with LoopbackAPI([error(500, message=f"echo {KEY}"), *pictures()]) as api:
        run = tropescope.run(write_study(tmp_path, study(api)), out=tmp_path / "run")
    for path in run.path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes()


def test_offline_is_real(tmp_path: Path, tiny_model: Callable[[str], Path]) -> None:
    settings = world_study(
        models={"api": {"adapter": "openai", "id": "x", "base_url": "https://images.example/v1"}},
        judge={"kind": "clip", "id": str(tiny_model("clip"))},
        attributes={"hat": {"present": "a person wearing a hat", "absent": "a person"}},
        references=[],
        measures=["attribute_rate"],
    )
    with pytest.raises(OfflineError):
        tropescope.run(write_study(tmp_path, settings), out=tmp_path / "run", offline=True)
