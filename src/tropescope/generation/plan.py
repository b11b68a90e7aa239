"""Which images a study needs, each with the key that names it everywhere.

A key is a hash of everything that decides an image: what the adapter says of itself (weights by
commit or content, settings), the prompt, and the seed. Equal keys are one image, made once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tropescope.errors import StudyError
from tropescope.generation.seeds import image_seed
from tropescope.models.protocol import Request, TextToImage
from tropescope.prompts.rendering import Prompt
from tropescope.store.canonical import digest, digest_lines


@runtime_checkable
class SuppliesImages(Protocol):
    """A model whose images exist already (a folder): it says which it has for a prompt."""

    def sources(self, prompt: str, concept: str) -> list[str]:
        """A fingerprint of each available image, in order."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedImage:
    key: str
    model: str
    prompt: Prompt
    replicate: int
    seed: int

    def request(self) -> Request:
        details = {"concept": self.prompt.concept, "replicate": self.replicate}
        return Request(prompt=self.prompt.text, seed=self.seed, key=self.key, details=details)


@dataclass(frozen=True, slots=True)
class Plan:
    """All images of a study in their final order: model, concept, template, replicate."""

    images: tuple[PlannedImage, ...]

    def fingerprint(self) -> str:
        return digest_lines(f"{i.model}\0{i.prompt}\0{i.replicate}\0{i.key}" for i in self.images)

    def of_model(self, model: str) -> list[PlannedImage]:
        return [image for image in self.images if image.model == model]


def plan_images(
    models: Mapping[str, TextToImage],
    prompts: Sequence[Prompt],
    *,
    images_per_prompt: int,
    seed: int,
    limit: int | None = None,
) -> Plan:
    """The plan of a study. `limit` keeps about that many images per model, spread over prompts."""
    per_prompt = images_per_prompt
    if limit is not None:
        if limit < 1:
            raise StudyError("--limit must be at least 1")
        prompts = _spread(prompts, limit)
        per_prompt = min(per_prompt, max(1, limit // len(prompts)))
    images = [
        image
        for name, model in models.items()
        for prompt in prompts
        for image in _images_of(name, model, prompt, per_prompt, seed)
    ]
    return Plan(tuple(images))


def _spread(prompts: Sequence[Prompt], limit: int) -> Sequence[Prompt]:
    """At most `limit` prompts, evenly over the list so that every concept has a chance."""
    if len(prompts) <= limit:
        return prompts
    return [prompts[i * len(prompts) // limit] for i in range(limit)]


def _images_of(
    name: str, model: TextToImage, prompt: Prompt, count: int, study_seed: int
) -> Iterator[PlannedImage]:
    identity = model.identity()
    sources: list[str] | None = None
    if isinstance(model, SuppliesImages):
        sources = model.sources(prompt.text, prompt.concept)[:count]
        count = len(sources)
    for replicate in range(count):
        seed = image_seed(study_seed, prompt.pair_group, replicate)
        parts = {"model": identity, "prompt": prompt.text, "seed": seed}
        if sources is not None:
            parts = {"model": identity, "source": sources[replicate]}
        yield PlannedImage(digest(parts)[:32], name, prompt, replicate, seed)


def batches(
    images: Sequence[PlannedImage], *, size: int, done: set[str], whole: bool
) -> Iterator[list[PlannedImage]]:
    """The batches still to run.

    Membership is fixed by the plan: consecutive images of one prompt. Where the images of a batch
    touch one another's rounding (`whole`), a batch with anything missing is run again whole, so
    that an interrupted run gives the same bytes as an uninterrupted one.
    """
    batch: list[PlannedImage] = []
    seen: set[str] = set()

    def missing(members: list[PlannedImage]) -> list[PlannedImage]:
        if whole:
            return members if any(m.key not in done for m in members) else []
        return [m for m in members if m.key not in done]

    for image in images:
        if image.key in seen:
            continue
        seen.add(image.key)
        if batch and (len(batch) == size or (whole and batch[-1].prompt != image.prompt)):
            if todo := missing(batch):
                yield todo
            batch = []
        batch.append(image)
    if batch and (todo := missing(batch)):
        yield todo
