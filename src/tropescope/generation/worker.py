"""Making the images of a plan and committing each one.

An image is committed in this order: file written and synced under its content's name, then one line
in the ledger. Whatever moment the process dies, an item is either wholly there or not at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tropescope.engine.background import Committer
from tropescope.engine.memory import BatchLimit, fitting_calls
from tropescope.engine.progress import Progress
from tropescope.errors import ModelError, PromptError
from tropescope.generation.plan import Plan, PlannedImage, batches
from tropescope.models.protocol import (
    FINAL_OUTCOMES,
    BatchTooLarge,
    Outcome,
    Request,
    TextToImage,
)
from tropescope.prompts.rendering import Prompt
from tropescope.store.folder import RunFolder
from tropescope.store.ledger import Ledger, LedgerIndex, Record

STAGE = "generation"


def committed(folder: RunFolder) -> LedgerIndex:
    """The latest record of every item in the ledger, by key."""
    return LedgerIndex(folder.ledger, STAGE)


def pending(plan: Plan, records: LedgerIndex, folder: RunFolder) -> list[str]:
    """Keys that still need work: never done, failed for a reason that may pass, or lost."""
    done = finished_keys(records, folder)
    return list(dict.fromkeys(image.key for image in plan.images if image.key not in done))


def finished_keys(records: LedgerIndex, folder: RunFolder) -> set[str]:
    """Items with a final outcome whose image, where they have one, is still there."""
    return {
        key
        for key, outcome in records.outcomes.items()
        if outcome in FINAL_OUTCOMES
        and (key not in records.paths or (folder.root / records.paths[key]).exists())
    }


def generate_images(
    plan: Plan,
    models: Mapping[str, TextToImage],
    *,
    batch_sizes: Mapping[str, int],
    folder: RunFolder,
    progress: Progress,
) -> int:
    """Make everything that is pending; return how often memory ran out. Safe to interrupt."""
    records = committed(folder)
    attempts = records.attempts
    done = finished_keys(records, folder)
    halvings = 0
    with Ledger(folder.ledger) as ledger:
        for name, model in models.items():
            images = plan.of_model(name)
            todo = list(
                batches(images, size=batch_sizes[name], done=done, whole=model.batch_matters)
            )
            wanted = {i.key for batch in todo for i in batch if i.key not in done}
            if not wanted:
                continue
            limit = BatchLimit()
            try:
                with progress.stage(f"images from {name}", len(wanted)) as stage:

                    def commit(item: tuple[Request, Outcome, int, float]) -> None:
                        request, outcome, size, seconds = item
                        attempts[request.key] = attempts.get(request.key, 0) + 1
                        record = _record(request, outcome, folder)
                        record.update(
                            attempt=attempts[request.key],
                            batch=size,
                            seconds=round(seconds, 4),
                            time=round(time.time(), 3),
                        )
                        ledger.append([record])
                        stage.advance()

                    with Committer(commit) as committer:
                        for batch in todo:
                            _run_batch(batch, model, limit, wanted, committer.submit)
            finally:
                halvings += limit.halvings
                model.close()
            done |= wanted
    return halvings


def _run_batch(
    batch: Sequence[PlannedImage],
    model: TextToImage,
    limit: BatchLimit,
    wanted: set[str],
    submit: Callable[[tuple[Request, Outcome, int, float]], None],
) -> None:
    """Run one planned batch and hand over what was wanted, each item as soon as it is known.

    A batch that is run again for the sake of its missing items makes the others once more too;
    those are already committed and are dropped here.
    """

    def call(images: Sequence[PlannedImage]) -> None:
        started = time.perf_counter()
        unanswered = {image.key for image in images}
        for request, outcome in model.generate([image.request() for image in images]):
            unanswered.discard(request.key)
            if request.key in wanted:
                seconds = (time.perf_counter() - started) / len(images)
                submit((request, checked(outcome), len(images), seconds))

        if unanswered:
            raise ModelError(
                f"the adapter of '{images[0].model}' did not answer {len(unanswered)} of "
                f"{len(images)} requests",
                fix="report this to the adapter's author; finished images are kept",
            )

    def give_up(image: PlannedImage, error: BatchTooLarge) -> None:
        reason = f"out of memory even for a single image: {error}"
        submit((image.request(), Outcome("failed", reason=reason), 1, 0.0))

    for _ in fitting_calls(batch, call, limit, when_one_is_too_many=give_up):
        pass


def checked(outcome: Outcome) -> Outcome:
    """An image that shows nothing at all is not a picture of anything."""
    if outcome.kind == "generated":
        if outcome.pixels is None:
            return Outcome("invalid", reason="the model returned no image")
        if not outcome.pixels.any():
            return replace(outcome, kind="invalid", reason="the image is entirely black")
    return outcome


def _record(request: Request, outcome: Outcome, folder: RunFolder) -> Record:
    record: Record = {
        "stage": STAGE,
        "key": request.key,
        "outcome": outcome.kind,
        "reason": outcome.reason[:2000],
        "revised_prompt": outcome.revised_prompt[:20_000],
        "facts": dict(outcome.facts),
    }
    if outcome.pixels is not None:
        stored = folder.images.put(outcome.pixels, encoded=outcome.encoded, suffix=outcome.suffix)
        record.update(
            pixels_sha256=stored.pixels_sha256,
            file_sha256=stored.file_sha256,
            path=stored.path,
            width=stored.width,
            height=stored.height,
        )
    return record


def require_prompts(models: Mapping[str, TextToImage], prompts: Sequence[Prompt]) -> list[str]:
    """Refuse prompts that a model cannot take, before any image is made; return warnings."""
    texts = list(dict.fromkeys(prompt.text for prompt in prompts))
    errors: list[str] = []
    warnings: list[str] = []
    for name, model in models.items():
        for problem in model.check_prompts(texts):
            line = f"model '{name}', prompt {problem.prompt[:200]!r}: {problem.message}"
            (errors if problem.level == "error" else warnings).append(line)
    if errors:
        shown = errors[:10] + ([f"… and {len(errors) - 10} more"] if errors[10:] else [])
        raise PromptError("\n".join(shown), fix="change these prompts in the study")
    return warnings
