"""The world file as data: nations, professions, attributes, objects, and what is planted in them.

`load_world` reads the file shipped with the package, or a copy with other numbers. Nothing else in
this package knows a rate; tables, truth, drawings and the text grammar are all computed from here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from tropescope.errors import StudyError
from tropescope.world.rates import APPEARANCES, Planted, PlantedShare, Share, Side, WorldPart

WORLD_FILE = Path(__file__).with_name("world.yaml")

ShiftColumn = Literal["who", "head", "rest", "none"]
Background = Literal["any", "warm", "green", "blue", "grey", "rose"]

#: Slots the renderer knows how to draw, in the order in which they are drawn by chance.
SLOTS = (
    "headwear",
    "hair",
    "hair_colour",
    "facial_hair",
    "eyewear",
    "clothing",
    "skin",
    "expression",
    "freckles",
    "brooch",
)


class Distribution(WorldPart):
    """Which side of the file each section is read from."""

    genders: Side
    people: Side
    nations: Side
    professions: Side
    objects: Side


class Gender(WorldPart):
    adjective: str = ""
    share_of_women: PlantedShare


class Slot(WorldPart):
    otherwise: str
    shift: ShiftColumn


class Attribute(WorldPart):
    slot: str
    phrase: str
    rate: Planted

    @model_validator(mode="after")
    def _phrase_starts_with_a_verb(self) -> Self:
        if self.phrase.split()[0] not in ("wearing", "with") or len(self.phrase.split()) < 2:
            raise ValueError(f"the phrase {self.phrase!r} must be 'wearing …' or 'with …'")
        if self.rate.world is None or self.rate.training is None:
            raise ValueError("an attribute needs a rate for anybody, in world and training")
        return self


class HardToSee(WorldPart):
    """How often the picture misleads about an attribute that is hard to see."""

    present_faint: Share
    absent_clear: Share
    absent_faint: Share


class Nation(WorldPart):
    share_of_women: PlantedShare | None = None
    attributes: dict[str, Planted] = {}

    @model_validator(mode="before")
    @classmethod
    def _attributes_stand_beside_the_share(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or "attributes" in value:
            return value
        rates = {name: rate for name, rate in value.items() if name != "share_of_women"}
        return {"share_of_women": value.get("share_of_women"), "attributes": rates}


class Things(WorldPart):
    """With chance `share`, a place beside the person holds one of these things instead."""

    share: Share = 0.0
    things: dict[str, Share] = {}

    @model_validator(mode="after")
    def _things_sum_to_one(self) -> Self:
        if self.share > 0 and abs(sum(self.things.values()) - 1) > 1e-9:
            raise ValueError(f"the things {self.things} must sum to 1")
        return self


class Profession(WorldPart):
    share_of_women: PlantedShare
    attributes: dict[str, Planted] = {}
    tools: Things = Things()


class Place(Things):
    background: Background = "any"


class Intersection(WorldPart):
    nation: str
    profession: str
    attributes: dict[str, Planted]


class WorldObject(WorldPart):
    activity: str
    rate: Planted


class Template(WorldPart):
    text: str
    who: float
    head: float
    rest: float


class Templates(WorldPart):
    strength: Annotated[float, Field(ge=0.0)]
    list: Annotated[tuple[Template, ...], Field(min_length=1)]

    def shift(self, column: ShiftColumn, index: int | None) -> float:
        """s of a template: its number over the column's root mean square; 0 without template."""
        if index is None or column == "none":
            return 0.0
        numbers = [float(getattr(template, column)) for template in self.list]
        scale = (sum(number**2 for number in numbers) / len(numbers)) ** 0.5
        return numbers[index] / scale if scale else 0.0

    @model_validator(mode="after")
    def _shifts_average_out(self) -> Self:
        rows = [(entry.who, entry.head, entry.rest) for entry in self.list]
        products = {
            "who": [a for a, _, _ in rows],
            "head": [b for _, b, _ in rows],
            "rest": [c for _, _, c in rows],
            "who × head": [a * b for a, b, _ in rows],
            "who × rest": [a * c for a, _, c in rows],
            "head × rest": [b * c for _, b, c in rows],
            "who × head × rest": [a * b * c for a, b, c in rows],
        }
        for name, column in products.items():
            if abs(sum(column)) > 1e-9:
                raise ValueError(f"the shifts '{name}' sum to {sum(column)}, not to 0")
        largest = max(
            (abs(self.shift(column, i)) for column in _COLUMNS for i in range(len(self.list))),
        )
        if self.strength * largest > 1:
            raise ValueError(f"strength {self.strength} is too large: a rate could leave 0..1")
        return self


