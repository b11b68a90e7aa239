"""Shared by the tracing tests: one way to call a pipeline, with and without a trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from tropescope.models.tracing import AttributeTexts, TraceRequest, TraceResult, trace

FAMILIES = ["sd", "sdxl", "sd3", "sd3-without-t5", "flux"]
PROMPTS = ["a photo of a kestran person", "a red hat with a red beard"]
HAT = AttributeTexts("hat", "a person wearing a red hat", "a person with no hat")
BEARD = AttributeTexts("beard", "a doctor with a beard", "a doctor with no beard")
EVERYTHING = TraceRequest(
    attributes=(HAT, BEARD),
    steps_to_show=(0, -1),
    words="all",
    latents="float32",
    raw_velocities=True,
)


def generate(pipeline: Any, prompts: list[str] | None = None, **settings: Any) -> Any:
    import torch

    prompts = prompts or PROMPTS
    seeds = settings.pop("seeds", range(len(prompts)))
    arguments = {"num_inference_steps": 3, "guidance_scale": 3.0, "height": 16, "width": 24}
    with torch.inference_mode():
        return pipeline(
            prompt=prompts,
            generator=[torch.Generator().manual_seed(seed) for seed in seeds],
            output_type="np",
            **{**arguments, **settings},
        ).images


def traced(pipeline: Any, request: TraceRequest, **settings: Any) -> tuple[Any, TraceResult]:
    with trace(pipeline, request) as tracer:
        images = generate(pipeline, **settings)
    return images, tracer.result()


def state(pipeline: Any) -> dict[str, Any]:
    """Everything a trace touches, to be compared before and after."""
    import torch

    denoiser = pipeline.unet if hasattr(pipeline, "unet") else pipeline.transformer
    modules = dict(denoiser.named_modules())
    return {
        "function": torch.nn.functional.scaled_dot_product_attention,
        "scheduler": set(vars(pipeline.scheduler)) & {"step"},
        "pipeline": set(vars(pipeline)) & {"encode_prompt"},
        "hooks": {n: len(m._forward_hooks) + len(m._forward_pre_hooks) for n, m in modules.items()},
        "processors": {n: m.processor for n, m in modules.items() if hasattr(m, "processor")},
        "random": torch.random.get_rng_state().tolist(),
    }


def guided_settings(family: str, guided: bool) -> dict[str, Any]:
    """Guidance on or off, in the way of the family: FLUX guides with a negative prompt."""
    if family == "flux":
        return {"true_cfg_scale": 3.0, "negative_prompt": ["a beard", "a hat"]} if guided else {}
    return {"guidance_scale": 3.0 if guided else 1.0}


def close(one: Any, other: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)
