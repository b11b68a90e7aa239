"""The sampler in torch: many different prompts at once, each with its own conditions.

The same tables, the same random numbers and the same order of decisions as `sampling`: for equal
prompts and seeds the scenes are equal. A training script draws prompts first (`prompts_torch`) and
then people for them, so what a model is trained on is exactly what the perfect generator draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tropescope.world.chance import DECISIONS, FIRST, SECOND, STEP
from tropescope.world.definition import SLOTS, World
from tropescope.world.palette import CLOTH, HAIR, SKIN, backgrounds_of
from tropescope.world.prompt_rates import HEAD, PLAIN
from tropescope.world.sampling import VARIANTS, stream_for
from tropescope.world.scene import COLUMN, COLUMNS
from tropescope.world.tables import tables_of
from tropescope.world.visibility import attribute_is_seen

Tensor = Any
"""torch.Tensor; torch is an optional dependency and has no types where it is missing."""


@dataclass(frozen=True, eq=False)
class PromptBatch:
    """Many prompts as integers; −1 means "not named".

    `demands[prompt, k]` is 2·attribute + (0 present, 1 absent); `object` an object that must stand
    beside the person.
    """

    nation: Tensor
    profession: Tensor
    gender: Tensor
    place: Tensor
    template: Tensor
    demands: Tensor
    object: Tensor

    def __len__(self) -> int:
        return int(self.nation.shape[0])


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _shift_right(value: Tensor, bits: int) -> Tensor:
    """torch shifts integers with their sign; the numbers here have none."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def _mixed(value: Tensor) -> Tensor:
    value = (value ^ _shift_right(value, 30)) * _signed(FIRST)
    value = (value ^ _shift_right(value, 27)) * _signed(SECOND)
    return value ^ _shift_right(value, 31)


