"""Rules of the world file that span several entries: known names, rates that fit their slot."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from tropescope.world.rates import Planted, Side

if TYPE_CHECKING:
    from tropescope.world.definition import World

_SIDES: tuple[Side, ...] = ("world", "training")
_GENDER_WORDS = ("woman", "man", "person", "non-binary person")


def problem(world: World) -> str | None:
    """The first thing that is wrong, in words; None where nothing is."""
    return next(_problems(world), None)


def _problems(world: World) -> Iterator[str]:
    from tropescope.world.definition import SLOTS

    if tuple(world.slots) != SLOTS:
        yield f"slots must be exactly, and in this order: {', '.join(SLOTS)}"
    if tuple(world.genders) != _GENDER_WORDS:
        yield f"genders must be exactly, and in this order: {', '.join(_GENDER_WORDS)}"
    for name in ("world", "training"):
        if name not in world.distributions:
            yield f"distributions: '{name}' is missing"
    for name, attribute in world.attributes.items():
        yield from _unknown([attribute.slot], world.slots, f"attributes.{name}")
    yield from _unknown(world.hard_to_see, ("freckles", "brooch"), "hard_to_see")
    for name, look in world.hard_to_see.items():
        if look.absent_clear + look.absent_faint > 1:
            yield f"hard_to_see.{name}: absent_clear and absent_faint exceed 1 together"
    if set(world.hard_to_see) != {"freckles", "brooch"}:
        yield "hard_to_see must say how freckles and brooch are drawn"
    yield from _groups(world)
    yield from _things(world)


def _groups(world: World) -> Iterator[str]:
    everybody = {name: entry.rate for name, entry in world.attributes.items()}
    yield from _slots_overflow(world, everybody, "attributes")
    groups = [(f"nations.{name}", entry.attributes) for name, entry in world.nations.items()]
    groups += [(f"professions.{n}", entry.attributes) for n, entry in world.professions.items()]
    for entry in world.intersections:
        where = f"intersections.{entry.nation} {entry.profession}"
        yield from _unknown([entry.nation], world.nations, where)
        yield from _unknown([entry.profession], world.professions, where)
        groups.append((where, entry.attributes))
    for where, rates in groups:
        yield from _unknown(rates, world.attributes, where)
        yield from _slots_overflow(world, rates, where)
        yield from _impossible(world, rates, where)


def _things(world: World) -> Iterator[str]:
    for name, profession in world.professions.items():
        yield from _unknown(profession.tools.things, world.objects, f"professions.{name}.tools")
    for phrase, place in world.places.items():
        yield from _unknown(place.things, world.objects, f"places.{phrase}")
    for side in _SIDES:
        rates = [entry.rate.side(side) for entry in world.objects.values()]
        if any(rate is None for rate in rates):
            yield "objects: every object needs a rate in world and training"
            return
        for index in (0, 1):
            total = sum(rate.by_appearance()[index] for rate in rates if rate is not None)
            if total > 1:
                yield f"objects: the {side} rates sum to {total:.2f}, more than 1"


def _unknown(names: Iterable[str], known: Iterable[str], where: str) -> Iterator[str]:
    known = list(known)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            yield f"{where}: unknown '{name}'" + (f", did you mean '{near[0]}'?" if near else "")


def _slots_overflow(world: World, rates: Mapping[str, Planted], where: str) -> Iterator[str]:
    for side in _SIDES:
        for index, who in enumerate(("women", "men")):
            totals: dict[str, float] = {}
            for name, planted in rates.items():
                rate = planted.side(side)
                if rate is not None and name in world.attributes:
                    slot = world.attributes[name].slot
                    totals[slot] = totals.get(slot, 0.0) + rate.by_appearance()[index]
            for slot, total in totals.items():
                if total > 1 + 1e-9:
                    yield f"{where}: the {side} rates of slot '{slot}' sum to {total:.2f} for {who}"


def _impossible(world: World, rates: Mapping[str, Planted], where: str) -> Iterator[str]:
    """Odds multiply only where anybody has the attribute at all."""
    for side in _SIDES:
        for name, planted in rates.items():
            rate = planted.side(side)
            base = world.attributes[name].rate.side(side) if name in world.attributes else None
            if rate is None or base is None:
                continue
            for index, who in enumerate(("women", "men")):
                if rate.by_appearance()[index] > 0 and base.by_appearance()[index] == 0:
                    yield (
                        f"{where}: {name} has a rate for {who}, but among anybody it is 0; "
                        "give anybody a small rate first"
                    )
