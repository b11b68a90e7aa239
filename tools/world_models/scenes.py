"""Endless scenes on a device: the world's exact distribution for a batch of different prompts.

The same arithmetic as `tropescope.world.prompt_rates` and `sampling`, for many prompts at once and
without Python per sample, so that a whole training step fits into one CUDA graph. Demands (a hat,
no beard, a book) condition the distribution exactly as the perfect generator does; a demand that
cannot be met together with the ones before it is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tropescope.world.definition import SLOTS, World
from tropescope.world.palette import CLOTH, HAIR, SKIN, backgrounds_of
from tropescope.world.prompt_rates import HEAD, PLAIN
from tropescope.world.sampling import VARIANTS
from tropescope.world.scene import COLUMN, COLUMNS
from tropescope.world.tables import tables_of
from tropescope.world.visibility import attribute_is_seen

DEMANDS = 3


@dataclass(frozen=True)
class Asked:
    """What the captions of a batch name. The last index of each kind means "not named".

    `attributes[b, k]` is a·2 for the presence of attribute a, a·2 + 1 for its absence; `objects`
    likewise. `flat` scenes ignore the planted rates: everything is equally likely.
    """

    nation: Tensor
    profession: Tensor
    gender: Tensor
    place: Tensor
    template: Tensor
    attributes: Tensor
    objects: Tensor
    flat: Tensor


def pick(chances: Tensor) -> Tensor:
    """One category per row; rows need not sum to 1."""
    edges = chances.cumsum(-1)
    number = torch.rand(chances.shape[:-1], device=chances.device) * edges[..., -1]
    return (number.unsqueeze(-1) >= edges[..., :-1]).sum(-1)


class SceneSampler:
    def __init__(self, world: World, device: str, distribution: str = "training") -> None:
        self.world = world
        self.device = device
        self.attributes = list(world.attributes)
        self.objects = list(world.objects)
        tables = tables_of(world, distribution)
        self.share = self._float(tables.share)
        self.slots = {slot: self._float(table) for slot, table in tables.slots.items()}
        self.spots = self._float(tables.spots)
        count = len(world.templates.list)
        strength = world.templates.strength

        def shifts(column: Any) -> Tensor:
            indices = [*range(count), None]
            return self._float([strength * world.templates.shift(column, i) for i in indices])

        self.shift = {slot: shifts(world.slots[slot].shift) for slot in SLOTS}
        self.shift_who = shifts("who")
        self._masks()
        self._looks()

    def _float(self, values: Any) -> Tensor:
        return torch.as_tensor(np.asarray(values), dtype=torch.float32, device=self.device)

    def _masks(self) -> None:
        """For every demand (presence and absence of every attribute, none) what it allows."""
        world = self.world
        rows = 2 * len(self.attributes) + 1
        shape = tuple(len(world.categories(slot)) for slot in HEAD)
        head = np.ones((rows, int(np.prod(shape))), np.float32)
        plain = {s: np.ones((rows, len(world.categories(s))), np.float32) for s in PLAIN}
        seen = np.zeros((len(self.attributes), int(np.prod(shape))), np.float32)
        for a, (name, entry) in enumerate(world.attributes.items()):
            if entry.slot in HEAD:
                shown = attribute_is_seen(world, name).reshape(-1)
                seen[a] = shown
                head[2 * a], head[2 * a + 1] = shown, ~shown
            else:
                k = world.categories(entry.slot).index(name)
                plain[entry.slot][2 * a] = 0
                plain[entry.slot][2 * a, k] = 1
                plain[entry.slot][2 * a + 1, k] = 0
        self.head_shape = shape
        self.head_mask = self._float(head)
        self.plain_mask = {slot: self._float(mask) for slot, mask in plain.items()}
        count = len(self.objects) + 1
        spots = np.ones((2 * len(self.objects) + 1, count, count), np.float32)
        for o in range(len(self.objects)):
            beside = np.zeros((count, count), np.float32)
            beside[o, :] = beside[:, o] = 1
            spots[2 * o], spots[2 * o + 1] = beside, 1 - beside
        self.spot_mask = self._float(spots.reshape(len(spots), -1))
        slot_names = list(SLOTS)
        own = [slot_names.index(entry.slot) for entry in world.attributes.values()]
        self.slot_of = torch.tensor([*own, -1], device=self.device)
        self.seen = self._float(seen).bool()
        self.in_head = [entry.slot in HEAD for entry in world.attributes.values()]

    def _looks(self) -> None:
        world, device = self.world, self.device
        families = [world.places[name].background for name in world.places] + ["any"]
        ranges = [backgrounds_of(family) for family in families]
        self.background = torch.tensor([[r.start, len(r)] for r in ranges], device=device)
        hair = [len(HAIR[name]) for name in world.categories("hair_colour")]
        skin = [len(SKIN[name]) for name in world.categories("skin")]
        self.shades = {
            "hair_shade": ("hair_colour", torch.tensor(hair, device=device)),
            "skin_shade": ("skin", torch.tensor(skin, device=device)),
        }

    # -- what is asked ---------------------------------------------------------------------------

    def ask(self, batch: int, mix: dict[str, Any]) -> Asked:
        """Random prompts in the proportions of the settings; nations are equally frequent."""
        world, device = self.world, self.device

        def named(count: int, share: float) -> Tensor:
            some = torch.randint(count, (batch,), device=device)
            return torch.where(torch.rand(batch, device=device) < share, some, count)

        count = len(self.attributes)
        wanted = torch.randint(count, (batch, DEMANDS), device=device)
        absent = (torch.rand(batch, DEMANDS, device=device) >= mix["present"]).long()
        shares = self._constant(mix["demands"])
        number = pick(shares.expand(batch, -1))
        used = torch.arange(DEMANDS, device=device)[None] < number[:, None]
        attributes = torch.where(used, wanted * 2 + absent, 2 * count)
        thing = torch.randint(len(self.objects), (batch,), device=device)
        gone = (torch.rand(batch, device=device) >= mix["object_present"]).long()
        with_thing = torch.rand(batch, device=device) < mix["object"]
        return Asked(
            nation=named(len(world.nations), mix["nation"]),
            profession=named(len(world.professions), mix["profession"]),
            gender=pick(self._constant(mix["genders"]).expand(batch, -1)),
            place=named(len(world.places), mix["place"]),
            template=named(len(world.templates.list), mix["template"]),
            attributes=attributes,
            objects=torch.where(with_thing, thing * 2 + gone, 2 * len(self.objects)),
            flat=torch.rand(batch, device=device) < mix["flat"],
        )

    def _constant(self, values: list[float]) -> Tensor:
        """A small tensor made once, outside any graph."""
        key = tuple(values)
        cache = self.__dict__.setdefault("_constants", {})
        if key not in cache:
            cache[key] = self._float(values)
        found: Tensor = cache[key]
        return found

    # -- what is drawn ---------------------------------------------------------------------------

    def draw(self, asked: Asked) -> tuple[Asked, Tensor]:
        """Scenes as codes[b, column] (−1: none), and the demands that could be met."""
        n, p, flat = asked.nation, asked.profession, asked.flat
        batch = len(n)
        chances = {slot: self._slot(slot, asked) for slot in SLOTS}
        asked, head_mask, plain_masks = self._allowed(asked)
        head = (
            chances["headwear"][:, :, :, None, None]
            * chances["hair"][:, :, None, :, None]
            * chances["hair_colour"][:, :, None, None, :]
        ).reshape(batch, 2, -1)
        head, evidence = self._given(head, head_mask)
        plain: dict[str, Tensor] = {}
        for slot in PLAIN:
            plain[slot], chance = self._given(chances[slot], plain_masks[slot])
            evidence = evidence * chance
        spot = self.spots[p, asked.place]
        things = spot.shape[-1]
        even = torch.full_like(spot, 0.5 / (things - 1))
        even[..., -1] = 0.5
        spot = torch.where(flat[:, None, None], even, spot)
        pairs = (spot[:, :, :, None] * spot[:, :, None, :]).reshape(batch, 2, -1)
        pairs, chance = self._given(pairs, self.spot_mask[asked.objects])
        evidence = evidence * chance

        share = self.share[n, p, asked.gender]
        share = share + self.shift_who[asked.template] * share * (1 - share)
        named = asked.gender < 2
        share = torch.where(flat & ~named, torch.full_like(share, 0.5), share)
        women, men = share * evidence[:, 0], (1 - share) * evidence[:, 1]
        known = (women + men) > 0
        share = torch.where(known, women / (women + men).clamp_min(1e-30), share)
        who = (torch.rand(batch, device=self.device) >= share).long()

        codes = torch.full((batch, len(COLUMNS)), -1, dtype=torch.long, device=self.device)
        world = self.world
        for name, value, count in (
            ("nation", n, len(world.nations)),
            ("profession", p, len(world.professions)),
            ("place", asked.place, len(world.places)),
            ("template", asked.template, len(world.templates.list)),
        ):
            codes[:, COLUMN[name]] = torch.where(value == count, -1, value)
        codes[:, COLUMN["gender"]] = asked.gender
        codes[:, COLUMN["appearance"]] = who

        def own(values: Tensor) -> Tensor:
            index = who[:, None, None].expand(-1, 1, values.shape[-1])
            return values.gather(1, index)[:, 0]

        rest = pick(own(head))
        for name, size in zip(reversed(HEAD), reversed(self.head_shape), strict=True):
            codes[:, COLUMN[name]] = rest % size
            rest = rest // size
        for slot in PLAIN:
            codes[:, COLUMN[slot]] = pick(own(plain[slot]))
        pair = pick(own(pairs))
        for name, value in (("left", pair // things), ("right", pair % things)):
            codes[:, COLUMN[name]] = torch.where(value == things - 1, -1, value)
        self._dress(asked, codes)
        return asked, codes

    def _slot(self, slot: str, asked: Asked) -> Tensor:
        chances = self.slots[slot][asked.nation, asked.profession]
        amount = self.shift[slot][asked.template][:, None, None]
        anything = 1 - chances[..., -1:]
        moved = chances[..., :-1] * (1 + amount * (1 - anything))
        moved = torch.cat([moved, 1 - moved.sum(-1, keepdim=True)], -1)
        even = torch.full_like(moved, 1 / moved.shape[-1])
        return torch.where(asked.flat[:, None, None], even, moved)

    def _allowed(self, asked: Asked) -> tuple[Asked, Tensor, dict[str, Tensor]]:
        nothing = 2 * len(self.attributes)
        head = self.head_mask[asked.attributes[:, 0]]
        kept = [asked.attributes[:, 0]]
        slots = [self.slot_of[asked.attributes[:, 0] // 2]]
        for k in range(1, DEMANDS):
            demand = asked.attributes[:, k]
            slot = self.slot_of[demand // 2]
            both = head * self.head_mask[demand]
            fits = both.any(-1)
            for earlier in slots:
                fits &= slot != earlier
            demand = torch.where(fits, demand, nothing)
            head = torch.where(fits[:, None], both, head)
            kept.append(demand)
            slots.append(slot)
        plain = {}
        for slot_name, mask in self.plain_mask.items():
            allowed = mask[kept[0]]
            for demand in kept[1:]:
                allowed = allowed * mask[demand]
            plain[slot_name] = allowed
        changed = Asked(**{**asked.__dict__, "attributes": torch.stack(kept, 1)})
        return changed, head, plain

    @staticmethod
    def _given(chances: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
        kept = chances * allowed[:, None]
        chance = kept.sum(-1)
        kept = torch.where((chance <= 0)[..., None], allowed[:, None].expand_as(kept), kept)
        return kept, chance

    def _dress(self, asked: Asked, codes: Tensor) -> None:
        batch = len(codes)

        def some(count: int | Tensor) -> Tensor:
            return (torch.rand(batch, device=self.device) * count).long()

        for name in ("freckles", "brooch"):
            look = self.world.hard_to_see[name]
            number = torch.rand(batch, device=self.device)
            present = torch.where(number < look.present_faint, 1, 2)
            clear = (number < look.absent_faint + look.absent_clear).long() * 2
            absent = torch.where(number < look.absent_faint, torch.ones_like(clear), clear)
            shown = codes[:, COLUMN[name]] == 0
            codes[:, COLUMN[f"{name}_look"]] = torch.where(shown, present, absent)
        start, count = self.background[asked.place].unbind(1)
        codes[:, COLUMN["background"]] = start + some(count)
        for slot in ("headwear", "clothing"):
            codes[:, COLUMN[f"{slot}_colour"]] = some(len(CLOTH))
        for name, (column, counts) in self.shades.items():
            codes[:, COLUMN[name]] = some(counts[codes[:, COLUMN[column]]])
        for slot, number_of in VARIANTS.items():
            codes[:, COLUMN[f"{slot}_variant"]] = some(number_of)

    # -- what is shown ---------------------------------------------------------------------------

    def labels(self, codes: Tensor) -> Tensor:
        """[b, attribute]: whether the picture shows it."""
        _, hair, colour = self.head_shape
        flat = codes[:, COLUMN["headwear"]] * hair + codes[:, COLUMN["hair"]]
        flat = flat * colour + codes[:, COLUMN["hair_colour"]]
        shown = []
        for a, (name, entry) in enumerate(self.world.attributes.items()):
            if self.in_head[a]:
                shown.append(self.seen[a][flat])
            else:
                k = self.world.categories(entry.slot).index(name)
                shown.append(codes[:, COLUMN[entry.slot]] == k)
        return torch.stack(shown, 1)

    def object_labels(self, codes: Tensor) -> Tensor:
        """[b, object]: whether it stands beside the person."""
        every = torch.arange(len(self.objects), device=self.device)[None]
        left, right = codes[:, COLUMN["left"]], codes[:, COLUMN["right"]]
        return (left[:, None] == every) | (right[:, None] == every)
