"""The hooks around one call of a pipeline, and which call belongs to which sampler step.

The denoiser's forward hook sees the model's output; the wrapper around `scheduler.step` sees what
the sampler makes of it: x_t before any scaling, and the prediction after guidance of whatever kind.
Between two calls of `step` the first prediction is the prompt's; a second one (the negative prompt
of FLUX with true guidance, layer-skipping guidance of SD3) only enters through the guided one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from tropescope.errors import ModelError
from tropescope.models.tracing.directions import Directions
from tropescope.models.tracing.families import Inputs, family_of
from tropescope.models.tracing.heat import WordHeat
from tropescope.models.tracing.latent_paths import LatentPath
from tropescope.models.tracing.noise_levels import NoiseLevel, read_schedule
from tropescope.models.tracing.request import TraceRequest
from tropescope.models.tracing.result import ImageTrace, TraceFacts, TraceResult
from tropescope.models.tracing.step import Step
from tropescope.models.tracing.thumbnails import Foreseen


@contextmanager
def trace(pipeline: Any, request: TraceRequest) -> Iterator[Tracer]:
    """Trace the one call of `pipeline` made inside; afterwards the pipeline is as it was.

    The result is ready when the block is left. An error inside leaves the pipeline restored and
    the trace without a result.
    """
    tracer = Tracer(pipeline, request)
    with ExitStack() as stack:
        tracer._attach(stack)
        yield tracer
    tracer._finish()


class Tracer:
    def __init__(self, pipeline: Any, request: TraceRequest) -> None:
        self.request = request
        self._pipeline = pipeline
        self._family = family_of(pipeline)
        self._denoiser = self._family.denoiser(pipeline)
        self._schedule = read_schedule(pipeline.scheduler)
        self._directions = self._make_directions()
        self._path = LatentPath(request) if LatentPath.wanted(request) else None
        self._foreseen = (
            Foreseen(request.steps_to_show, request.thumbnail_side)
            if request.steps_to_show
            else None
        )
        self._heat = (
            WordHeat(pipeline, self._family, request.words, map_side=request.map_side)
            if request.words
            else None
        )
        self._unseen = False
        self._inputs: Inputs | None = None
        self._output: Any = None
        self._latents: Any = None
        self._levels: list[tuple[float, NoiseLevel]] = []
        self._images = 0
        self._size = (0, 0)
        self._guided = False
        self._result: TraceResult | None = None

    def result(self) -> TraceResult:
        if self._result is None:
            raise ModelError(
                "the trace has no result",
                fix="call the pipeline once inside `with trace(...)`, and ask for it afterwards",
            )
        return self._result

    def _make_directions(self) -> Directions | None:
        if not self.request.attributes:
            return None
        return Directions(
            self._pipeline,
            self._family,
            self.request.attributes,
            extra_batch=self.request.extra_batch,
            keep_velocities=self.request.raw_velocities,
        )

    # -- hooks ---------------------------------------------------------------------------------

    def _attach(self, stack: ExitStack) -> None:
        before = self._denoiser.register_forward_pre_hook(self._before_call, with_kwargs=True)
        stack.callback(before.remove)
        after = self._denoiser.register_forward_hook(self._after_call, always_call=True)
        stack.callback(after.remove)
        _wrap(stack, self._schedule.scheduler, "step", self._around_step)
        if self._heat is not None:
            _wrap(stack, self._pipeline, "encode_prompt", self._around_encode)
            self._heat.attach(stack)

    def _before_call(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._unseen or self._inputs is not None or self._schedule.is_corrector():
            return
        if len(self._levels) >= self._schedule.steps():
            raise ModelError(
                "a trace covers one call of the pipeline", fix="open a new trace for each call"
            )
        inputs = self._family.inputs(args, kwargs)
        if inputs.get("encoder_hidden_states") is None:
            raise ModelError("the denoiser is called without a text condition")
        self._family.refuse_image_prompts(inputs)
        self._inputs = inputs
        if self._heat is not None:
            rows = int(inputs[self._family.latent_input].shape[0])
            both = self._family.guided_in_one_batch(self._pipeline)
            self._heat.begin_call(inputs, rows // 2 if both else rows)

    def _after_call(self, module: Any, args: tuple[Any, ...], output: Any) -> None:
        if self._heat is not None:
            self._heat.end_call()
        if self._unseen or self._inputs is None or self._output is not None or output is None:
            return
        self._output = output[0] if isinstance(output, tuple) else output.sample

    def _around_encode(self, original: Any, args: Any, kwargs: Any) -> Any:
        """Remember the prompts of the first encoding; later ones are negatives or attributes."""
        if self._heat is not None and not self._unseen and not self._heat.knows_prompts:
            given = inspect.signature(original).bind(*args, **kwargs).arguments
            prompts = given.get("prompt")
            for name in ("prompt_2", "prompt_3"):
                if given.get(name) not in (None, prompts):
                    raise ModelError(
                        f"words cannot be traced when `{name}` differs from `prompt`",
                        fix=f"leave out `{name}`",
                    )
            if prompts is not None:
                several = [prompts] if isinstance(prompts, str) else list(prompts)
                self._heat.read_prompts(several, given.get("num_images_per_prompt", 1) or 1)
        return original(*args, **kwargs)

    def _around_step(self, original: Any, args: Any, kwargs: Any) -> Any:
        given = inspect.signature(original).bind(*args, **kwargs).arguments
        if not self._schedule.is_corrector():
            self._take_step(given["model_output"], given["timestep"], given["sample"])
        self._inputs = self._output = None
        stepped = original(*args, **kwargs)
        self._latents = stepped[0] if isinstance(stepped, tuple) else stepped.prev_sample
        return stepped

    # -- steps ---------------------------------------------------------------------------------

    def _take_step(self, guided: Any, timestep: Any, sample: Any) -> None:
        inputs, output = self._inputs, self._output
        if inputs is None or output is None:
            raise ModelError("the sampler stepped without a call of the denoiser")
        images = int(sample.shape[0])
        if output.shape[1:] != sample.shape[1:] or guided.shape != sample.shape:
            raise ModelError("a denoiser that predicts its own variance cannot be traced")
        both = self._family.guided_in_one_batch(self._pipeline)
        if output.shape[0] != (2 * images if both else images):
            raise ModelError(
                f"the denoiser was called with {output.shape[0]} rows for {images} images, so the "
                "conditional ones are not known"
            )
        level = self._schedule.level(timestep)
        conditional = output[-images:]
        if not self._levels:
            self._images = images
            self._size = self._family.latent_size(inputs)
            if self._foreseen is not None:
                self._foreseen.begin(self._schedule.steps())
        self._guided = self._guided or not bool((conditional == guided).all())
        step = Step(
            index=len(self._levels),
            level=level,
            timestep=float(timestep),
            sample=sample.float(),
            conditional=conditional.float(),
            guided=guided.float(),
            inputs=inputs,
            predict=self._predict,
        )
        for part in (self._path, self._foreseen, self._directions):
            if part is not None:
                part.on_step(step)
        if self._heat is not None:
            self._heat.steps += 1
        self._levels.append((step.timestep, level))

    def _predict(self, inputs: Inputs) -> Any:
        """One more prediction, unseen by hooks and taps."""
        self._unseen = True
        try:
            return self._denoiser(**{**inputs, "return_dict": False})[0]
        finally:
            self._unseen = False

    # -- result --------------------------------------------------------------------------------

    def _finish(self) -> None:
        if not self._levels:
            return
        if self._path is not None:
            self._path.on_latents(self._latents, len(self._levels))
        if self._foreseen is not None:
            self._foreseen.finish(self._pipeline, self._family, self._size)
        if self._heat is not None:
            self._heat.finish()
        facts = TraceFacts(
            pipeline=type(self._pipeline).__name__,
            family=self._family.name,
            scheduler=self._schedule.name,
            space=self._schedule.space,
            prediction=self._schedule.prediction,
            guided=self._guided,
            attributes=tuple(attribute.name for attribute in self.request.attributes),
            attention_layers=self._heat.layers if self._heat is not None else 0,
        )
        images = tuple(self._of_image(image, facts) for image in range(self._images))
        self._result = TraceResult(facts, images)

    def _of_image(self, image: int, facts: TraceFacts) -> ImageTrace:
        found: dict[str, Any] = {}
        for part in (self._path, self._foreseen, self._directions):
            if part is not None:
                found.update(part.of_image(image))
        return ImageTrace(
            facts=facts,
            timesteps=np.array([timestep for timestep, _ in self._levels]),
            alpha=np.array([level.alpha for _, level in self._levels]),
            sigma=np.array([level.sigma for _, level in self._levels]),
            words=self._heat.of_image(image) if self._heat is not None else (),
            **found,
        )


def _wrap(stack: ExitStack, owner: Any, name: str, around: Any) -> None:
    """Put `around` in front of a method of one object; undone when the stack closes."""
    original = getattr(owner, name)
    before = vars(owner).get(name)

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return around(original, args, kwargs)

    def undo() -> None:
        if before is None:
            vars(owner).pop(name, None)
        else:
            vars(owner)[name] = before

    vars(owner)[name] = wrapper
    stack.callback(undo)
