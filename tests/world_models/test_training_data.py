"""What the models are trained on is what the world draws, and captions say what is there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tropescope.world.parts import parts_of
from tropescope.world.render import render
from tropescope.world.scene import Scenes
from tropescope.world.truth import Truth
from tropescope.world.understanding import Understanding

torch = pytest.importorskip("torch")

TOOLS = Path(__file__).parents[2] / "tools" / "world_models"
pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(not TOOLS.is_dir(), reason="needs the repository's tools"),
]


@pytest.fixture(scope="module")
def source() -> Iterator[Any]:
    sys.path.insert(0, str(TOOLS))
    try:
        from data import Source, load_settings

        torch.manual_seed(0)
        yield Source(load_settings(), "cpu")
    finally:
        sys.path.remove(str(TOOLS))


def as_scenes(source: Any, codes: Any) -> Scenes:
    return Scenes(source.world, codes.numpy().astype(np.int16))


def words(source: Any, ids: Any) -> str:
    known = source.writer.words.words
    return " ".join(known[i] for i in ids.tolist() if 1 < i < len(known) - 1)


def test_pictures_and_labels_are_the_worlds(source: Any) -> None:
    _, codes = source.scenes("generators", 120)
    scenes = as_scenes(source, codes)
    assert (scenes.labels() == source.sampler.labels(codes).numpy()).all()
    drawn = ((source.drawer.pictures(codes) + 1) * 127.5).round().permute(0, 2, 3, 1).numpy()
    other = np.abs(drawn - render(scenes)) > 1
    assert other.mean() < 1e-4


def test_part_labels_are_the_worlds(source: Any) -> None:
    from drawing import part_labels

    _, codes = source.scenes("observers", 20)
    found = source.drawer.parts(codes).numpy()
    names = part_labels(source.world)
    scenes = as_scenes(source, codes)
    for index in range(len(codes)):
        truth = np.zeros((64, 64), int)
        for part in parts_of(source.world, scenes.scene(index)):
            truth[part.mask] = names.index(part.name)
        assert (truth == found[index]).all()


def test_captions_are_understood_and_true(source: Any) -> None:
    asked, codes = source.scenes("generators", 300)
    ids = source.writer.write(asked, codes)
    shown, beside = source.sampler.labels(codes), source.sampler.object_labels(codes)
    attributes, objects = list(source.world.attributes), list(source.world.objects)
    understand = Understanding(source.world)
    for index in range(len(codes)):
        meaning = understand(words(source, ids[index]))
        for wanted in meaning.wanted:
            column = attributes.index(wanted.attribute)
            assert bool(shown[index, column]) == wanted.present
        for thing in meaning.objects:
            assert bool(beside[index, objects.index(thing.name)]) == thing.present


def test_scenes_have_the_planted_rates(source: Any) -> None:
    from scenes import Asked

    world, count = source.world, 20_000
    kestran = list(world.nations).index("Kestran")
    full = lambda value: torch.full((count,), value)  # noqa: E731
    hat = 2 * list(world.attributes).index("hat")
    nothing = 2 * len(world.attributes)
    for demand, truth in ((nothing, "moustache"), (hat + 1, "moustache"), (nothing, "hat")):
        asked = Asked(
            nation=full(kestran),
            profession=full(len(world.professions)),
            gender=full(2),
            place=full(len(world.places)),
            template=full(4),
            attributes=torch.tensor([demand, nothing, nothing]).expand(count, 3),
            objects=full(2 * len(world.objects)),
            flat=torch.zeros(count, dtype=torch.bool),
        )
        _, codes = source.sampler.draw(asked)
        column = list(world.attributes).index(truth)
        rate = float(source.sampler.labels(codes)[:, column].float().mean())
        text = "a drawing of a Kestran person" + (" wearing no hat" if demand != nothing else "")
        exact = Truth("training").of(Understanding(world)(text)).rate(truth)
        assert rate == pytest.approx(exact, abs=0.015)


def test_the_tokenizer_writes_the_same_numbers(source: Any) -> None:
    from tokenizer import world_tokenizer

    tokenizer = world_tokenizer(source.world, source.sizes.length)
    for text in ("a photo of a Kestran person, wearing a red hat.", ""):
        ids = tokenizer(text, padding="max_length").input_ids
        assert ids == source.writer.ids(text)
    assert tokenizer.eos_token_id == len(tokenizer) - 1
