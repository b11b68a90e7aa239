"""Every rate of one distribution as arrays, indexed by nation, profession, gender word, place.

The last row of each axis stands for "not named in the prompt", so that index −1 means exactly that.
Truth, the sampler and its torch twin all read these tables and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import StudyError
from tropescope.world.definition import SLOTS, Distribution, World
from tropescope.world.rates import Planted, Side

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tables:
    """Rates of one distribution.

    `share[nation, profession, gender]` is the share of women; `slots[slot][nation, profession,
    appearance, category]` the chance of each category; `spots[profession, place, appearance,
    object]` what one place beside the person holds (last: nothing).
    """

    world: World
    share: Floats
    slots: Mapping[str, Floats]
    spots: Floats


def named_distribution(world: World, name: str) -> Distribution:
    if name not in world.distributions:
        raise StudyError(
            f"the world has no distribution '{name}'",
            fix=f"use one of: {', '.join(world.distributions)}",
        )
    return world.distributions[name]


@lru_cache(maxsize=32)
def tables_of(world: World, distribution: str) -> Tables:
    return build_tables(world, named_distribution(world, distribution))


def build_tables(world: World, sides: Distribution) -> Tables:
    return Tables(
        world=world,
        share=_shares(world, sides),
        slots={slot: _slot(world, sides, slot) for slot in SLOTS},
        spots=_spots(world, sides),
    )


def _odds(share: float) -> float:
    return np.inf if share >= 1 else share / (1 - share)


def _times_odds(share: float, factor: float) -> float:
    """The share after its odds are multiplied; 0 and 1 stay what they are."""
    if share in (0.0, 1.0):
        return share
    odds = _odds(share) * factor
    return odds / (1 + odds)


def _shares(world: World, sides: Distribution) -> Floats:
    words = {word: g.share_of_women.side(sides.genders) for word, g in world.genders.items()}
    professions = [*world.professions.values(), None]
    shares = np.zeros((len(world.nations) + 1, len(professions), len(words)))
    for n, nation in enumerate([*world.nations.values(), None]):
        factor = 1.0
        if nation is not None and nation.share_of_women is not None:
            factor = _odds(nation.share_of_women.side(sides.nations)) / _odds(words["person"])
        for p, profession in enumerate(professions):
            for g, word in enumerate(words):
                if profession is not None and word == "person":
                    share = profession.share_of_women.side(sides.professions)
                else:
                    share = words[word]
                shares[n, p, g] = _times_odds(share, factor)
    return shares


def _replaced(
    base: Floats, rates: Mapping[str, Planted], side: Side, *, names: tuple[str, ...]
) -> Floats:
    """`base[appearance, category]` with the named categories set, the others sharing the rest."""
    changed = base.copy()
    for appearance in (0, 1):
        said = {
            names.index(name): rate.by_appearance()[appearance]
            for name, planted in rates.items()
            if name in names and (rate := planted.side(side)) is not None
        }
        if not said:
            continue
        others = [k for k in range(len(names)) if k not in said]
        left, before = 1.0 - sum(said.values()), float(base[appearance, others].sum())
        changed[appearance, others] = base[appearance, others] * (left / before if before else 0.0)
        for k, value in said.items():
            changed[appearance, k] = value
    return changed


def _slot(world: World, sides: Distribution, slot: str) -> Floats:
    names = world.categories(slot)
    people = {a: entry.rate for a, entry in world.attributes.items() if entry.slot == slot}
    nobody = np.zeros((2, len(names)))
    nobody[:, -1] = 1.0
    base = _replaced(nobody, people, sides.people, names=names)
    nations = [
        _replaced(base, nation.attributes, sides.nations, names=names)
        for nation in world.nations.values()
    ]
    professions = [
        _replaced(base, profession.attributes, sides.professions, names=names)
        for profession in world.professions.values()
    ]
    table = np.zeros((len(nations) + 1, len(professions) + 1, 2, len(names)))
    for n, by_nation in enumerate([*nations, base]):
        for p, by_profession in enumerate([*professions, base]):
            table[n, p] = _multiplied_odds(base, by_nation, by_profession)
    nation_names, profession_names = list(world.nations), list(world.professions)
    for entry in world.intersections:
        n, p = nation_names.index(entry.nation), profession_names.index(entry.profession)
        table[n, p] = _replaced(table[n, p], entry.attributes, sides.nations, names=names)
    return table


def _multiplied_odds(base: Floats, one: Floats, other: Floats) -> Floats:
    """Both changes at once without interaction: base · (one/base) · (other/base), summing to 1."""
    if np.array_equal(base, other):
        return one
    if np.array_equal(base, one):
        return other
    ratio = np.divide(other, base, out=np.zeros_like(base), where=base > 0)
    both = one * ratio
    total: Floats = both / both.sum(-1, keepdims=True)
    return total


def _mixture(base: Floats, share: float, things: Mapping[str, float], names: list[str]) -> Floats:
    own = np.zeros(len(names) + 1)
    for name, weight in things.items():
        own[names.index(name)] = weight
    return share * own + (1 - share) * base


def _spots(world: World, sides: Distribution) -> Floats:
    names = list(world.objects)
    general = np.zeros((2, len(names) + 1))
    for o, entry in enumerate(world.objects.values()):
        rate = entry.rate.side(sides.objects)
        general[:, o] = rate.by_appearance() if rate is not None else 0.0
    general[:, -1] = 1 - general[:, :-1].sum(-1)
    professions = [*world.professions.values(), None]
    places = [*world.places.values(), None]
    spots = np.zeros((len(professions), len(places), 2, len(names) + 1))
    for p, profession in enumerate(professions):
        for q, place in enumerate(places):
            for g in (0, 1):
                chance = general[g]
                if place is not None:
                    chance = _mixture(chance, place.share, place.things, names)
                if profession is not None:
                    tools = profession.tools
                    chance = _mixture(chance, tools.share, tools.things, names)
                spots[p, q, g] = chance
    return spots


def shifted(chances: Floats, amount: float) -> Floats:
    """A slot under a template: the share with anything in it, a, becomes a + amount · a(1 − a)."""
    anything = 1 - chances[..., -1:]
    moved = chances * (1 + amount * (1 - anything))
    moved[..., -1:] = 1 - moved[..., :-1].sum(-1, keepdims=True)
    result: Floats = moved
    return result
