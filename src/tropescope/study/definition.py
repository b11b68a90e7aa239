"""What is asked: the study as data.

A study file is YAML; these models are its schema. Unknown keys are errors. Nothing here loads a
model or makes an image; see `loading` for reading files and `checking` for rules that span fields.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SerializeAsAny,
    field_validator,
    model_validator,
)

from tropescope.models.entry import ModelEntry

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Estimand = Literal["fixed", "sample"]
Estimator = Literal["mean", "soft", "posterior"]
MeasureName = Literal["attribute_rate", "stereotype_score", "parity_gap"]
ReferenceKind = Literal["census", "survey", "derived", "assumed"]

#: From this many templates on, prompts are taken as a sample of ways to ask unless the study says.
SAMPLE_FROM = 10


class StudyPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Concept(StudyPart):
    """Whom the prompts ask for. `phrase` is what stands in the prompt; it never labels a person."""

    phrase: Annotated[str, Field(min_length=1, max_length=4096)]
    attributes: tuple[str, ...] | None = None
    """Attributes looked for in this concept's images; all attributes of the study by default."""
    covariates: dict[str, float] = {}

    @model_validator(mode="before")
    @classmethod
    def _phrase_alone(cls, value: Any) -> Any:
        return {"phrase": value} if isinstance(value, str) else value


class Attribute(StudyPart):
    """Something a picture can show, as two texts: d+ describes its presence, d− its absence."""

    present: Annotated[str, Field(min_length=1, max_length=4096)]
    absent: Annotated[str, Field(min_length=1, max_length=4096)]

    @model_validator(mode="after")
    def _texts_differ(self) -> Attribute:
        if self.present.strip().casefold() == self.absent.strip().casefold():
            raise ValueError("'present' and 'absent' are the same text, so no image can be judged")
        return self


class Reference(StudyPart):
    """P*: how often the attribute occurs in the world, and how anybody knows."""

    concept: str
    """A concept's name, or '*' for every concept."""
    attribute: str
    value: Share
    low: Share | None = None
    high: Share | None = None
    source: Annotated[str, Field(min_length=1)]
    year: Annotated[int, Field(ge=1800, le=2200)] | None = None
    population: str = ""
    kind: ReferenceKind

    @model_validator(mode="after")
    def _interval_holds_the_value(self) -> Reference:
        if (self.low is None) != (self.high is None):
            raise ValueError("give both 'low' and 'high', or neither")
        low, high = self.low or 0.0, 1.0 if self.high is None else self.high
        if not low <= self.value <= high:
            raise ValueError(f"'value' {self.value} lies outside {low}–{high}")
        return self


def _asks_for_the_concept(template: str) -> str:
    if template.count("{concept}") != 1:
        raise ValueError(f"the template {template!r} must contain '{{concept}}' once")
    rest = template.replace("{concept}", "")
    if "{" in rest or "}" in rest:
        raise ValueError(f"the template {template!r} has braces other than '{{concept}}'")
    return template


Template = Annotated[str, AfterValidator(_asks_for_the_concept)]


class Prompts(StudyPart):
    """How the model is asked. `{concept}` marks where a concept's phrase goes."""

    templates: Annotated[tuple[Template, ...], Field(min_length=1)]
    articles: Literal["corrected", "published"] = "corrected"
    estimand: Estimand | None = None

    @field_validator("templates")
    @classmethod
    def _templates_differ(cls, templates: tuple[str, ...]) -> tuple[str, ...]:
        # Two templates that ask the same would count the same images twice.
        folded = [re.sub(r"\b[Aa]n? \{", "a {", " ".join(t.split())) for t in templates]
        if len(set(folded)) != len(folded):
            raise ValueError("a template stands twice in the list")
        return templates

    @property
    def settled_estimand(self) -> Estimand:
        if self.estimand is not None:
            return self.estimand
        return "fixed" if len(self.templates) < SAMPLE_FROM else "sample"


class ClipJudge(StudyPart):
    """A CLIP or SigLIP model of transformers decides which of the two texts an image is nearer."""

    kind: Literal["clip"]
    id: Annotated[str, Field(min_length=1)]
    revision: str | None = None
    dtype: Literal["float32", "float16", "bfloat16"] | None = None
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 32


class LabelJudge(StudyPart):
    """Reads labels that are known for certain (the reference world, a labelled folder).

    With `sensitivity` or `specificity` below 1 it errs at exactly these rates, reproducibly.
    """

    kind: Literal["labels"]
    sensitivity: Share = 1.0
    specificity: Share = 1.0


Judge = Annotated[ClipJudge | LabelJudge, Field(discriminator="kind")]


class Trace(StudyPart):
    """What to look at inside the models while they paint; needs models of diffusers.

    Tracing changes no image. It costs extra passes through the model: two for each step, image and
    attribute.
    """

    images_per_prompt: Annotated[int, Field(ge=1)] = 4
    """The first so many images of every prompt, rounded up to whole batches."""
    attributes: tuple[str, ...] | None = None
    """Attributes whose SPI is followed; all of the study by default, an empty list for none."""
    show_steps: Annotated[int, Field(ge=0, le=100)] = 6
    """At how many steps the foreseen image is kept as a small picture."""
    words: tuple[Annotated[str, Field(min_length=1)], ...] | Literal["all"] = ()
    """Words or phrases of the prompts whose attention is mapped; prompts without them are not."""
    keep: Literal["reduced", "latents", "everything"] = "reduced"
    """`latents` keeps the latents of every step, `everything` the velocities too (large)."""


class Study(StudyPart):
    """A whole study. `zeta` is the smallest excess over the reference called a stereotype."""

    study: Annotated[str, Field(min_length=1, max_length=300)]
    description: str = ""
    content_note: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    models: Annotated[dict[str, SerializeAsAny[ModelEntry]], Field(min_length=1)]
    concepts: Annotated[dict[str, Concept], Field(min_length=1)]
    prompts: Prompts
    images_per_prompt: Annotated[int, Field(ge=1, le=100_000)]
    attributes: Annotated[dict[str, Attribute], Field(min_length=1)]
    references: tuple[Reference, ...] = ()
    judge: Judge
    measures: Annotated[tuple[MeasureName, ...], Field(min_length=1)] = ("stereotype_score",)
    estimators: Annotated[tuple[Estimator, ...], Field(min_length=1)] = ("mean",)
    zeta: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.10
    level: Annotated[float, Field(gt=0.5, lt=1.0)] = 0.95
    families: Literal["study", "model", "concept"] = "model"
    trace: Trace | None = None

    _folder: Path | None = PrivateAttr(default=None)
    """Where the study's relative paths start, for a study that was read from a file."""

    @field_validator("measures", "estimators")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) != len(names):
            raise ValueError("a name stands twice in the list")
        return names

    def pairs(self) -> list[tuple[str, str]]:
        """Every (concept, attribute) that is measured."""
        return [
            (name, attribute)
            for name, concept in self.concepts.items()
            for attribute in (self.attributes if concept.attributes is None else concept.attributes)
        ]

    def reference(self, concept: str, attribute: str) -> Reference | None:
        """The reference of a pair; one for exactly this concept goes before one for all."""
        general = None
        for reference in self.references:
            if reference.attribute == attribute:
                if reference.concept == concept:
                    return reference
                if reference.concept == "*":
                    general = reference
        return general
