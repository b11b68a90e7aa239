"""Tiny pipelines and encoders with random weights, saved in the ordinary formats.

They compute nothing meaningful, but they are loaded, called and batched by exactly the code that
loads the real ones, in well under a second each.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORDS = [
    "a",
    "an",
    "photo",
    "of",
    "picture",
    "portrait",
    "person",
    "kestran",
    "velori",
    "doctor",
    "wearing",
    "no",
    "hat",
    "red",
    "with",
    "beard",
]


def clip_tokenizer(length: int = 16) -> Any:
    """A word-level CLIP tokenizer over WORDS and letters, in CLIP's own format."""
    from transformers import CLIPTokenizer

    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    vocabulary: dict[str, int] = {}
    for token in [*letters, *(letter + "</w>" for letter in letters)]:
        vocabulary[token] = len(vocabulary)
    merges: list[tuple[str, str]] = []
    for word in WORDS:
        pieces = [*word[:-1], word[-1] + "</w>"]
        while len(pieces) > 1:
            pair = (pieces[0], pieces[1])
            if pair not in merges:
                merges.append(pair)
            pieces[:2] = ["".join(pair)]
            vocabulary.setdefault(pieces[0], len(vocabulary))
    for token in ("<|startoftext|>", "<|endoftext|>"):
        vocabulary[token] = len(vocabulary)
    return CLIPTokenizer(vocab=vocabulary, merges=merges, model_max_length=length)


def t5_tokenizer(length: int = 32) -> Any:
    from transformers import T5TokenizerFast

    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [("▁" + word, -1.0) for word in WORDS]
    return T5TokenizerFast(vocab=pieces, extra_ids=0, model_max_length=length)


def _clip_text_config(tokenizer: Any, **changes: Any) -> Any:
    from transformers import CLIPTextConfig

    settings: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 37,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": tokenizer.model_max_length,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.eos_token_id,
        "projection_dim": 32,
    }
    return CLIPTextConfig(**{**settings, **changes})


def _unet(**changes: Any) -> Any:
    from diffusers import UNet2DConditionModel

    settings: dict[str, Any] = {
        "block_out_channels": (8, 16),
        "layers_per_block": 1,
        "sample_size": 8,
        "in_channels": 4,
        "out_channels": 4,
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
        "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
        "cross_attention_dim": 32,
        "attention_head_dim": 2,
        "norm_num_groups": 4,
    }
    return UNet2DConditionModel(**{**settings, **changes})


def _vae(channels: int = 4, **changes: Any) -> Any:
    from diffusers import AutoencoderKL

    settings: dict[str, Any] = {
        "block_out_channels": [8, 8],
        "in_channels": 3,
        "out_channels": 3,
        "down_block_types": ["DownEncoderBlock2D", "DownEncoderBlock2D"],
        "up_block_types": ["UpDecoderBlock2D", "UpDecoderBlock2D"],
        "latent_channels": channels,
        "norm_num_groups": 4,
        "layers_per_block": 1,
        "sample_size": 16,
    }
    return AutoencoderKL(**{**settings, **changes})


def stable_diffusion(folder: Path, *, with_safety_checker: bool = False) -> Path:
    from diffusers import DDIMScheduler, StableDiffusionPipeline
    from transformers import CLIPTextModel

    _seed()
    tokenizer = clip_tokenizer()
    checker, extractor = _safety_checker() if with_safety_checker else (None, None)
    pipeline = StableDiffusionPipeline(
        vae=_vae(),
        text_encoder=CLIPTextModel(_clip_text_config(tokenizer)),
        tokenizer=tokenizer,
        unet=_unet(),
        scheduler=DDIMScheduler(beta_schedule="scaled_linear", clip_sample=False, steps_offset=1),
        safety_checker=checker,
        feature_extractor=extractor,
        requires_safety_checker=False,
    )
    return _save(pipeline, folder)


def _safety_checker() -> tuple[Any, Any]:
    """A checker that objects to every picture."""
    from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
    from transformers import CLIPConfig, CLIPImageProcessorPil

    vision = {
        "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
        "num_attention_heads": 2, "image_size": 16, "patch_size": 8, "projection_dim": 16,
    }  # fmt: skip
    checker = StableDiffusionSafetyChecker(CLIPConfig(vision_config=vision, projection_dim=16))
    checker.concept_embeds_weights.data.fill_(-2.0)
    size = {"height": 16, "width": 16}
    return checker, CLIPImageProcessorPil(size={"shortest_edge": 16}, crop_size=size)


