"""The study entry of a diffusers pipeline."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from tropescope.models.entry import ModelEntry, ModelPlugin, OpenContext
from tropescope.models.protocol import TextToImage

_OWN = {
    "prompt": "the study's templates",
    "generator": "the study's seed",
    "latents": "the study's seed",
    "num_images_per_prompt": "images_per_prompt",
    "num_inference_steps": "steps",
    "guidance_scale": "guidance",
    "negative_prompt": "negative_prompt",
    "height": "height",
    "width": "width",
    "output_type": "Tropescope, which always asks for pixels",
    "return_dict": "Tropescope",
    "callback_on_step_end": "Tropescope; see `trace:` to look inside",
}


class DiffusersEntry(ModelEntry):
    """A text-to-image pipeline of diffusers: a hub id or a local folder, and how it is called."""

    adapter: Literal["diffusers"]
    id: Annotated[str, Field(min_length=1)]
    revision: str | None = None
    variant: str | None = None
    """Which weight files to take where a repository offers several, such as 'fp16'."""
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    steps: Annotated[int, Field(ge=1, le=10_000)] | None = None
    guidance: Annotated[float, Field(ge=0, le=1000)] | None = None
    negative_prompt: str | None = None
    scheduler: str | None = None
    """A scheduler class of diffusers, configured from the model's own scheduler."""
    height: Annotated[int, Field(ge=8, le=16_384)] | None = None
    width: Annotated[int, Field(ge=8, le=16_384)] | None = None
    without: tuple[str, ...] = ()
    """Optional components to leave out, such as text_encoder_3 and tokenizer_3 (T5 of SD3)."""
    call: dict[str, Any] = {}
    """Further arguments of the pipeline's call, checked against its signature."""

    @field_validator("call")
    @classmethod
    def _no_own_arguments(cls, call: dict[str, Any]) -> dict[str, Any]:
        for name in call:
            if name in _OWN:
                raise ValueError(f"'{name}' cannot be set here; it comes from {_OWN[name]}")
        return call


def _open(entry: DiffusersEntry, context: OpenContext) -> TextToImage:
    from tropescope.models.diffusers_pipeline import DiffusersModel

    return DiffusersModel(entry, context)


plugin = ModelPlugin(entry=DiffusersEntry, open=_open)
