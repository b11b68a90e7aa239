"""What the perfect generator can be told to do wrong, per identity and at a given rate.

    misbehave: {Kestran: {refuse: .2}, woman: {black: .1}, nurse: {fail: .05}, "*": {repeat: .3}}

For a prompt the first of nation, profession, gender word, "*" that is listed applies. `repeat`
gives the same picture again and again (a collapsed model); `fail` fails every time it is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from tropescope.errors import StudyError
from tropescope.world.chance import DECISIONS, stream_of, uniforms
from tropescope.world.definition import World
from tropescope.world.meaning import Meaning

Deed = Literal["refuse", "fail", "black", "repeat", ""]
Chance = Annotated[float, Field(ge=0.0, le=1.0)]


class Faults(BaseModel):
    """How often a request ends in each way; otherwise it is answered properly."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    refuse: Chance = 0.0
    fail: Chance = 0.0
    black: Chance = 0.0
    repeat: Chance = 0.0

    @model_validator(mode="after")
    def _not_more_than_always(self) -> Faults:
        if self.refuse + self.fail + self.black + self.repeat > 1 + 1e-9:
            raise ValueError("the rates of misbehaviour sum to more than 1")
        return self


@dataclass(frozen=True)
class Misbehaviour:
    """Faults by identity, and which of them strikes a given seed."""

    faults: Mapping[str, Faults]

    @classmethod
    def read(cls, world: World, given: Mapping[str, Any] | None) -> Misbehaviour:
        known = {*world.nations, *world.professions, *world.genders, "*"}
        for name in given or {}:
            if name not in known:
                raise StudyError(
                    f"misbehave: the world has no identity '{name}'",
                    fix="name a nation, a profession, a gender word, or '*' for all",
                )
        try:
            faults = TypeAdapter(dict[str, Faults]).validate_python(dict(given or {}))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(step) for step in first["loc"])
            raise StudyError(f"misbehave.{where}: {first['msg']}") from error
        return cls(faults)

    def applying(self, meaning: Meaning) -> Faults | None:
        for name in (meaning.nation, meaning.profession, meaning.gender, "*"):
            if name is not None and name in self.faults:
                return self.faults[name]
        return None

    def deeds(self, meaning: Meaning, seeds: NDArray[np.int64]) -> list[Deed]:
        """What happens to each seed; "" where the request is answered properly.

        The numbers differ by nation and profession: who is refused is no property of a seed.
        """
        faults = self.applying(meaning)
        if faults is None:
            return [""] * len(seeds)
        stream = stream_of(f"misbehaviour {meaning}")
        numbers = uniforms(seeds, stream)[:, DECISIONS.index("misbehaviour")]
        edges = np.cumsum([faults.refuse, faults.fail, faults.black, faults.repeat])
        names: tuple[Deed, ...] = ("refuse", "fail", "black", "repeat", "")
        return [names[int((number >= edges).sum())] for number in numbers]
