"""Planted rates as the world file writes them: one number, by appearance, or world and training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Side = Literal["world", "training"]

#: How a drawn person looks. Index 0 and 1 of every table by appearance.
APPEARANCES: tuple[str, str] = ("woman", "man")


class WorldPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rate(WorldPart):
    """How many of those who look like women, and of those who look like men."""

    women: Share = 0.0
    men: Share = 0.0

    @model_validator(mode="before")
    @classmethod
    def _one_number_for_both(cls, value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {"women": value, "men": value}
        return value

    def by_appearance(self) -> tuple[float, float]:
        return self.women, self.men


class Planted(WorldPart):
    """The world's own rate and the rate among training pictures. None: not said."""

    world: Rate | None = None
    training: Rate | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_rate_for_both(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and not {"women", "men"} & set(value):
            return value
        return {"world": value, "training": value}

    def side(self, side: Side) -> Rate | None:
        return self.world if side == "world" else self.training

    @property
    def biased(self) -> bool:
        return self.world != self.training


class PlantedShare(WorldPart):
    """A share of women: one number, or one for the world and one for training."""

    world: Share
    training: Share

    @model_validator(mode="before")
    @classmethod
    def _one_number_for_both(cls, value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {"world": value, "training": value}
        return value

    def side(self, side: Side) -> float:
        return self.world if side == "world" else self.training
