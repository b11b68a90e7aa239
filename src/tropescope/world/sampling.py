"""Drawing people: from a meaning and seeds to scenes, by the exact distribution of the prompt.

A picture is decided by (seed, prompt, distribution) alone. The random numbers depend on the seed
and on *how and where* is asked (template, place), never on *who* is asked for: the same seed for
another nation, profession, gender or attribute is the same person otherwise, while different
templates are independent draws, as cluster methods assume.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tropescope.world.chance import DECISIONS, stream_of, uniforms
from tropescope.world.definition import World
from tropescope.world.meaning import Meaning
from tropescope.world.palette import CLOTH, HAIR, SKIN, backgrounds_of
from tropescope.world.prompt_rates import PLAIN, PromptRates, prompt_rates
from tropescope.world.scene import COLUMN, COLUMNS, Scene, Scenes
from tropescope.world.tables import Floats, Tables

Codes16 = NDArray[np.int16]

#: How many drawings of each kind the atlas holds; see `tools/world/build_atlas.py`.
VARIANTS = {"hair": 4, "facial_hair": 2, "eyewear": 2, "clothing": 2}


@lru_cache(maxsize=1024)
def stream_for(template: int | None, place: str | None) -> int:
    return stream_of(f"template {template} place {place}")


def chosen(chances: Floats, numbers: Floats) -> NDArray[np.intp]:
    """The category in which each number falls. `chances[..., category]` sums to 1."""
    edges = np.cumsum(chances, axis=-1)[..., :-1]
    picks: NDArray[np.intp] = (numbers[:, None] >= edges).sum(-1)
    return picks


def draw_scenes(tables: Tables, meaning: Meaning, seeds: Sequence[int]) -> Scenes:
    """One scene per seed for a prompt."""
    rates = prompt_rates(tables, meaning)
    numbers = uniforms(
        np.asarray(seeds, dtype=np.int64), stream_for(meaning.template, meaning.place)
    )
    return Scenes(tables.world, _draw(tables.world, meaning, rates, numbers))


def draw_scene(tables: Tables, meaning: Meaning, seed: int) -> Scene:
    return draw_scenes(tables, meaning, [seed]).scene(0)


def _draw(world: World, meaning: Meaning, rates: PromptRates, numbers: Floats) -> Codes16:
    u = {name: numbers[:, index] for index, name in enumerate(DECISIONS)}
    codes = np.full((len(numbers), len(COLUMNS)), -1, dtype=np.int16)

    def put(column: str, values: NDArray[np.integer] | int) -> None:
        codes[:, COLUMN[column]] = values

    put("nation", _code(list(world.nations), meaning.nation))
    put("profession", _code(list(world.professions), meaning.profession))
    put("gender", list(world.genders).index(meaning.gender))
    put("place", _code(list(world.places), meaning.place))
    put("template", -1 if meaning.template is None else meaning.template)

    who = (u["who"] >= rates.share).astype(np.intp)
    put("appearance", who)
    headwear = chosen(rates.head.sum((2, 3))[who], u["headwear"])
    hair = chosen(_normalised(rates.head.sum(3)[who, headwear]), u["hair"])
    put("headwear", headwear)
    put("hair", hair)
    put("hair_colour", chosen(_normalised(rates.head[who, headwear, hair]), u["hair_colour"]))
    for slot in PLAIN:
        put(slot, chosen(rates.plain[slot][who], u[slot]))
    left = chosen(rates.spots.sum(2)[who], u["left"])
    right = chosen(_normalised(rates.spots[who, left]), u["right"])
    nothing = len(world.objects)
    put("left", np.where(left == nothing, -1, left))
    put("right", np.where(right == nothing, -1, right))
    for name in ("freckles", "brooch"):
        present = codes[:, COLUMN[name]] == 0
        put(f"{name}_look", _look(world, name, present, u[f"{name}_look"]))
    _dress(world, meaning, u, codes)
    return codes


def _dress(world: World, meaning: Meaning, u: dict[str, Floats], codes: Codes16) -> None:
    """Everything that means nothing: colours, shades, variants. A colour asked for is given."""

    def put(column: str, values: NDArray[np.integer] | int) -> None:
        codes[:, COLUMN[column]] = values

    allowed = backgrounds_of("any" if meaning.place is None else _background(world, meaning.place))
    put("background", allowed.start + (u["background"] * len(allowed)).astype(np.int16))
    for slot in ("headwear", "clothing"):
        put(f"{slot}_colour", (u[f"{slot}_colour"] * len(CLOTH)).astype(np.int16))
    for demand in meaning.wanted:
        if demand.colour is not None:
            slot = world.attributes[demand.attribute].slot
            put(f"{slot}_colour", list(CLOTH).index(demand.colour))
    hair_shades = np.array([len(HAIR[name]) for name in world.categories("hair_colour")])
    skin_shades = np.array([len(SKIN[name]) for name in world.categories("skin")])
    put("hair_shade", (u["hair_shade"] * hair_shades[codes[:, COLUMN["hair_colour"]]]).astype(int))
    put("skin_shade", (u["skin_shade"] * skin_shades[codes[:, COLUMN["skin"]]]).astype(int))
    for slot, count in VARIANTS.items():
        put(f"{slot}_variant", (u[f"{slot}_variant"] * count).astype(np.int16))


def _background(world: World, place: str) -> str:
    return world.places[place].background


def _code(names: list[str], name: str | None) -> int:
    return -1 if name is None else names.index(name)


def _normalised(chances: Floats) -> Floats:
    total = chances.sum(-1, keepdims=True)
    result: Floats = np.divide(chances, total, out=np.zeros_like(chances), where=total > 0)
    return result


def _look(
    world: World, name: str, present: NDArray[np.bool_], numbers: Floats
) -> NDArray[np.int16]:
    """0 nothing, 1 faint, 2 clear."""
    look = world.hard_to_see[name]
    if_present = np.where(numbers < look.present_faint, 1, 2)
    if_absent = np.where(
        numbers < look.absent_faint,
        1,
        np.where(numbers < look.absent_faint + look.absent_clear, 2, 0),
    )
    return np.where(present, if_present, if_absent).astype(np.int16)