def stable_diffusion_xl(folder: Path) -> Path:
    from diffusers import EulerDiscreteScheduler, StableDiffusionXLPipeline
    from transformers import CLIPTextModel, CLIPTextModelWithProjection

    _seed()
    tokenizer, second = clip_tokenizer(), clip_tokenizer()
    pipeline = StableDiffusionXLPipeline(
        vae=_vae(),
        text_encoder=CLIPTextModel(_clip_text_config(tokenizer, hidden_act="gelu")),
        text_encoder_2=CLIPTextModelWithProjection(_clip_text_config(second, hidden_act="gelu")),
        tokenizer=tokenizer,
        tokenizer_2=second,
        unet=_unet(
            addition_embed_type="text_time",
            addition_time_embed_dim=8,
            transformer_layers_per_block=(1, 1),
            projection_class_embeddings_input_dim=8 * 6 + 32,
            cross_attention_dim=64,
        ),
        scheduler=EulerDiscreteScheduler(beta_schedule="scaled_linear"),
    )
    return _save(pipeline, folder)


def _t5(tokenizer: Any) -> Any:
    from transformers import T5Config, T5EncoderModel

    return T5EncoderModel(
        T5Config(vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4)
    )


def stable_diffusion_3(folder: Path, *, with_t5: bool = True) -> Path:
    from diffusers import (
        FlowMatchEulerDiscreteScheduler,
        SD3Transformer2DModel,
        StableDiffusion3Pipeline,
    )
    from transformers import CLIPTextModelWithProjection

    _seed()
    tokenizer, second, third = clip_tokenizer(), clip_tokenizer(), t5_tokenizer()
    pipeline = StableDiffusion3Pipeline(
        transformer=SD3Transformer2DModel(
            sample_size=8, patch_size=1, in_channels=4, num_layers=2, attention_head_dim=8,
            num_attention_heads=4, caption_projection_dim=32, joint_attention_dim=32,
            pooled_projection_dim=64, out_channels=4,
        ),
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=_vae(
            use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.06, scaling_factor=1.5
        ),
        text_encoder=CLIPTextModelWithProjection(_clip_text_config(tokenizer, hidden_act="gelu", hidden_size=16)),
        tokenizer=tokenizer,
        text_encoder_2=CLIPTextModelWithProjection(_clip_text_config(second, hidden_act="gelu", hidden_size=16)),
        tokenizer_2=second,
        text_encoder_3=_t5(third) if with_t5 else None,
        tokenizer_3=third if with_t5 else None,
    )  # fmt: skip
    return _save(pipeline, folder)


def flux(folder: Path) -> Path:
    from diffusers import FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel
    from transformers import CLIPTextModel

    _seed()
    tokenizer, second = clip_tokenizer(), t5_tokenizer()
    pipeline = FluxPipeline(
        transformer=FluxTransformer2DModel(
            patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16,
            num_attention_heads=2, joint_attention_dim=32, pooled_projection_dim=32,
            axes_dims_rope=[4, 4, 8],
        ),
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=_vae(
            channels=1, use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.06,
            scaling_factor=1.5,
        ),
        text_encoder=CLIPTextModel(_clip_text_config(tokenizer, hidden_act="gelu")),
        tokenizer=tokenizer,
        text_encoder_2=_t5(second),
        tokenizer_2=second,
    )  # fmt: skip
    return _save(pipeline, folder)


def clip(folder: Path, *, length: int = 16) -> Path:
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel

    _seed()
    tokenizer = clip_tokenizer(length)
    vision = {
        "hidden_size": 32, "intermediate_size": 37, "num_hidden_layers": 2,
        "num_attention_heads": 4, "image_size": 32, "patch_size": 8, "projection_dim": 32,
    }  # fmt: skip
    config = CLIPConfig(
        text_config=_clip_text_config(tokenizer).to_dict(), vision_config=vision, projection_dim=32
    )
    CLIPModel(config).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    size = {"height": 32, "width": 32}
    CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=size).save_pretrained(folder)
    return folder


def siglip(folder: Path) -> Path:
    from transformers import SiglipConfig, SiglipImageProcessorPil, SiglipModel

    _seed()
    tokenizer = t5_tokenizer(16)
    text = {
        "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 37,
        "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 16,
        "projection_size": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1,
    }  # fmt: skip
    vision = {
        "hidden_size": 32, "intermediate_size": 37, "num_hidden_layers": 2,
        "num_attention_heads": 4, "image_size": 32, "patch_size": 8,
    }  # fmt: skip
    SiglipModel(SiglipConfig(text_config=text, vision_config=vision)).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    SiglipImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


PIPELINES: dict[str, Callable[[Path], Path]] = {
    "sd": stable_diffusion,
    "sdxl": stable_diffusion_xl,
    "sd3": stable_diffusion_3,
    "sd3-without-t5": lambda folder: stable_diffusion_3(folder, with_t5=False),
    "flux": flux,
}


def _seed() -> None:
    import torch

    torch.manual_seed(0)


def _save(pipeline: Any, folder: Path) -> Path:
    for component in pipeline.components.values():
        if hasattr(component, "eval"):
            component.eval()
    pipeline.save_pretrained(folder, safe_serialization=True)
    index = json.loads((folder / "model_index.json").read_text())
    assert index["_class_name"] == type(pipeline).__name__
    return folder
