"""What a prompt asks for, once it has been understood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GenderWord = Literal["woman", "man", "person", "non-binary person"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """An attribute that the prompt names: present or absent, perhaps of a colour."""

    attribute: str
    present: bool = True
    colour: str | None = None


@dataclass(frozen=True, slots=True)
class WantedObject:
    """An object that the prompt names as beside the person, or as not there."""

    name: str
    present: bool = True


@dataclass(frozen=True, slots=True)
class Meaning:
    """Whom, how and where to draw. Equal meanings are drawn from equal distributions.

    `template` is the index of the way of asking in the world file (None: some other way, with no
    planted shift). `wanted` and `objects` are conditions: the drawing comes from the distribution
    *given* them.
    """

    nation: str | None = None
    profession: str | None = None
    gender: GenderWord = "person"
    place: str | None = None
    template: int | None = None
    wanted: tuple[Wanted, ...] = ()
    objects: tuple[WantedObject, ...] = ()
