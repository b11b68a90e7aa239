"""Any text-to-image pipeline of diffusers: Stable Diffusion 1, 2, XL, 3, FLUX and their kin."""

from __future__ import annotations

import difflib
import gc
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import MissingDependency, ModelError, TropescopeError
from tropescope.models.diffusers_entry import DiffusersEntry
from tropescope.models.entry import OpenContext
from tropescope.models.protocol import BatchTooLarge, Outcome, PromptProblem, Request
from tropescope.models.tokens import check_tokens
from tropescope.models.torch_device import (
    import_torch,
    is_out_of_memory,
    machine_facts,
    pick_device,
    quiet_libraries,
    torch_dtype,
)
from tropescope.models.weights import (
    Weights,
    explain_hub_error,
    locate,
    read_json,
    refuse_pickles,
    small_files,
)

if TYPE_CHECKING:
    from tropescope.models.tracing import ImageTrace, TraceRequest

_LIBRARIES = ("diffusers", "transformers", "stable_diffusion")


def import_diffusers() -> Any:
    import_torch()
    quiet_libraries()
    try:
        import diffusers
    except ImportError:
        raise MissingDependency("diffusers", extra="models") from None
    return diffusers


class DiffusersModel:
    """One pipeline with fixed settings. Noise comes from one CPU generator per image."""

    batch_matters = True

    def __init__(self, entry: DiffusersEntry, context: OpenContext) -> None:
        self.entry = entry
        self._context = context
        self._weights: Weights | None = None
        self._folder: Path | None = None
        self._pipeline: Any = None
        self._facts: dict[str, Any] = {}

    @property
    def weights(self) -> Weights:
        if self._weights is None:
            self._weights = locate(self.entry.id, self.entry.revision, self._context)
        return self._weights

    def identity(self) -> dict[str, Any]:
        settings = self.entry.model_dump(exclude={"adapter", "id", "revision", "batch_size"})
        return {"adapter": "diffusers", "weights": self.weights.identity, **settings}

    def facts(self) -> dict[str, Any]:
        return {"id": self.entry.id, **self.weights.identity, **self._facts}

    # -- before any image ----------------------------------------------------------------------

    def folder(self) -> Path:
        """The local folder of the pipeline; downloads a hub model unless offline."""
        if self._folder is None:
            if self.weights.folder is not None:
                self._folder = self.weights.folder
            else:
                diffusers = import_diffusers()
                try:
                    path = diffusers.DiffusionPipeline.download(
                        self.entry.id,
                        revision=self.weights.commit,
                        variant=self.entry.variant,
                        use_safetensors=True,
                        local_files_only=self._context.offline,
                        **dict.fromkeys(self.entry.without),
                    )
                except Exception as error:
                    raise explain_hub_error(self.entry.id, error) from error
                self._folder = Path(path)
                refuse_pickles(self._folder)
        return self._folder

    def _small_files(self) -> Path:
        """The folder with everything but the weights, for checks before any work."""
        return self._folder or self.weights.folder or small_files(self.weights, self._context)

    def pipeline_class(self) -> Any:
        """The pipeline class named in model_index.json; only diffusers' own are accepted."""
        index = read_json(self._small_files() / "model_index.json")
        name = index.get("_class_name")
        diffusers = import_diffusers()
        found = getattr(diffusers, name, None) if isinstance(name, str) else None
        if not (isinstance(found, type) and issubclass(found, diffusers.DiffusionPipeline)):
            raise ModelError(
                f"'{self.entry.id}' asks for the pipeline class {name!r}, which diffusers "
                f"{diffusers.__version__} does not have; code from a repository is never run",
                fix="use a model in a standard diffusers format, or a newer diffusers",
            )
        for component, value in index.items():
            if isinstance(value, list) and value[0] is not None and value[0] not in _LIBRARIES:
                raise ModelError(
                    f"component '{component}' of '{self.entry.id}' comes from '{value[0]}'; only "
                    "classes of diffusers and transformers are loaded",
                    fix="use a model in a standard diffusers format",
                )
        return found

    def absent_components(self) -> list[str]:
        """Components to pass as None: null in model_index.json, or left out by the study."""
        index = read_json(self._small_files() / "model_index.json")
        null = [n for n, v in index.items() if isinstance(v, list) and v[0] is None]
        for name in self.entry.without:
            if name not in index:
                near = difflib.get_close_matches(name, index, n=1)
                hint = f", did you mean '{near[0]}'?" if near else ""
                raise ModelError(f"'{self.entry.id}' has no component '{name}'{hint}")
        return list(dict.fromkeys([*null, *self.entry.without]))

    def call_arguments(self) -> dict[str, Any]:
        """The keyword arguments of every call, checked against the pipeline's signature."""
        entry = self.entry
        arguments: dict[str, Any] = dict(entry.call)
        named = {
            "num_inference_steps": entry.steps,
            "guidance_scale": entry.guidance,
            "negative_prompt": entry.negative_prompt,
            "height": entry.height,
            "width": entry.width,
        }
        arguments.update({name: value for name, value in named.items() if value is not None})
        pipeline_class = self.pipeline_class()
        accepted = inspect.signature(pipeline_class.__call__).parameters
        for name in (*arguments, "prompt", "generator", "output_type"):
            if name not in accepted:
                near = difflib.get_close_matches(name, accepted, n=1)
                hint = f"did you mean '{near[0]}'?" if near else "remove it from the study"
                raise ModelError(f"{pipeline_class.__name__} takes no argument '{name}'", fix=hint)
        return arguments

    def check_prompts(self, prompts: Sequence[str]) -> list[PromptProblem]:
        """Tokenise every prompt with every text encoder's tokenizer; no weights are loaded."""
        self.call_arguments()
        self._scheduler_class()
        torch_dtype(self.entry.dtype, pick_device(self._context.device))
        absent = self.absent_components()
        signature = inspect.signature(self.pipeline_class().__call__).parameters
        longest = self.entry.call.get("max_sequence_length")
        if longest is None and "max_sequence_length" in signature:
            longest = signature["max_sequence_length"].default
        tokenizers = {
            path.name: path
            for path in sorted(self._small_files().glob("tokenizer*"))
            if path.is_dir() and path.name not in absent
        }
        texts = list(prompts)
        if self.entry.negative_prompt:
            texts.append(self.entry.negative_prompt)
        return check_tokens(texts, tokenizers, long_text_limit=longest or 10**9)

    # -- images --------------------------------------------------------------------------------

    def pipeline(self) -> Any:
        """The loaded pipeline."""
        if self._pipeline is not None:
            return self._pipeline
        diffusers = import_diffusers()
        device = pick_device(self._context.device)
        try:
            pipeline = (
                self.pipeline_class()
                .from_pretrained(
                    self.folder(),
                    dtype=torch_dtype(self.entry.dtype, device),
                    variant=self.entry.variant,
                    use_safetensors=True,
                    local_files_only=True,
                    low_cpu_mem_usage=True,
                    **dict.fromkeys(self.absent_components()),
                )
                .to(device)
            )
        except Exception as error:
            raise ModelError(
                f"'{self.entry.id}' could not be loaded: {str(error).strip()[:500]}",
                fix="check that the folder is complete and holds safetensors weights",
            ) from error
        if (scheduler := self._scheduler_class()) is not None:
            pipeline.scheduler = scheduler.from_config(pipeline.scheduler.config)
        pipeline.set_progress_bar_config(disable=True)
        self._pipeline = pipeline
        self._facts = {
            **machine_facts(device),
            "diffusers": diffusers.__version__,
            "dtype": self.entry.dtype,
            "pipeline": type(pipeline).__name__,
            "scheduler": type(pipeline.scheduler).__name__,
        }
        return self._pipeline

    def _scheduler_class(self) -> Any:
        if self.entry.scheduler is None:
            return None
        diffusers = import_diffusers()
        wanted = getattr(diffusers, str(self.entry.scheduler), None)
        mixin = diffusers.schedulers.scheduling_utils.SchedulerMixin
        if not (isinstance(wanted, type) and issubclass(wanted, mixin)):
            known = [name for name in dir(diffusers) if name.endswith("Scheduler")]
            near = difflib.get_close_matches(str(self.entry.scheduler), known, n=1)
            raise ModelError(
                f"diffusers has no scheduler '{self.entry.scheduler}'",
                fix=f"did you mean '{near[0]}'?" if near else "see the schedulers of diffusers",
            )
        return wanted

    def generate(self, requests: Sequence[Request]) -> Iterator[tuple[Request, Outcome]]:
        yield from zip(requests, self._paint(requests), strict=True)

    def trace(
        self, requests: Sequence[Request], wanted: TraceRequest
    ) -> Iterator[tuple[Request, Outcome, ImageTrace]]:
        """The same images as `generate` makes, to the bit, with what went on inside."""
        from tropescope.models.tracing import trace

        with self._memory_errors(), trace(self.pipeline(), wanted) as tracer:
            outcomes = self._paint(requests)
        yield from zip(requests, outcomes, tracer.result().images, strict=True)

    def steps(self) -> int:
        """How many steps a call takes: the study's, or the pipeline's own default."""
        if self.entry.steps is not None:
            return self.entry.steps
        parameters = inspect.signature(self.pipeline_class().__call__).parameters
        return int(parameters["num_inference_steps"].default)

    def _paint(self, requests: Sequence[Request]) -> list[Outcome]:
        """One call of the pipeline."""
        torch = import_torch()
        pipeline = self.pipeline()
        arguments = self.call_arguments()
        if isinstance(arguments.get("negative_prompt"), str):
            arguments["negative_prompt"] = [arguments["negative_prompt"]] * len(requests)
        generators = [torch.Generator("cpu").manual_seed(r.seed) for r in requests]
        with self._memory_errors(), torch.inference_mode(), np.errstate(invalid="ignore"):
            output = pipeline(
                prompt=[request.prompt for request in requests],
                generator=generators,
                output_type="np",
                **arguments,
            )
        flags = getattr(output, "nsfw_content_detected", None) or [False] * len(requests)
        return [
            to_outcome(np.asarray(image), filtered=bool(filtered))
            for image, filtered in zip(output.images, flags, strict=True)
        ]

    @contextmanager
    def _memory_errors(self) -> Iterator[None]:
        """Out of memory asks for a smaller batch; any other failure names the model."""
        too_large = None
        try:
            yield
        except (BatchTooLarge, TropescopeError):
            raise
        except Exception as error:
            if not is_out_of_memory(error):
                raise ModelError(
                    f"'{self.entry.id}' failed: {type(error).__name__}: {error}",
                    fix="check the model's settings; finished images are kept",
                ) from error
            too_large = BatchTooLarge(str(error).split("\n")[0])
        if too_large is not None:
            # Outside the except block, so that the failed call's tensors are released first.
            release_memory()
            raise too_large

    def close(self) -> None:
        self._pipeline = None
        release_memory()


def to_outcome(image: NDArray[Any], *, filtered: bool) -> Outcome:
    """Floats in [0, 1] to an outcome; a safety filter's black image keeps its cause."""
    if filtered:
        return Outcome("filtered", reason="the pipeline's own safety checker")
    if not np.isfinite(image).all():
        return Outcome("invalid", reason="the model computed values that are not numbers (NaN)")
    pixels = (np.clip(image, 0, 1) * 255).round().astype(np.uint8)
    return Outcome("generated", pixels=pixels)


def release_memory() -> None:
    gc.collect()
    torch = import_torch()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