_COLUMNS: tuple[ShiftColumn, ...] = ("who", "head", "rest")


class World(WorldPart):
    """The whole file."""

    name: str
    version: int
    distributions: dict[str, Distribution]
    genders: dict[str, Gender]
    slots: dict[str, Slot]
    attributes: dict[str, Attribute]
    hard_to_see: dict[str, HardToSee]
    nations: dict[str, Nation]
    professions: dict[str, Profession]
    intersections: tuple[Intersection, ...] = ()
    places: dict[str, Place]
    objects: dict[str, WorldObject]
    templates: Templates

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        from tropescope.world.consistency import problem

        found = problem(self)
        if found:
            raise ValueError(found)
        return self

    @cached_property
    def digest(self) -> str:
        """A hash of everything in the file that means something (not of comments or spaces)."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def __hash__(self) -> int:
        """Lets tables and painted sprites be kept per world."""
        return hash(self.digest)

    def categories(self, slot: str) -> tuple[str, ...]:
        """What a slot can hold: its attributes in the file's order, then its `otherwise`."""
        named = [name for name, entry in self.attributes.items() if entry.slot == slot]
        return (*named, self.slots[slot].otherwise)

    @property
    def visible(self) -> tuple[str, ...]:
        """All that a picture can be asked about: attributes, woman and man, objects."""
        return (*self.attributes, *APPEARANCES, *self.objects)

    def with_rates(self, rates: Mapping[str, Any]) -> World:
        """A copy in which some rates, in the world *and* in training, are replaced.

        `rates` mirrors the file: ``{"nations": {"Kestran": {"hat": .5}}, "genders": {"person": .5},
        "professions": {"nurse": {"share_of_women": .6}}, "people": {"smile": .4},
        "objects": {"ball": .1}}``.
        """
        data = self.model_dump(mode="json")
        for section, entries in rates.items():
            if section not in ("genders", "people", "nations", "professions", "objects"):
                raise StudyError(
                    f"unknown section '{section}' in rates",
                    fix="use genders, people, nations, professions or objects",
                )
            if not isinstance(entries, Mapping):
                raise StudyError(f"rates.{section} must map names to rates")
            for name, value in entries.items():
                _replace(data, section, name, value)
        return validated_world(data, where="rates")


def _replace(data: dict[str, Any], section: str, name: str, value: Any) -> None:
    """Put one override into the file's data."""
    holder = data["attributes" if section == "people" else section]
    if name not in holder:
        raise StudyError(
            f"rates.{section}: the world has no '{name}'", fix=f"known: {', '.join(holder)}"
        )
    entry = holder[name]
    if section in ("people", "objects"):
        entry["rate"] = value
    elif section == "genders":
        entry["share_of_women"] = value
    else:
        if not isinstance(value, Mapping):
            raise StudyError(f"rates.{section}.{name} must map attributes to rates")
        for attribute, rate in value.items():
            if attribute == "share_of_women":
                entry["share_of_women"] = rate
            else:
                entry["attributes"][attribute] = rate


def validated_world(data: Any, *, where: str) -> World:
    """The world from plain data; what is wrong is said with its place in the file."""
    try:
        return World.model_validate(data)
    except ValidationError as error:
        lines = [
            f"{'.'.join(str(step) for step in found['loc']) or 'file'}: {found['msg']}"
            for found in error.errors()[:5]
        ]
        raise StudyError(
            f"the world in {where} is not valid: " + "; ".join(lines),
            fix="correct these entries; the shipped world.yaml shows the form of each",
        ) from error


@lru_cache(maxsize=8)
def load_world(path: Path | None = None) -> World:
    """The shipped world, or the one in another file."""
    source = WORLD_FILE if path is None else path
    try:
        data = yaml.safe_load(source.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise StudyError(f"{source.name} is not valid YAML: {error}") from error
    return validated_world(data, where=source.name)
