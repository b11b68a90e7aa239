"""The diffusers adapter on tiny pipelines of every family, saved and loaded in their own format."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tropescope.errors import ModelError, OfflineError
from tropescope.models.diffusers_entry import DiffusersEntry
from tropescope.models.diffusers_pipeline import DiffusersModel, to_outcome
from tropescope.models.entry import OpenContext, open_model
from tropescope.models.fingerprints import FileFingerprints
from tropescope.models.protocol import BatchTooLarge, Request, TextToImage

import tiny

pytestmark = pytest.mark.models
PROMPT = "a photo of a kestran person"
Build = Callable[[str], Path]


def model(folder: Path, **settings: Any) -> DiffusersModel:
    entry = DiffusersEntry(
        adapter="diffusers",
        id=str(folder),
        **{"steps": 2, "guidance": 3.0, "height": 16, "width": 16, **settings},
    )
    context = OpenContext(FileFingerprints(), Path(), offline=True)
    opened = open_model(entry, context)
    assert isinstance(opened, DiffusersModel)
    assert isinstance(opened, TextToImage)
    return opened


def pictures(opened: DiffusersModel, seeds: list[int]) -> list[np.ndarray[Any, Any]]:
    outcomes = list(opened.generate([Request(PROMPT, seed) for seed in seeds]))
    assert [outcome.kind for _, outcome in outcomes] == ["generated"] * len(seeds)
    return [np.asarray(outcome.pixels).astype(int) for _, outcome in outcomes]


@pytest.mark.parametrize("family", list(tiny.PIPELINES))
def test_every_family_draws_the_same_image_in_any_batch(tiny_model: Build, family: str) -> None:
    opened = model(tiny_model(family))
    together = pictures(opened, [1, 2, 3, 4])
    alone = [pictures(opened, [seed])[0] for seed in (1, 2, 3, 4)]
    assert together[0].shape == (16, 16, 3)
    for one, other in zip(together, alone, strict=True):
        assert np.abs(one - other).max() <= 2
    assert np.abs(together[0] - together[1]).max() > 20
    again = pictures(model(tiny_model(family)), [1, 2, 3, 4])
    assert all(np.array_equal(a, b) for a, b in zip(together, again, strict=True))


@pytest.mark.parametrize("family", list(tiny.PIPELINES))
def test_the_image_is_what_a_plain_call_of_the_pipeline_gives(
    tiny_model: Build, family: str
) -> None:
    import torch
    from diffusers import DiffusionPipeline

    absent = ("text_encoder_3", "tokenizer_3") if family == "sd3-without-t5" else ()
    pipeline = DiffusionPipeline.from_pretrained(tiny_model(family), **dict.fromkeys(absent))
    plain = pipeline(
        PROMPT, num_inference_steps=2, guidance_scale=3.0, height=16, width=16,
        generator=torch.Generator("cpu").manual_seed(5),
    ).images[0]  # fmt: skip
    assert np.abs(pictures(model(tiny_model(family)), [5])[0] - np.asarray(plain)).max() <= 1


def test_settings_reach_the_pipeline(tiny_model: Build) -> None:
    folder = tiny_model("sd")
    base = pictures(model(folder), [1])[0]
    for changes in (
        {"guidance": 7.5},
        {"steps": 4},
        {"scheduler": "EulerAncestralDiscreteScheduler"},
        {"negative_prompt": "red hat"},
        {"call": {"guidance_rescale": 0.9}},
    ):
        assert not np.array_equal(pictures(model(folder, **changes), [1])[0], base), changes
    assert pictures(model(folder, height=24, width=16), [1])[0].shape == (24, 16, 3)


def test_identity_is_content_and_settings_not_place(tiny_model: Build, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tiny_model("sd"), tmp_path / "copy"))
    assert model(copy).identity() == model(tiny_model("sd")).identity()
    assert model(copy, batch_size=9).identity() == model(copy).identity()
    assert model(copy, guidance=1.0).identity() != model(copy).identity()
    assert json.dumps(model(copy).identity())
    config = copy / "unet" / "config.json"
    config.write_text(config.read_text() + "\n")
    assert model(copy).identity() != model(tiny_model("sd")).identity()


def test_prompts_are_checked_without_weights(tiny_model: Build) -> None:
    opened = model(tiny_model("sd3"))
    long_for_clip = "a photo of a person wearing a red hat with no beard of a kestran person"
    problems = opened.check_prompts([PROMPT, long_for_clip, "zebra", "a " * 60])
    assert [(p.prompt[:6], p.level) for p in problems] == [
        ("a phot", "warning"), ("zebra", "error"), ("a a a ", "error"),
    ]  # fmt: skip
    assert "tokenizer_3 does not know 'zebra'" in problems[1].message
    without = model(tiny_model("sd3"), without=("text_encoder_3", "tokenizer_3"))
    assert [p.level for p in without.check_prompts([PROMPT, "zebra"])] == []
    assert [p.level for p in without.check_prompts([long_for_clip])] == ["error"]


def test_t5_can_be_left_out(tiny_model: Build) -> None:
    opened = model(tiny_model("sd3"), without=("text_encoder_3", "tokenizer_3"))
    assert opened.pipeline().text_encoder_3 is None
    assert not np.array_equal(pictures(opened, [1])[0], pictures(model(tiny_model("sd3")), [1])[0])
    with pytest.raises(ModelError, match="did you mean 'text_encoder_3'"):
        model(tiny_model("sd3"), without=("text_encodr_3",)).check_prompts([PROMPT])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"call": {"clip_skp": 1}}, "did you mean 'clip_skip'"),
        ({"scheduler": "EulerDiscretScheduler"}, "did you mean 'EulerDiscreteScheduler'"),
        ({"scheduler": "UNet2DConditionModel"}, "no scheduler"),
        ({"dtype": "float16"}, "float16 cannot be used on the CPU"),
    ],
)
def test_wrong_settings_are_refused(tiny_model: Build, changes: Any, expected: str) -> None:
    with pytest.raises(ModelError) as caught:
        opened = model(tiny_model("sd"), **changes)
        opened.check_prompts([PROMPT])
        opened.pipeline()
    assert expected in str(caught.value)


class Bomb:
    def __reduce__(self) -> Any:
        return (open, ("bomb-went-off", "w"))


def test_pickled_checkpoints_are_refused_unread(
    tiny_model: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copy = Path(shutil.copytree(tiny_model("sd"), tmp_path / "copy"))
    weights = copy / "unet" / "diffusion_pytorch_model.safetensors"
    weights.rename(copy / "kept.safetensors")
    (copy / "unet" / "diffusion_pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelError, match="pickled checkpoint"):
        model(copy).identity()
    assert not (tmp_path / "bomb-went-off").exists()


def test_code_in_a_repository_is_never_run(tiny_model: Build, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tiny_model("sd"), tmp_path / "copy"))
    (copy / "evil.py").write_text("open('evil-ran', 'w')")
    index = copy / "model_index.json"
    data = json.loads(index.read_text())
    index.write_text(json.dumps({**data, "unet": ["evil", "Evil"]}))
    with pytest.raises(ModelError, match="only classes of diffusers and transformers"):
        model(copy).check_prompts([PROMPT])
    index.write_text(json.dumps({**data, "_class_name": ["evil", "EvilPipeline"]}))
    with pytest.raises(ModelError, match="never run"):
        model(copy).check_prompts([PROMPT])
    index.write_text("{")
    with pytest.raises(ModelError, match="not valid JSON"):
        model(copy).check_prompts([PROMPT])
    index.unlink()
    with pytest.raises(ModelError, match=r"model_index.json is missing"):
        model(copy).check_prompts([PROMPT])


def test_damaged_weights_are_an_error_not_a_crash(tiny_model: Build, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tiny_model("sd"), tmp_path / "copy"))
    weights = copy / "unet" / "diffusion_pytorch_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(ModelError, match="could not be loaded"):
        model(copy).pipeline()


@pytest.mark.parametrize("name", ["someone/some-model", "not a model id!"])
def test_a_model_that_is_not_here_is_not_fetched_offline(name: str) -> None:
    with pytest.raises((OfflineError, ModelError)) as caught:
        model(Path(name)).identity()
    assert "→" in str(caught.value)


def test_a_gated_model_says_what_to_do() -> None:
    import httpx
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    from tropescope.models.weights import explain_hub_error

    response = httpx.Response(403, request=httpx.Request("GET", "https://example.org"))
    gated = explain_hub_error("a/b", GatedRepoError("gated", response=response))
    assert "accept it on the model's page" in gated.fix
    assert "HF_TOKEN" in gated.fix
    missing = explain_hub_error("a/b", RepositoryNotFoundError("none", response=response))
    assert "check the spelling" in missing.fix


def test_a_safety_filter_is_an_outcome(tmp_path: Path) -> None:
    folder = tiny.stable_diffusion(tmp_path / "sd", with_safety_checker=True)
    outcomes = [o for _, o in model(folder).generate([Request(PROMPT, 1), Request(PROMPT, 2)])]
    assert {o.kind for o in outcomes} == {"filtered"}
    assert "safety checker" in outcomes[0].reason


def test_values_that_are_not_numbers_are_an_outcome() -> None:
    image = np.full((8, 8, 3), 0.5)
    assert to_outcome(image, filtered=False).kind == "generated"
    image[0, 0, 0] = np.nan
    outcome = to_outcome(image, filtered=False)
    assert outcome.kind == "invalid"
    assert "NaN" in outcome.reason


def test_nan_weights_give_an_invalid_image_not_a_crash(tiny_model: Build, tmp_path: Path) -> None:
    import torch

    opened = model(tiny_model("sd"))
    with torch.no_grad():
        next(opened.pipeline().unet.parameters()).fill_(float("nan"))
    assert [o.kind for _, o in opened.generate([Request(PROMPT, 1)])] == ["invalid"]


def test_running_out_of_memory_asks_for_a_smaller_batch(
    tiny_model: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    opened = model(tiny_model("sd"))
    pipeline = opened.pipeline()

    def exhausted(*args: Any, **kwargs: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(pipeline.unet, "forward", exhausted)
    with pytest.raises(BatchTooLarge, match="out of memory"):
        list(opened.generate([Request(PROMPT, 1)]))
    monkeypatch.setattr(
        pipeline.unet, "forward", lambda *a, **k: (_ for _ in ()).throw(RuntimeError("bug"))
    )
    with pytest.raises(ModelError, match="RuntimeError: bug"):
        list(opened.generate([Request(PROMPT, 1)]))


def test_facts_say_what_ran(tiny_model: Build) -> None:
    opened = model(tiny_model("sd"))
    opened.pipeline()
    facts = opened.facts()
    assert {"torch", "diffusers", "device", "dtype", "threads", "scheduler"} <= set(facts)
    opened.close()