def _given(chances: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Chances under a condition and the chance of the condition; see `prompt_rates`."""
    kept = chances * allowed
    axes = tuple(range(2, kept.ndim))
    chance = kept.sum(axes)
    shape = (*chance.shape, *(1 for _ in axes))
    kept = torch.where((chance > 0).view(shape), kept, allowed.to(kept.dtype).expand_as(kept))
    return kept / kept.sum(axes, keepdim=True), chance


def _chosen(chances: Tensor, numbers: Tensor) -> Tensor:
    total = chances.sum(-1, keepdim=True)
    edges = (chances / total).cumsum(-1)[..., :-1]
    return (numbers[:, None] >= edges).sum(-1)


class TorchSampler:
    """Draws people for prompts from one distribution of a world, on a device."""

    def __init__(
        self, world: World, distribution: str = "training", *, device: str = "cpu"
    ) -> None:
        self.world = world
        self.device = torch.device(device)
        tables = tables_of(world, distribution)
        self.share = self._floats(tables.share)
        self.slots = {slot: self._floats(tables.slots[slot]) for slot in SLOTS}
        self.spots = self._floats(tables.spots)
        self.shifts = self._shifts()
        self.streams = self._streams()
        self.allowed_head, self.allowed = self._allowed()
        self.allowed_spots = self._allowed_spots()
        looks = world.hard_to_see
        self.looks = {name: looks[name] for name in ("freckles", "brooch")}
        self.first_background, self.backgrounds = self._backgrounds()
        self.hair_shades = self._counts([len(HAIR[n]) for n in world.categories("hair_colour")])
        self.skin_shades = self._counts([len(SKIN[n]) for n in world.categories("skin")])

    def draw(self, prompts: PromptBatch, seeds: Tensor) -> Tensor:
        """[prompt, column]: one scene per prompt and seed, as integers."""
        u = self._uniforms(prompts, seeds)
        n, p = prompts.nation, prompts.profession
        rows = torch.arange(len(prompts), device=self.device)
        slots = {slot: self._shifted(self.slots[slot][n, p], slot, prompts) for slot in SLOTS}
        share = self.share[n, p, prompts.gender]
        share = share + self.shifts["who"][prompts.template] * share * (1 - share)

        head, evidence = _given(
            torch.einsum("nga,ngb,ngc->ngabc", *(slots[slot] for slot in HEAD)),
            self.allowed_head[prompts.demands].all(1)[:, None],
        )
        spot = self.spots[p, prompts.place]
        spots, chance = _given(
            torch.einsum("ngl,ngr->nglr", spot, spot), self.allowed_spots[prompts.object][:, None]
        )
        evidence = evidence * chance
        plain = {}
        for slot in PLAIN:
            allowed = self.allowed[slot][prompts.demands].all(1)[:, None]
            plain[slot], chance = _given(slots[slot], allowed)
            evidence = evidence * chance
        women, men = share * evidence[:, 0], (1 - share) * evidence[:, 1]
        share = torch.where(women + men > 0, women / (women + men).clamp_min(1e-300), share)

        codes = torch.full((len(prompts), len(COLUMNS)), -1, dtype=torch.long, device=self.device)
        for name in ("nation", "profession", "gender", "place", "template"):
            codes[:, COLUMN[name]] = getattr(prompts, name)
        who = (u["who"] >= share).long()
        headwear = _chosen(head[rows, who].sum((2, 3)), u["headwear"])
        hair = _chosen(head[rows, who, headwear].sum(2), u["hair"])
        colour = _chosen(head[rows, who, headwear, hair], u["hair_colour"])
        left = _chosen(spots[rows, who].sum(2), u["left"])
        right = _chosen(spots[rows, who, left], u["right"])
        nothing = len(self.world.objects)
        drawn = {
            "appearance": who,
            "headwear": headwear,
            "hair": hair,
            "hair_colour": colour,
            **{slot: _chosen(plain[slot][rows, who], u[slot]) for slot in PLAIN},
            "left": torch.where(left == nothing, -1, left),
            "right": torch.where(right == nothing, -1, right),
        }
        for name, values in {**drawn, **self._dress(drawn, prompts, u)}.items():
            codes[:, COLUMN[name]] = values
        return codes

    def _dress(
        self, drawn: dict[str, Tensor], prompts: PromptBatch, u: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Looks of the hard attributes, colours, shades and variants."""
        worn = {
            "background": self.first_background[prompts.place]
            + (u["background"] * self.backgrounds[prompts.place]).long(),
            "hair_shade": (u["hair_shade"] * self.hair_shades[drawn["hair_colour"]]).long(),
            "skin_shade": (u["skin_shade"] * self.skin_shades[drawn["skin"]]).long(),
        }
        for slot in ("headwear", "clothing"):
            worn[f"{slot}_colour"] = (u[f"{slot}_colour"] * len(CLOTH)).long()
        for slot, count in VARIANTS.items():
            worn[f"{slot}_variant"] = (u[f"{slot}_variant"] * count).long()
        for name, look in self.looks.items():
            number = u[f"{name}_look"]
            present = 2 - (number < look.present_faint).long()
            clear = 2 * (number < look.absent_faint + look.absent_clear).long()
            absent = torch.where(number < look.absent_faint, 1, clear)
            worn[f"{name}_look"] = torch.where(drawn[name] == 0, present, absent)
        return worn

    def _uniforms(self, prompts: PromptBatch, seeds: Tensor) -> dict[str, Tensor]:
        stream = self.streams[prompts.template, prompts.place]
        start = _mixed(seeds * _signed(STEP) + stream)
        places = torch.arange(1, len(DECISIONS) + 1, device=self.device) * _signed(STEP)
        mixed = _mixed(start[:, None] + places[None, :])
        numbers = _shift_right(mixed, 11).to(torch.float64) * 2.0**-53
        return {name: numbers[:, index] for index, name in enumerate(DECISIONS)}

    def _shifted(self, chances: Tensor, slot: str, prompts: PromptBatch) -> Tensor:
        column = self.world.slots[slot].shift
        amount = self.shifts[column][prompts.template][:, None, None]
        moved = chances[..., :-1] * (1 + amount * chances[..., -1:])
        return torch.cat([moved, 1 - moved.sum(-1, keepdim=True)], dim=-1)

    def _floats(self, values: Any) -> Tensor:
        return torch.as_tensor(np.asarray(values), dtype=torch.float64).to(self.device)

    def _counts(self, values: list[int]) -> Tensor:
        return torch.tensor(values, device=self.device)

    def _shifts(self) -> dict[str, Tensor]:
        """Strength times s by template, the last entry (no template) being 0."""
        templates = self.world.templates
        indices = [*range(len(templates.list)), None]
        shifts = {
            "who": [templates.strength * templates.shift("who", i) for i in indices],
            "head": [templates.strength * templates.shift("head", i) for i in indices],
            "rest": [templates.strength * templates.shift("rest", i) for i in indices],
            "none": [0.0 for _ in indices],
        }
        return {column: self._floats(values) for column, values in shifts.items()}

    def _streams(self) -> Tensor:
        templates = [*range(len(self.world.templates.list)), None]
        places = [*self.world.places, None]
        rows = [[stream_for(template, place) for place in places] for template in templates]
        return torch.tensor(rows, dtype=torch.long, device=self.device)

    def _backgrounds(self) -> tuple[Tensor, Tensor]:
        families = [*(place.background for place in self.world.places.values()), "any"]
        ranges = [backgrounds_of(family) for family in families]
        return self._counts([r.start for r in ranges]), self._counts([len(r) for r in ranges])

    def _allowed(self) -> tuple[Tensor, dict[str, Tensor]]:
        """What each demand allows; the last row (no demand) allows everything."""
        world, count = self.world, 2 * len(self.world.attributes) + 1
        head = np.ones((count, *(len(world.categories(slot)) for slot in HEAD)), dtype=np.bool_)
        plain = {s: np.ones((count, len(world.categories(s))), dtype=np.bool_) for s in PLAIN}
        for a, (name, entry) in enumerate(world.attributes.items()):
            if entry.slot in HEAD:
                present = attribute_is_seen(world, name)
                head[2 * a], head[2 * a + 1] = present, ~present
            else:
                names = world.categories(entry.slot)
                present = np.arange(len(names)) == names.index(name)
                plain[entry.slot][2 * a], plain[entry.slot][2 * a + 1] = present, ~present
        return (
            torch.as_tensor(head).to(self.device),
            {slot: torch.as_tensor(rows).to(self.device) for slot, rows in plain.items()},
        )

    def _allowed_spots(self) -> Tensor:
        count = len(self.world.objects) + 1
        allowed = np.zeros((count, count, count), dtype=np.bool_)
        for o in range(count - 1):
            allowed[o, o, :] = True
            allowed[o, :, o] = True
        allowed[-1] = True
        return torch.as_tensor(allowed).to(self.device)
