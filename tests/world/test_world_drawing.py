"""Pictures, boxes and masks: exact, reproducible, fast."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tropescope.errors import StoreError
from tropescope.world.atlas import ATLAS_FILE, load_atlas
from tropescope.world.definition import load_world
from tropescope.world.layers import LAYERS, layers_of
from tropescope.world.meaning import Meaning, Wanted
from tropescope.world.parts import parts_of
from tropescope.world.render import render, render_owners
from tropescope.world.sampling import draw_scenes
from tropescope.world.scene import COLUMN, Codes, Scene, Scenes
from tropescope.world.tables import tables_of

WORLD = load_world()
TABLES = tables_of(WORLD, "training")


def scenes(n: int = 64, *, meaning: Meaning | None = None, start: int = 0) -> Scenes:
    return draw_scenes(TABLES, meaning or Meaning(), range(start, start + n))


def test_pictures_are_64_by_64_and_reproducible() -> None:
    pictures = render(scenes(10))
    assert pictures.shape == (10, 64, 64, 3)
    assert pictures.dtype == np.uint8
    assert np.array_equal(pictures, render(scenes(10)))
    assert np.array_equal(pictures[3], render(scenes(1, start=3))[0])


def test_the_atlas_is_small_and_complete() -> None:
    assert ATLAS_FILE.stat().st_size < 200_000
    names = {name.split("/")[0] for name in load_atlas().layers["objects"].names}
    assert names == set(WORLD.objects)
    assert tuple(layer.name for layer in layers_of(WORLD)) == LAYERS


@given(
    seed=st.integers(0, 2**63 - 1),
    nation=st.sampled_from([None, *WORLD.nations]),
    template=st.sampled_from([None, 0, 1, 15]),
)
@settings(max_examples=40, deadline=None)
def test_a_scene_survives_json_and_gives_the_same_picture(
    seed: int, nation: str | None, template: int | None
) -> None:
    drawn = draw_scenes(TABLES, Meaning(nation=nation, template=template), [seed])
    scene = drawn.scene(0)
    text = json.dumps(scene.to_json())
    again = Scene.from_json(json.loads(text))
    assert again == scene
    assert len(text) < 700
    assert np.array_equal(render(Codes(WORLD).encode([again])), render(drawn))


def test_foreign_facts_are_refused() -> None:
    with pytest.raises(StoreError, match="do not describe"):
        Scene.from_json({"planet": "Mars"})
    data = scenes(1).scene(0).to_json() | {"headwear": "crown"}
    with pytest.raises(StoreError, match="no headwear 'crown'"):
        Codes(WORLD).encode([Scene.from_json(data)])


@given(seed=st.integers(0, 10**9))
@settings(max_examples=40, deadline=None)
def test_masks_and_background_cover_the_picture_once(seed: int) -> None:
    drawn = scenes(1, start=seed)
    parts = parts_of(WORLD, drawn.scene(0))
    total = np.sum([part.mask for part in parts], axis=0)
    assert total.max() <= 1
    assert np.array_equal(total == 0, render_owners(drawn)[0] == -1)
    for part in parts:
        top, left, bottom, right = part.box
        inside = np.zeros_like(part.mask)
        inside[top:bottom, left:right] = True
        assert part.mask.any()
        assert not (part.mask & ~inside).any()
        assert part.mask[top].any()
        assert part.mask[:, right - 1].any()


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_changes_exactly_the_pixels_it_covers(layer: str) -> None:
    """Without the layer nothing changes outside it; its own pixels all do, unless colours agree."""
    drawn = scenes(200)
    index = LAYERS.index(layer)
    entry = layers_of(WORLD)[index]
    changed = (render(drawn) != render(drawn, without=layer)).any(-1)
    top, left, bottom, right = entry.painted.box
    keep = entry.painted.keep[entry.sprites(drawn.codes)][..., 0]
    covered = np.zeros_like(changed)
    covered[:, top:bottom, left:right] = keep < 1
    assert not (changed & ~covered).any()
    if layer in ("left", "right", "headwear", "eyewear", "facial_hair"):
        owned = render_owners(drawn) == index
        assert (changed & owned).sum() > 0.95 * owned.sum()


def test_a_hidden_part_has_no_mask_and_look_alikes_own_nothing() -> None:
    drawn = scenes(400)
    owners = render_owners(drawn)
    for name in WORLD.hard_to_see:
        owns = (owners == LAYERS.index(name)).any((1, 2))
        assert not owns[drawn.column(name) != 0].any()
        assert owns[drawn.column(name) == 0].mean() > 0.9
    covered = np.isin(drawn.column("headwear"), [0, 1])
    assert not (owners[covered] == LAYERS.index("hair")).any()


def test_every_attribute_can_be_seen() -> None:
    """Presence against absence with everything else equal changes enough pixels."""
    for name, entry in WORLD.attributes.items():
        one = scenes(60, meaning=Meaning(wanted=(Wanted(name),)))
        codes = one.codes.copy()
        otherwise = len(WORLD.categories(entry.slot)) - 1
        codes[:, COLUMN[entry.slot]] = otherwise
        if name in WORLD.hard_to_see:
            codes[:, COLUMN[f"{name}_look"]] = 0
        difference = (render(one) != render(Scenes(WORLD, codes))).any(-1).sum((1, 2))
        assert np.median(difference) >= 6, name


def test_speed(capsys: pytest.CaptureFixture[str]) -> None:
    many = scenes(2000)
    start = time.perf_counter()
    render(many)
    speed = len(many) / (time.perf_counter() - start)
    with capsys.disabled():
        print(f"\nrenderer: {speed:,.0f} images a second on one core")
    assert speed > 100  # far below what it does, so that a busy machine fails nothing
