"""The part of a study that names one audited model, and how an adapter is made from it.

Every adapter, built in or from another package, is a `ModelPlugin` behind an entry point of the
group ``tropescope.models``. The plug-in's module must be light: torch and friends are imported only
when weights are loaded.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tropescope.errors import StudyError
from tropescope.models.fingerprints import FileFingerprints
from tropescope.models.protocol import TextToImage

GROUP = "tropescope.models"


class ModelEntry(BaseModel):
    """What all audited models share. Each adapter adds its own settings in a subclass."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    adapter: str
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 4


@dataclass(frozen=True, slots=True)
class OpenContext:
    """What an adapter may use of its surroundings. Nothing is downloaded when `offline`."""

    fingerprints: FileFingerprints
    folder: Path
    """Where relative paths of the study start: the folder of the study file."""
    offline: bool = False
    device: str = "auto"


@dataclass(frozen=True, slots=True)
class ModelPlugin:
    entry: type[ModelEntry]
    open: Callable[[Any, OpenContext], TextToImage]


@cache
def installed_adapters() -> dict[str, Any]:
    return {point.name: point for point in entry_points(group=GROUP)}


def plugin(adapter: str) -> ModelPlugin:
    """The plug-in of that name; an unknown name is answered with the nearest known one."""
    known = installed_adapters()
    if adapter not in known:
        near = difflib.get_close_matches(adapter, known, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise StudyError(
            f"unknown adapter '{adapter}'", fix=f"{hint}known adapters: {', '.join(sorted(known))}"
        )
    loaded = known[adapter].load()
    if not isinstance(loaded, ModelPlugin):
        raise StudyError(
            f"the plug-in '{adapter}' does not provide a ModelPlugin",
            fix="ask its author to run the conformance checks, or uninstall it",
        )
    return loaded


def open_model(entry: ModelEntry, context: OpenContext) -> TextToImage:
    return plugin(entry.adapter).open(entry, context)
