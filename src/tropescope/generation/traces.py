"""Tracing the images of a plan: what went on inside the model while it painted them.

A stage of its own after the images are made. Each traced batch is the planned batch of the image
stage run once more, whole, so its images must come out the same to the bit; where one does not (its
batch was made smaller at the time, or on another machine), the ledger says so. A trace is one small
file, named by what decides it, and committed like an image: file first, then its ledger line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tropescope.engine.memory import BatchLimit, fitting_calls
from tropescope.engine.progress import Progress
from tropescope.errors import ModelError, PromptError
from tropescope.generation.plan import Plan, PlannedImage, batches
from tropescope.models.protocol import BatchTooLarge, Outcome, Request, TextToImage
from tropescope.store.atomic import write_atomically
from tropescope.store.canonical import digest
from tropescope.store.folder import RunFolder
from tropescope.store.images import pixels_hash
from tropescope.store.ledger import Ledger, LedgerIndex, Record
from tropescope.study.definition import Attribute, Trace

if TYPE_CHECKING:
    from tropescope.models.tracing import ImageTrace, TraceRequest

STAGE = "tracing"


@runtime_checkable
class CanTrace(Protocol):
    """A model into which one can look while it paints."""

    def trace(
        self, requests: Sequence[Request], wanted: TraceRequest
    ) -> Iterator[tuple[Request, Outcome, ImageTrace]]: ...

    def steps(self) -> int: ...


@dataclass(frozen=True, slots=True)
class TracedImage:
    """One image to trace; `key` names the trace, `image.key` the image."""

    key: str
    image: PlannedImage


@dataclass(frozen=True, slots=True)
class TracePlan:
    """All traces of a study, in the plan's order, by planned batch."""

    settings: Trace
    attributes: Mapping[str, Attribute]
    batches: tuple[tuple[TracedImage, ...], ...]

    @property
    def images(self) -> list[TracedImage]:
        return [image for batch in self.batches for image in batch]


def plan_traces(
    settings: Trace,
    attributes: Mapping[str, Attribute],
    plan: Plan,
    models: Mapping[str, TextToImage],
    *,
    batch_sizes: Mapping[str, int],
) -> TracePlan:
    """The planned batches that hold one of the first images of a prompt."""
    followed = attributes if settings.attributes is None else settings.attributes
    chosen = {name: attributes[name] for name in followed}
    what = {
        "show_steps": settings.show_steps,
        "words": settings.words,
        "keep": settings.keep,
        "attributes": [[name, a.present, a.absent] for name, a in chosen.items()],
    }
    planned = [
        tuple(TracedImage(digest([image.key, what])[:32], image) for image in batch)
        for name, model in models.items()
        if isinstance(model, CanTrace)
        for batch in batches(plan.of_model(name), size=batch_sizes[name], done=set(), whole=True)
        if any(image.replicate < settings.images_per_prompt for image in batch)
    ]
    return TracePlan(settings, chosen, tuple(planned))


def traced(folder: RunFolder) -> LedgerIndex:
    return LedgerIndex(folder.ledger, STAGE)


def trace_images(
    plan: TracePlan,
    models: Mapping[str, TextToImage],
    *,
    folder: RunFolder,
    progress: Progress,
) -> None:
    """Make every trace that is not there yet. Safe to interrupt."""
    done = set(traced(folder))
    todo = [batch for batch in plan.batches if any(item.key not in done for item in batch)]
    if not todo:
        return
    with (
        Ledger(folder.ledger) as ledger,
        progress.stage("looking inside", sum(map(len, todo))) as stage,
    ):
        limit = BatchLimit()
        for batch in todo:
            model = models[batch[0].image.model]
            assert isinstance(model, CanTrace)
            wanted = trace_request(plan, batch[0].image.prompt.text, model.steps())

            def call(
                items: Sequence[TracedImage],
                model: CanTrace = model,
                wanted: TraceRequest = wanted,
            ) -> list[tuple[Request, Outcome, ImageTrace]]:
                return list(model.trace([item.image.request() for item in items], wanted))

            for part, results in fitting_calls(batch, call, limit, when_one_is_too_many=_give_up):
                records = [
                    _commit(item, outcome, trace, folder)
                    for item, (_, outcome, trace) in zip(part, results, strict=True)
                    if item.key not in done
                ]
                ledger.append(records)
                stage.advance(len(part))
        for model in models.values():
            model.close()


def _give_up(item: TracedImage, error: BatchTooLarge) -> list[tuple[Request, Outcome, ImageTrace]]:
    raise ModelError(
        f"tracing '{item.image.model}' does not fit into memory even for one image: {error}",
        fix="follow fewer attributes in `trace:`, or use a device with more memory",
    )


def _commit(item: TracedImage, outcome: Outcome, trace: ImageTrace, folder: RunFolder) -> Record:
    files = {".npz": trace.reduced(), ".safetensors": trace.raw()}
    stored = {}
    for suffix, content in files.items():
        if content is not None:
            name = f"traces/{item.key[:2]}/{item.key}{suffix}"
            write_atomically(folder.root / name, content)
            stored[name] = hashlib.sha256(content).hexdigest()
    return {
        "stage": STAGE,
        "key": item.key,
        "image": item.image.key,
        "outcome": outcome.kind,
        "attempt": 1,
        "pixels_sha256": None if outcome.pixels is None else pixels_hash(outcome.pixels),
        "files": stored,
    }


def trace_request(plan: TracePlan, prompt: str, steps: int) -> TraceRequest:
    """What to trace for one prompt: words that do not stand in it are left out."""
    from tropescope.models.tracing import AttributeTexts, TraceRequest

    settings = plan.settings
    count = min(settings.show_steps, steps)
    shown = sorted({round(i * (steps - 1) / max(count - 1, 1)) for i in range(count)})
    words = settings.words
    if words != "all":
        words = tuple(word for word in words if _stands_in(word, prompt))
    return TraceRequest(
        attributes=tuple(
            AttributeTexts(name, a.present, a.absent) for name, a in plan.attributes.items()
        ),
        steps_to_show=tuple(shown),
        words=words,
        latents="none" if settings.keep == "reduced" else "float16",
        raw_velocities=settings.keep == "everything",
    )


def _stands_in(word: str, prompt: str) -> bool:
    from tropescope.models.tracing.words import find_words

    try:
        return bool(find_words(prompt, (word,)))
    except PromptError:
        return False
