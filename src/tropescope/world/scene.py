"""One drawing as data: everything in it, from which picture, labels, boxes and masks follow.

`Scene` is one drawing in words, small as JSON. `Scenes` is many as one integer array, a column per
field, the form in which they are drawn and rendered in batches; numpy and torch share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import StoreError
from tropescope.world.definition import SLOTS, World
from tropescope.world.palette import CLOTH
from tropescope.world.rates import APPEARANCES
from tropescope.world.visibility import attribute_is_seen

#: How a mark that is hard to see was drawn.
LOOKS = ("none", "faint", "clear")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One drawn person. The first five fields say what was asked, the others what was drawn."""

    nation: str | None = None
    profession: str | None = None
    gender: str = "person"
    place: str | None = None
    template: int | None = None
    appearance: str
    headwear: str
    hair: str
    hair_colour: str
    facial_hair: str
    eyewear: str
    clothing: str
    skin: str
    expression: str
    freckles: str
    brooch: str
    left: str | None = None
    right: str | None = None
    freckles_look: str = "none"
    brooch_look: str = "none"
    headwear_colour: str = "red"
    clothing_colour: str = "blue"
    background: int = 0
    hair_shade: int = 0
    skin_shade: int = 0
    hair_variant: int = 0
    facial_hair_variant: int = 0
    eyewear_variant: int = 0
    clothing_variant: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain data, without the fields that say nothing."""
        return {
            name: value
            for name, value in asdict(self).items()
            if value is not None and (value != 0 or name == "template")
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scene:
        try:
            return cls(**data)
        except TypeError as error:
            raise StoreError(
                f"these facts do not describe a drawing of the reference world: {error}",
                fix="the run was made by another version; generate the images again",
            ) from error


COLUMNS: tuple[str, ...] = tuple(field.name for field in fields(Scene))
COLUMN = {name: index for index, name in enumerate(COLUMNS)}


class Codes:
    """Words to integers and back. None is −1; numbers stand for themselves."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.words: dict[str, tuple[str, ...]] = {
            "nation": tuple(world.nations),
            "profession": tuple(world.professions),
            "gender": tuple(world.genders),
            "place": tuple(world.places),
            "appearance": APPEARANCES,
            **{slot: world.categories(slot) for slot in SLOTS},
            "left": tuple(world.objects),
            "right": tuple(world.objects),
            "freckles_look": LOOKS,
            "brooch_look": LOOKS,
            "headwear_colour": tuple(CLOTH),
            "clothing_colour": tuple(CLOTH),
        }

    def code(self, column: str, value: str | int | None) -> int:
        if value is None:
            return -1
        if isinstance(value, int):
            return value
        try:
            return self.words[column].index(value)
        except (KeyError, ValueError) as error:
            raise StoreError(
                f"the world has no {column} '{value}'",
                fix="the scene comes from another world file; generate the images again",
            ) from error

    def word(self, column: str, code: int) -> str | int | None:
        if code < 0:
            return None
        return self.words[column][code] if column in self.words else code

    def encode(self, scenes: list[Scene]) -> Scenes:
        rows = [[self.code(name, getattr(scene, name)) for name in COLUMNS] for scene in scenes]
        return Scenes(self.world, np.array(rows, dtype=np.int16).reshape(-1, len(COLUMNS)))


@dataclass(frozen=True, eq=False)
class Scenes:
    """Many drawings: `codes[drawing, column]`."""

    world: World
    codes: NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.codes)

    def column(self, name: str) -> NDArray[np.int16]:
        return self.codes[:, COLUMN[name]]

    @cached_property
    def coding(self) -> Codes:
        return Codes(self.world)

    def scene(self, index: int) -> Scene:
        row = self.codes[index]
        words = {n: self.coding.word(n, int(code)) for n, code in zip(COLUMNS, row, strict=True)}
        return Scene(**words)  # type: ignore[arg-type]

    def labels(self) -> NDArray[np.bool_]:
        """[drawing, attribute]: what each picture shows, attributes in the world file's order."""
        shown = np.zeros((len(self), len(self.world.attributes)), dtype=np.bool_)
        head = tuple(self.column(slot) for slot in ("headwear", "hair", "hair_colour"))
        for a, (name, entry) in enumerate(self.world.attributes.items()):
            if entry.slot in ("headwear", "hair", "hair_colour"):
                shown[:, a] = attribute_is_seen(self.world, name)[head]
            else:
                index = self.world.categories(entry.slot).index(name)
                shown[:, a] = self.column(entry.slot) == index
        return shown


def labels_of(scenes: Scenes) -> list[dict[str, bool]]:
    """What each picture shows, by name: attributes, woman or man, objects (`World.visible`)."""
    world = scenes.world
    attributes = scenes.labels()
    woman = scenes.column("appearance")[:, None] == 0
    beside = np.arange(len(world.objects))[None, :]
    objects = (scenes.column("left")[:, None] == beside) | (
        scenes.column("right")[:, None] == beside
    )
    shown = np.concatenate([attributes, woman, ~woman, objects], axis=1).tolist()
    return [dict(zip(world.visible, row, strict=True)) for row in shown]
