"""The exact distribution of drawings for one prompt: what truth reads and the sampler draws from.

Given the appearance (woman or man), slots are independent, except that headwear hides hair. What
the prompt demands (a hat, no beard, a book) conditions this distribution exactly, the appearance
included: among training pictures "a person with a hammer" is more often a man.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import PromptError
from tropescope.world.definition import SLOTS, World
from tropescope.world.meaning import Meaning
from tropescope.world.rates import APPEARANCES
from tropescope.world.tables import Floats, Tables, shifted
from tropescope.world.visibility import attribute_is_seen

#: Slots that are drawn together, because headwear decides which hair is seen.
HEAD = ("headwear", "hair", "hair_colour")
Allowed = NDArray[np.bool_]
PLAIN = tuple(slot for slot in SLOTS if slot not in HEAD)


@dataclass(frozen=True, eq=False)
class PromptRates:
    """Distribution for one prompt and one template.

    `share`: chance of looking like a woman. `head[appearance, headwear, hair, colour]`,
    `plain[slot][appearance, category]` and `spots[appearance, left, right]` each sum to 1 for each
    appearance.
    """

    world: World
    share: float
    head: Floats
    plain: Mapping[str, Floats]
    spots: Floats

    @cached_property
    def by_appearance(self) -> Floats:
        return np.array([self.share, 1 - self.share])

    def rate(self, attribute: str) -> float:
        """The chance that a drawing shows the attribute, the object, or that appearance."""
        exact = float(self.by_appearance @ self.rate_by_appearance(attribute))
        return min(max(exact, 0.0), 1.0)

    def rate_by_appearance(self, attribute: str) -> Floats:
        if attribute in APPEARANCES:
            return np.array([float(attribute == name) for name in APPEARANCES])
        if attribute in self.world.objects:
            return self._beside(attribute)
        slot = self.world.attributes[attribute].slot
        if slot in HEAD:
            present = attribute_is_seen(self.world, attribute)
            chances: Floats = (self.head * present).sum((1, 2, 3))
            return chances
        column: Floats = self.plain[slot][:, self.world.categories(slot).index(attribute)]
        return column

    def _beside(self, name: str) -> Floats:
        """The chance that the object stands beside the person at least once."""
        o = list(self.world.objects).index(name)
        chances: Floats = (
            self.spots[:, o, :].sum(1) + self.spots[:, :, o].sum(1) - self.spots[:, o, o]
        )
        return chances

    def object_count(self, name: str) -> float:
        """How many of the object stand beside the person on average."""
        o = list(self.world.objects).index(name)
        return float(self.by_appearance @ (self.spots[:, o, :].sum(1) + self.spots[:, :, o].sum(1)))


def prompt_rates(tables: Tables, meaning: Meaning) -> PromptRates:
    """The distribution for a prompt, conditioned on everything the prompt demands."""
    world = tables.world
    n = _index(world.nations, meaning.nation)
    p = _index(world.professions, meaning.profession)
    g = list(world.genders).index(meaning.gender)
    place = _index(world.places, meaning.place)
    strength = world.templates.strength

    def shift(slot: str) -> float:
        return strength * world.templates.shift(world.slots[slot].shift, meaning.template)

    slots = {slot: shifted(tables.slots[slot][n, p], shift(slot)) for slot in SLOTS}
    share = float(tables.share[n, p, g])
    share += strength * world.templates.shift("who", meaning.template) * share * (1 - share)

    head = np.einsum("ga,gb,gc->gabc", *(slots[slot] for slot in HEAD))
    allowed_head, allowed = _demands(world, meaning)
    spot = tables.spots[p, place]
    pairs = np.einsum("gl,gr->glr", spot, spot)
    allowed_spots = _demanded_objects(world, meaning)

    head, head_chance = _given(head, allowed_head)
    spots, spots_chance = _given(pairs, allowed_spots)
    evidence = head_chance * spots_chance
    plain: dict[str, Floats] = {}
    for slot in PLAIN:
        plain[slot], chance = _given(slots[slot], allowed[slot])
        evidence = evidence * chance
    return PromptRates(
        world=world, share=_posterior(share, evidence), head=head, plain=plain, spots=spots
    )


def _index(names: Mapping[str, object], name: str | None) -> int:
    return -1 if name is None else list(names).index(name)


def _given(chances: Floats, allowed: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Chances restricted to what is allowed, and how likely that was, by appearance.

    What a prompt demands is drawn even where the rates say never (a woman with a beard): then all
    that is allowed is equally likely.
    """
    kept = chances * allowed
    axes = tuple(range(1, kept.ndim))
    chance: Floats = kept.sum(axes)
    never = chance <= 0
    kept[never] = allowed
    total = kept.sum(axes, keepdims=True)
    return kept / total, chance


def _posterior(share: float, evidence: Floats) -> float:
    """Bayes' rule for the appearance; demands that nobody meets leave it as it was."""
    women, men = share * float(evidence[0]), (1 - share) * float(evidence[1])
    return women / (women + men) if women + men > 0 else share


def _demands(world: World, meaning: Meaning) -> tuple[Allowed, dict[str, Allowed]]:
    shape = tuple(len(world.categories(slot)) for slot in HEAD)
    head = np.ones(shape, dtype=np.bool_)
    allowed = {slot: np.ones(len(world.categories(slot)), dtype=np.bool_) for slot in PLAIN}
    for demand in meaning.wanted:
        slot = world.attributes[demand.attribute].slot
        if slot in HEAD:
            seen = attribute_is_seen(world, demand.attribute)
            head &= seen if demand.present else ~seen
            possible = bool(head.any())
        else:
            index = world.categories(slot).index(demand.attribute)
            named = np.arange(len(world.categories(slot))) == index
            allowed[slot] &= named if demand.present else ~named
            possible = bool(allowed[slot].any())
        if not possible:
            names = ", ".join(w.attribute for w in meaning.wanted)
            raise PromptError(
                f"no drawing can show all that the prompt asks for ({names})",
                fix="ask for at most one thing of a kind, for instance one kind of headwear",
            )
    return head, allowed


def _demanded_objects(world: World, meaning: Meaning) -> NDArray[np.bool_]:
    count = len(world.objects) + 1
    allowed = np.ones((count, count), dtype=np.bool_)
    for demand in meaning.objects:
        o = list(world.objects).index(demand.name)
        beside = np.zeros((count, count), dtype=np.bool_)
        beside[o, :] = True
        beside[:, o] = True
        allowed &= beside if demand.present else ~beside
    if not allowed.any():
        raise PromptError(
            "the prompt asks for more objects than there are places beside the person",
            fix="name at most two different objects",
        )
    return allowed
