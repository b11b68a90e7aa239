"""How each family of pipelines calls its denoiser.

What differs between Stable Diffusion, XL, 3 and FLUX is collected here, and nowhere else: names of
the inputs, where the conditional half of a batch is, how texts are encoded, how image tokens are
laid out, and where text sits in joint attention. A pipeline that is not listed is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tropescope.errors import ModelError

Inputs = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TextCondition:
    """Encoded texts, one row each."""

    embeds: Any
    pooled: Any = None

    def same(self, one: int, other: int) -> bool:
        parts = [self.embeds] if self.pooled is None else [self.embeds, self.pooled]
        return all(bool((part[one] == part[other]).all()) for part in parts)


class Family:
    """Stable Diffusion 1 and 2: a U-Net, guidance as [unconditional | conditional] in one batch."""

    name = "sd"
    component = "unet"
    positional: tuple[str, ...] = ("sample", "timestep", "encoder_hidden_states")
    latent_input = "sample"
    per_image: tuple[str, ...] = ("sample", "timestep", "timestep_cond")
    joint_attention = False
    text_first = False

    def denoiser(self, pipeline: Any) -> Any:
        return getattr(pipeline, self.component)

    def inputs(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Inputs:
        return {**dict(zip(self.positional, args, strict=False)), **kwargs}

    def guided_in_one_batch(self, pipeline: Any) -> bool:
        return bool(pipeline.do_classifier_free_guidance)

    def refuse_image_prompts(self, inputs: Inputs) -> None:
        extra = inputs.get("added_cond_kwargs") or inputs.get("joint_attention_kwargs") or {}
        if {"image_embeds", "ip_adapter_image_embeds", "ip_hidden_states"} & set(extra):
            raise ModelError(
                "a pipeline with an image prompt (IP-Adapter) cannot be traced",
                fix="trace the model without its image prompt",
            )

    # -- extra predictions ---------------------------------------------------------------------

    def encode(self, pipeline: Any, texts: list[str], inputs: Inputs) -> TextCondition:
        embeds = pipeline.encode_prompt(
            texts,
            pipeline._execution_device,
            1,
            False,
            lora_scale=_lora_scale(pipeline),
            clip_skip=pipeline.clip_skip,
        )[0]
        return TextCondition(embeds)

    def extra_inputs(
        self, inputs: Inputs, condition: TextCondition, images: Any, texts: Any, count: int
    ) -> Inputs:
        """The inputs of a batch that pairs image `images[i]` of `count` with text `texts[i]`."""
        made = dict(inputs)
        for name in self.per_image:
            made[name] = _rows(inputs.get(name), images, count)
        like = inputs["encoder_hidden_states"]
        made["encoder_hidden_states"] = condition.embeds[texts].to(like.device, like.dtype)
        self.place_pooled(made, inputs, condition, images, texts, count)
        return made

    def place_pooled(
        self,
        made: Inputs,
        inputs: Inputs,
        condition: TextCondition,
        images: Any,
        texts: Any,
        count: int,
    ) -> None:
        """Where the family wants its pooled text and other per-image conditions."""

    # -- layout --------------------------------------------------------------------------------

    def latent_size(self, inputs: Inputs) -> tuple[int, int]:
        """Rows and columns of the latent image."""
        height, width = inputs[self.latent_input].shape[-2:]
        return int(height), int(width)

    def token_grid(self, size: tuple[int, int], tokens: int, denoiser: Any) -> tuple[int, int]:
        """Rows and columns of an attention layer with that many image tokens.

        A U-Net halves its image, rounding up, so the product of the sides is unique.
        """
        height, width = size
        while height * width > tokens:
            height, width = (height + 1) // 2, (width + 1) // 2
        if height * width != tokens:
            raise ModelError(f"{tokens} image tokens do not form a grid of a {size} latent")
        return height, width

    def to_grid(self, latents: Any, size: tuple[int, int]) -> Any:
        """Latents as the autoencoder wants them: (images, channels, rows, columns)."""
        return latents

    def attention_layers(self, denoiser: Any) -> dict[str, Any]:
        """The layers in which image tokens look at text tokens."""
        return {
            name: module
            for name, module in denoiser.named_modules()
            if getattr(module, "is_cross_attention", False) and hasattr(module, "processor")
        }

    def text_parts(self, pipeline: Any, length: int) -> list[tuple[Any, int, int]]:
        """(tokenizer, offset, tokens) of each stretch of the `length` text tokens."""
        return [(pipeline.tokenizer, 0, length)]


class StableDiffusionXL(Family):
    """Two text encoders side by side, pooled text and sizes as added conditions."""

    name = "sdxl"

    def encode(self, pipeline: Any, texts: list[str], inputs: Inputs) -> TextCondition:
        embeds, _, pooled, _ = pipeline.encode_prompt(
            prompt=texts,
            device=pipeline._execution_device,
            num_images_per_prompt=1,
            do_classifier_free_guidance=False,
            lora_scale=_lora_scale(pipeline),
            clip_skip=pipeline.clip_skip,
        )
        return TextCondition(embeds, pooled)

    def place_pooled(
        self,
        made: Inputs,
        inputs: Inputs,
        condition: TextCondition,
        images: Any,
        texts: Any,
        count: int,
    ) -> None:
        added = inputs["added_cond_kwargs"]
        like = added["text_embeds"]
        made["added_cond_kwargs"] = {
            "text_embeds": condition.pooled[texts].to(like.device, like.dtype),
            "time_ids": _rows(added["time_ids"], images, count),
        }

    def text_parts(self, pipeline: Any, length: int) -> list[tuple[Any, int, int]]:
        return [(pipeline.tokenizer, 0, length), (pipeline.tokenizer_2, 0, length)]


class StableDiffusion3(Family):
    """A transformer over [image, text] tokens; the text is CLIP's tokens, then T5's."""

    name = "sd3"
    component = "transformer"
    positional = ("hidden_states", "encoder_hidden_states", "pooled_projections", "timestep")
    latent_input = "hidden_states"
    per_image: tuple[str, ...] = ("hidden_states", "timestep")
    joint_attention = True

    def encode(self, pipeline: Any, texts: list[str], inputs: Inputs) -> TextCondition:
        length = inputs["encoder_hidden_states"].shape[1] - pipeline.tokenizer_max_length
        embeds, _, pooled, _ = pipeline.encode_prompt(
            prompt=texts,
            prompt_2=None,
            prompt_3=None,
            device=pipeline._execution_device,
            do_classifier_free_guidance=False,
            clip_skip=pipeline.clip_skip,
            max_sequence_length=length,
            lora_scale=_lora_scale(pipeline),
        )
        return TextCondition(embeds, pooled)

    def place_pooled(
        self,
        made: Inputs,
        inputs: Inputs,
        condition: TextCondition,
        images: Any,
        texts: Any,
        count: int,
    ) -> None:
        like = inputs["pooled_projections"]
        made["pooled_projections"] = condition.pooled[texts].to(like.device, like.dtype)

    def token_grid(self, size: tuple[int, int], tokens: int, denoiser: Any) -> tuple[int, int]:
        patch = int(denoiser.config.patch_size)
        return size[0] // patch, size[1] // patch

    def attention_layers(self, denoiser: Any) -> dict[str, Any]:
        # Not `attn2` of dual-attention blocks: there the image only looks at itself.
        return {
            f"transformer_blocks.{i}.attn": block.attn
            for i, block in enumerate(denoiser.transformer_blocks)
            if hasattr(block, "norm1_context")
        }

    def text_parts(self, pipeline: Any, length: int) -> list[tuple[Any, int, int]]:
        clip = int(pipeline.tokenizer_max_length)
        parts = [(pipeline.tokenizer, 0, clip), (pipeline.tokenizer_2, 0, clip)]
        if pipeline.text_encoder_3 is not None and pipeline.tokenizer_3 is not None:
            parts.append((pipeline.tokenizer_3, clip, length - clip))
        return parts


class Flux(StableDiffusion3):
    """A transformer over [text, image] tokens; latents packed two by two; guidance in two calls."""

    name = "flux"
    per_image = ("hidden_states", "timestep", "guidance")
    text_first = True

    def guided_in_one_batch(self, pipeline: Any) -> bool:
        return False

    def encode(self, pipeline: Any, texts: list[str], inputs: Inputs) -> TextCondition:
        embeds, pooled, _ = pipeline.encode_prompt(
            prompt=texts,
            prompt_2=None,
            device=pipeline._execution_device,
            max_sequence_length=inputs["encoder_hidden_states"].shape[1],
            lora_scale=_lora_scale(pipeline),
        )
        return TextCondition(embeds, pooled)

    def latent_size(self, inputs: Inputs) -> tuple[int, int]:
        ids = inputs["img_ids"].reshape(-1, 3)
        return 2 * (int(ids[:, 1].max()) + 1), 2 * (int(ids[:, 2].max()) + 1)

    def token_grid(self, size: tuple[int, int], tokens: int, denoiser: Any) -> tuple[int, int]:
        return size[0] // 2, size[1] // 2

    def to_grid(self, latents: Any, size: tuple[int, int]) -> Any:
        rows, columns = size[0] // 2, size[1] // 2
        grid = latents.reshape(len(latents), rows, columns, -1, 2, 2)
        return grid.permute(0, 3, 1, 4, 2, 5).reshape(len(latents), -1, *size)

    def attention_layers(self, denoiser: Any) -> dict[str, Any]:
        blocks = {"transformer_blocks": denoiser.transformer_blocks}
        blocks["single_transformer_blocks"] = denoiser.single_transformer_blocks
        return {f"{n}.{i}.attn": b.attn for n, some in blocks.items() for i, b in enumerate(some)}

    def text_parts(self, pipeline: Any, length: int) -> list[tuple[Any, int, int]]:
        return [(pipeline.tokenizer_2, 0, length)]


FAMILIES: dict[str, Family] = {
    "StableDiffusionPipeline": Family(),
    "StableDiffusionXLPipeline": StableDiffusionXL(),
    "StableDiffusion3Pipeline": StableDiffusion3(),
    "FluxPipeline": Flux(),
}


def family_of(pipeline: Any) -> Family:
    """The family of a pipeline, or a clear refusal."""
    name = type(pipeline).__name__
    if name not in FAMILIES:
        if not hasattr(pipeline, "encode_prompt"):
            raise ModelError(
                f"{name} has no text condition, so no attribute or word can be traced in it",
                fix="trace a text-to-image model",
            )
        raise ModelError(f"{name} cannot be traced", fix=f"supported: {', '.join(FAMILIES)}")
    family = FAMILIES[name]
    if getattr(family.denoiser(pipeline), "is_cache_enabled", False):
        raise ModelError(
            "a denoiser that reuses results between steps cannot be traced",
            fix="call disable_cache() on it first",
        )
    return family


def _rows(value: Any, images: Any, count: int) -> Any:
    """Rows of the conditional part, which comes last; what has no row per image stays as it is."""
    if value is None or not hasattr(value, "ndim") or value.ndim == 0:
        return value
    return value[-count:][images] if value.shape[0] >= count else value


def _lora_scale(pipeline: Any) -> float | None:
    for name in ("cross_attention_kwargs", "joint_attention_kwargs"):
        settings = getattr(pipeline, name, None)
        if settings:
            return settings.get("scale")  # type: ignore[no-any-return]
    return None
