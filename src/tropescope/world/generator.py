"""The perfect generator: draws exactly the distribution that was planted, and knows it.

A text-to-image adapter without weights and without torch. Every image comes with its scene and
labels as facts, so that measures can be compared with the truth. It can be told to misbehave.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import PromptError, StudyError
from tropescope.models.protocol import Outcome, PromptProblem, Request
from tropescope.world.atlas import load_atlas
from tropescope.world.definition import World, load_world
from tropescope.world.meaning import Meaning
from tropescope.world.misbehaviour import Misbehaviour
from tropescope.world.prompt_rates import prompt_rates
from tropescope.world.render import render
from tropescope.world.sampling import draw_scenes
from tropescope.world.scene import Scenes, labels_of
from tropescope.world.truth import Truth
from tropescope.world.understanding import Understanding

#: Part of the identity: raised whenever the same request would give another picture.
DRAWING_VERSION = 2

#: The one picture that a collapsed model repeats.
_REPEATED_SEED = 0


class WorldGenerator:
    """Answers prompts from `world`, `training` or `faithful`, or with some rates replaced."""

    batch_matters = False

    def __init__(
        self,
        *,
        distribution: str = "training",
        rates: Mapping[str, Any] | None = None,
        misbehave: Mapping[str, Any] | None = None,
        size: int = 64,
        world: World | None = None,
    ) -> None:
        drawn = load_atlas().size
        if size < drawn or size % drawn:
            raise StudyError(
                f"the reference world is drawn at {drawn} pixels; size {size} is not a multiple",
                fix=f"use {drawn}, {2 * drawn}, {4 * drawn} or {8 * drawn}",
            )
        self.truth = Truth(
            distribution, rates=rates, world=load_world() if world is None else world
        )
        self.world = self.truth.world
        self.understand = Understanding(self.world)
        self.misbehaviour = Misbehaviour.read(self.world, misbehave)
        self._distribution = distribution
        self._scale = size // drawn

    def identity(self) -> dict[str, Any]:
        """Two generators with equal identities draw equal pictures."""
        faults = self.misbehaviour.faults
        return {
            "adapter": "world",
            "drawing": DRAWING_VERSION,
            "distribution": self._distribution,
            "misbehave": {name: faults[name].model_dump() for name in sorted(faults)},
            "size": self._scale * load_atlas().size,
            "world": self.world.digest,
            "atlas": load_atlas().digest,
        }

    def check_prompts(self, prompts: Sequence[str]) -> list[PromptProblem]:
        """Unknown words, and demands that no drawing can meet."""
        problems = []
        for prompt in prompts:
            try:
                prompt_rates(self.truth.tables, self.understand(prompt))
            except PromptError as error:
                problems.append(PromptProblem(prompt=prompt, level="error", message=str(error)))
        return problems

    def planted_rate(self, prompt: str, attribute: str) -> float | None:
        """How often drawings for the prompt show the attribute; None for unknown attributes."""
        if attribute not in self.world.visible:
            return None
        return self.truth.of(self.understand(prompt)).rate(attribute)

    def generate(self, requests: Sequence[Request]) -> Iterator[tuple[Request, Outcome]]:
        """Draw prompt by prompt; a prompt that is not understood is an invalid outcome."""
        by_prompt: dict[str, list[Request]] = {}
        for request in requests:
            by_prompt.setdefault(request.prompt, []).append(request)
        for prompt, asked in by_prompt.items():
            try:
                meaning = self.understand(prompt)
                outcomes = self._outcomes(meaning, [request.seed for request in asked])
            except PromptError as error:
                outcomes = [Outcome(kind="invalid", reason=str(error))] * len(asked)
            yield from zip(asked, outcomes, strict=True)

    def _outcomes(self, meaning: Meaning, seeds: list[int]) -> list[Outcome]:
        deeds = self.misbehaviour.deeds(meaning, np.asarray(seeds, dtype=np.int64))
        drawn = [
            _REPEATED_SEED if deed == "repeat" else seed
            for seed, deed in zip(seeds, deeds, strict=True)
        ]
        scenes = draw_scenes(self.truth.tables, meaning, drawn)
        pictures = self._enlarged(render(scenes))
        facts = facts_of(scenes)
        outcomes = []
        for index, deed in enumerate(deeds):
            if deed == "refuse":
                outcomes.append(Outcome(kind="refused", reason="told to refuse"))
            elif deed == "fail":
                outcomes.append(Outcome(kind="failed", reason="told to fail"))
            elif deed == "black":
                outcomes.append(Outcome(kind="generated", pixels=np.zeros_like(pictures[index])))
            else:
                outcomes.append(
                    Outcome(kind="generated", pixels=pictures[index], facts=facts[index])
                )
        return outcomes

    def _enlarged(self, pictures: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if self._scale == 1:
            return pictures
        return pictures.repeat(self._scale, axis=1).repeat(self._scale, axis=2)

    def facts(self) -> dict[str, Any]:
        return {"device": "cpu", "numpy": np.__version__, "python": platform.python_version()}

    def close(self) -> None:
        """Nothing is held."""


def facts_of(scenes: Scenes) -> list[dict[str, Any]]:
    """What is known for certain about each picture, as plain data."""
    labels = labels_of(scenes)
    return [
        {"scene": scenes.scene(index).to_json(), "labels": labels[index]}
        for index in range(len(scenes))
    ]
