"""The plan: keys name what decides an image, seeds survive every change of the study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tropescope.errors import PromptError
from tropescope.generation.plan import Plan, PlannedImage, batches, plan_images
from tropescope.generation.seeds import image_seed
from tropescope.generation.worker import require_prompts
from tropescope.models.protocol import Outcome, PromptProblem, Request, TextToImage
from tropescope.prompts.rendering import Prompt


class Model:
    batch_matters = True

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def identity(self) -> dict[str, Any]:
        return self.settings

    def check_prompts(self, prompts: Sequence[str]) -> list[PromptProblem]:
        return [PromptProblem(p, "error", "too long") for p in prompts if len(p) > 20] + [
            PromptProblem(p, "warning", "odd") for p in prompts if "odd" in p
        ]

    def generate(self, requests: Sequence[Request]) -> Iterator[tuple[Request, Outcome]]:
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        pass


def prompt(text: str, concept: str = "c", group: str = "g") -> Prompt:
    return Prompt(text=text, concept=concept, template=group, pair_group=group)


def plan(models: dict[str, TextToImage], prompts: list[Prompt], **options: Any) -> Plan:
    return plan_images(models, prompts, **{"images_per_prompt": 3, "seed": 1, **options})


def test_the_test_model_is_a_text_to_image_model() -> None:
    assert isinstance(Model(), TextToImage)


def test_adding_a_concept_or_a_model_changes_no_existing_image() -> None:
    small = plan({"m": Model(a=1)}, [prompt("x"), prompt("y")])
    large = plan({"m": Model(a=1), "n": Model(a=2)}, [prompt("z"), prompt("x"), prompt("y")])
    assert set(small.images) <= set(large.images)


def test_pairs_share_their_noise_and_other_groups_do_not() -> None:
    images = plan({"m": Model()}, [prompt("x"), prompt("y"), prompt("z", group="h")]).images
    seeds = {(i.prompt.text, i.replicate): i.seed for i in images}
    assert seeds["x", 0] == seeds["y", 0] != seeds["z", 0]
    assert len({seeds["x", r] for r in range(3)}) == 3


@pytest.mark.parametrize(
    ("other", "options"),
    [(Model(a=2), {}), (Model(a=1), {"seed": 2})],
)
def test_what_decides_an_image_decides_its_key(other: Model, options: dict[str, Any]) -> None:
    one = plan({"m": Model(a=1)}, [prompt("x")])
    two = plan({"m": other}, [prompt("x")], **options)
    assert {i.key for i in one.images}.isdisjoint(i.key for i in two.images)


def test_equal_models_share_their_images() -> None:
    both = plan({"m": Model(a=1), "n": Model(a=1)}, [prompt("x")])
    assert len(both.images) == 6
    assert len({i.key for i in both.images}) == 3


@given(st.integers(0, 2**32 - 1), st.text(max_size=20), st.integers(0, 10**6))
def test_seeds_fit_every_random_generator(seed: int, group: str, replicate: int) -> None:
    value = image_seed(seed, group, replicate)
    assert 0 <= value < 2**63
    assert value == image_seed(seed, group, replicate)


def test_a_limit_spreads_over_prompts() -> None:
    prompts = [prompt(str(i), concept=str(i)) for i in range(20)]
    small = plan({"m": Model()}, prompts, limit=4)
    assert [i.prompt.text for i in small.images] == ["0", "5", "10", "15"]
    few = plan({"m": Model()}, prompts[:2], limit=4)
    assert len(few.images) == 4
    assert set(small.images) <= set(plan({"m": Model()}, prompts).images)


class Supplies(Model):
    def sources(self, prompt: str, concept: str) -> list[str]:
        return {"x": ["h1", "h2"], "y": []}[prompt]


def test_a_folder_decides_how_many_images_there_are_and_names_them_by_content() -> None:
    images = plan({"m": Supplies()}, [prompt("x"), prompt("y")]).images
    assert [(i.prompt.text, i.replicate) for i in images] == [("x", 0), ("x", 1)]
    assert len({i.key for i in images}) == 2


@given(st.integers(1, 7), st.sets(st.integers(0, 19)), st.booleans())
def test_batches_cover_what_is_missing(size: int, finished: set[int], whole: bool) -> None:
    images = plan(
        {"m": Model()}, [prompt("x"), prompt("y", group="h")], images_per_prompt=10
    ).images
    done = {images[i].key for i in finished}
    todo = list(batches(images, size=size, done=done, whole=whole))
    run = [image.key for batch in todo for image in batch]
    assert len(run) == len(set(run))
    assert {i.key for i in images} - done <= set(run)
    full = list(batches(images, size=size, done=set(), whole=whole))
    if whole:
        assert all(batch in full for batch in todo)
        assert all(len({i.prompt for i in batch}) == 1 for batch in todo)
    else:
        assert set(run).isdisjoint(done)
    assert all(len(batch) <= size for batch in full)


def test_prompts_are_refused_before_any_image() -> None:
    with pytest.raises(PromptError, match=r"model 'm', prompt 'x+': too long"):
        require_prompts({"m": Model()}, [prompt("fine"), prompt("x" * 30)])
    assert require_prompts({"m": Model()}, [prompt("odd")]) == ["model 'm', prompt 'odd': odd"]


def test_a_request_carries_what_a_folder_needs() -> None:
    image = PlannedImage("k", "m", prompt("x"), 2, 9)
    request = image.request()
    assert (request.prompt, request.seed, request.key) == ("x", 9, "k")
    assert request.details == {"concept": "c", "replicate": 2}
