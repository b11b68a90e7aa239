"""The truth about the world, in closed form: what every measure is compared with.

    >>> from tropescope.world.truth import Truth
    >>> round(Truth("training").rate("hat", nation="Kestran"), 3)
    0.8
    >>> round(Truth("world").rate("hat", nation="Kestran"), 3)
    0.2

Over the whole list of templates the planted shifts average out exactly, so a rate without template
is both the rate of an unshifted prompt and the mean over all templates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from tropescope.errors import StudyError
from tropescope.world.definition import World, load_world
from tropescope.world.meaning import GenderWord, Meaning
from tropescope.world.prompt_rates import PromptRates, prompt_rates
from tropescope.world.tables import tables_of

Templates = int | Sequence[int] | None


class Truth:
    """Exact rates of one distribution: `world`, `training`, `faithful`, or with rates replaced."""

    def __init__(
        self,
        distribution: str = "training",
        *,
        rates: Mapping[str, Any] | None = None,
        world: World | None = None,
    ) -> None:
        known = load_world() if world is None else world
        self.world = known.with_rates(rates) if rates else known
        self.tables = tables_of(self.world, distribution)
        self._rates = lru_cache(maxsize=4096)(lambda meaning: prompt_rates(self.tables, meaning))

    def of(self, meaning: Meaning) -> PromptRates:
        """Everything about one prompt."""
        found: PromptRates = self._rates(meaning)
        return found

    def rate(
        self,
        attribute: str,
        *,
        nation: str | None = None,
        profession: str | None = None,
        gender: GenderWord = "person",
        place: str | None = None,
        template: Templates = None,
    ) -> float:
        """How often drawings show an attribute (or object, or `woman`).

        `template` is one index, or several to average over.
        """
        self._known(attribute, self.world.visible)
        meaning = Meaning(nation=nation, profession=profession, gender=gender, place=place)
        return self._mean(meaning, template, lambda found: found.rate(attribute))

    def share_of_women(
        self,
        *,
        nation: str | None = None,
        profession: str | None = None,
        gender: GenderWord = "person",
        template: Templates = None,
    ) -> float:
        """How many drawings look like a woman."""
        meaning = Meaning(nation=nation, profession=profession, gender=gender)
        return self._mean(meaning, template, lambda found: found.share)

    def object_rate(self, name: str, meaning: Meaning | None = None) -> float:
        """How often the object stands beside the person."""
        self._known(name, self.world.objects)
        return self.of(meaning or Meaning()).rate(name)

    def object_bias_score(self, name: str, meaning: Meaning | None = None) -> float:
        """BS(o) in expectation: its count beside men over its count beside men and women."""
        self._known(name, self.world.objects)
        asked = meaning or Meaning()
        men = self.of(replace(asked, gender="man")).object_count(name)
        women = self.of(replace(asked, gender="woman")).object_count(name)
        return men / (men + women)

    def prompt_rate(self, meanings: Sequence[Meaning], attribute: str) -> float:
        """The mean rate over prompts, each with the same number of images."""
        self._known(attribute, self.world.visible)
        return float(np.mean([self.of(meaning).rate(attribute) for meaning in meanings]))

    def within_prompt_correlation(
        self,
        attribute: str,
        meaning: Meaning | None = None,
        *,
        templates: Sequence[int] | None = None,
    ) -> float:
        """ICC: variance between templates over the whole variance, templates equally often."""
        asked = meaning or Meaning()
        every = range(len(self.world.templates.list)) if templates is None else templates
        rates = np.array([self.of(replace(asked, template=t)).rate(attribute) for t in every])
        mean = float(rates.mean())
        return float(rates.var()) / (mean * (1 - mean)) if 0 < mean < 1 else 0.0

    def best_judge(self, attribute: str) -> tuple[float, float]:
        """Sensitivity and specificity of the best possible judge of single pictures.

        For easy attributes (1, 1). For the two hard ones a judge can only say "present" where it
        sees a clear mark: faint traces are more common among those without the attribute.
        """
        self._known(attribute, self.world.attributes)
        look = self.world.hard_to_see.get(attribute)
        return (1.0, 1.0) if look is None else (1 - look.present_faint, 1 - look.absent_clear)

    def _mean(
        self, meaning: Meaning, template: Templates, read: Callable[[PromptRates], float]
    ) -> float:
        indices = [template] if template is None or isinstance(template, int) else list(template)
        if not indices:
            raise StudyError("an average over no templates is not defined")
        values = [read(self.of(replace(meaning, template=index))) for index in indices]
        return float(np.mean(values))

    @staticmethod
    def _known(name: str, known: Collection[str]) -> None:
        if name not in known:
            raise StudyError(f"the world has no '{name}'", fix=f"known: {', '.join(known)}")
