"""The models, built from the settings with random weights."""

from __future__ import annotations

from typing import Any

from drawing import part_labels

from tropescope.world.definition import World
from tropescope.world.vocabulary import Vocabulary

Settings = dict[str, Any]


class Sizes:
    """What all models share: vocabulary and text length."""

    def __init__(self, world: World, settings: Settings) -> None:
        self.world = world
        self.vocabulary = len(Vocabulary(world)) + 1
        self.length = settings["text"]["length"]

    @property
    def tokens(self) -> dict[str, int]:
        return {"bos_token_id": 1, "eos_token_id": self.vocabulary - 1, "pad_token_id": 0}


def clip_text_config(sizes: Sizes, text: Settings, projection: int) -> Any:
    from transformers import CLIPTextConfig

    return CLIPTextConfig(
        vocab_size=sizes.vocabulary,
        hidden_size=text["hidden"],
        intermediate_size=text["inner"],
        num_hidden_layers=text["layers"],
        num_attention_heads=text["heads"],
        max_position_embeddings=sizes.length,
        projection_dim=projection,
        hidden_act="gelu",
        **sizes.tokens,
    )


def build_vae(sizes: Sizes, part: Settings) -> Any:
    from diffusers import AutoencoderKL

    blocks = len(part["channels"])
    return AutoencoderKL(
        in_channels=3,
        out_channels=3,
        down_block_types=["DownEncoderBlock2D"] * blocks,
        up_block_types=["UpDecoderBlock2D"] * blocks,
        block_out_channels=part["channels"],
        layers_per_block=part["layers"],
        latent_channels=part["latent"],
        norm_num_groups=part["groups"],
        sample_size=64,
        mid_block_add_attention=False,
    )


def build_unet(sizes: Sizes, part: Settings, latent: int) -> dict[str, Any]:
    from diffusers import UNet2DConditionModel
    from transformers import CLIPTextModel

    hidden = part["text"]["hidden"]
    unet = UNet2DConditionModel(
        sample_size=16,
        in_channels=latent,
        out_channels=latent,
        layers_per_block=part["layers"],
        block_out_channels=part["channels"],
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=hidden,
        attention_head_dim=part["heads"],
        norm_num_groups=part["groups"],
    )
    text = CLIPTextModel(clip_text_config(sizes, part["text"], hidden))
    return {"unet": unet, "text_encoder": text}


def build_flow(sizes: Sizes, part: Settings, latent: int) -> dict[str, Any]:
    from diffusers import SD3Transformer2DModel
    from transformers import CLIPTextModelWithProjection

    one, two = part["text"], part["text_2"]
    joint = one["hidden"] + two["hidden"]
    inner = part["heads"] * part["head_size"]
    transformer = SD3Transformer2DModel(
        sample_size=16,
        patch_size=part["patch"],
        in_channels=latent,
        out_channels=latent,
        num_layers=part["layers"],
        attention_head_dim=part["head_size"],
        num_attention_heads=part["heads"],
        joint_attention_dim=joint,
        caption_projection_dim=inner,
        pooled_projection_dim=joint,
        pos_embed_max_size=16,
        qk_norm="rms_norm",
    )
    first = CLIPTextModelWithProjection(clip_text_config(sizes, one, one["hidden"]))
    second = CLIPTextModelWithProjection(clip_text_config(sizes, two, two["hidden"]))
    return {"transformer": transformer, "text_encoder": first, "text_encoder_2": second}


def build_judge(sizes: Sizes, part: Settings) -> Any:
    from transformers import CLIPConfig, CLIPModel, CLIPVisionConfig

    text = clip_text_config(sizes, part["text"], part["projection"])
    vision = CLIPVisionConfig(
        hidden_size=part["vision"]["hidden"],
        intermediate_size=part["vision"]["inner"],
        num_hidden_layers=part["vision"]["layers"],
        num_attention_heads=part["vision"]["heads"],
        patch_size=part["vision"]["patch"],
        image_size=64,
        projection_dim=part["projection"],
        hidden_act="gelu",
    )
    return CLIPModel(
        CLIPConfig(
            text_config=text.to_dict(),
            vision_config=vision.to_dict(),
            projection_dim=part["projection"],
        )
    )


def _blip_config(sizes: Sizes, part: Settings) -> Any:
    from transformers import BlipConfig

    vision, text = part["vision"], part["text"]
    return BlipConfig(
        vision_config={
            "hidden_size": vision["hidden"],
            "intermediate_size": vision["inner"],
            "num_hidden_layers": vision["layers"],
            "num_attention_heads": vision["heads"],
            "patch_size": vision["patch"],
            "image_size": 64,
            "initializer_range": 0.02,  # the default, 1e-10, never starts to learn
        },
        text_config={
            "vocab_size": sizes.vocabulary,
            "hidden_size": text["hidden"],
            "encoder_hidden_size": vision["hidden"],
            "intermediate_size": text["inner"],
            "num_hidden_layers": text["layers"],
            "num_attention_heads": text["heads"],
            "max_position_embeddings": sizes.length,
            "projection_dim": text["hidden"],
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "sep_token_id": sizes.vocabulary - 1,
            **sizes.tokens,
        },
        projection_dim=text["hidden"],
        image_text_hidden_size=text["hidden"],
    )


def build_captioner(sizes: Sizes, part: Settings) -> Any:
    from transformers import BlipForConditionalGeneration

    return BlipForConditionalGeneration(_blip_config(sizes, part))


def build_answerer(sizes: Sizes, part: Settings) -> Any:
    from transformers import BlipForQuestionAnswering

    return BlipForQuestionAnswering(_blip_config(sizes, part))


def build_language(sizes: Sizes, part: Settings) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=sizes.vocabulary,
            hidden_size=part["hidden"],
            intermediate_size=part["inner"],
            num_hidden_layers=part["layers"],
            num_attention_heads=part["heads"],
            num_key_value_heads=part["heads"],
            max_position_embeddings=64,
            tie_word_embeddings=True,
            **sizes.tokens,
        )
    )


def build_segmenter(sizes: Sizes, part: Settings) -> Any:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    names = part_labels(sizes.world)
    return SegformerForSemanticSegmentation(
        SegformerConfig(
            num_encoder_blocks=4,
            depths=part["depths"],
            hidden_sizes=part["hidden"],
            num_attention_heads=part["heads"],
            sr_ratios=[4, 2, 1, 1],
            patch_sizes=[5, 3, 3, 3],
            strides=[2, 2, 2, 2],
            mlp_ratios=[2, 2, 2, 2],
            decoder_hidden_size=part["decoder"],
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            classifier_dropout_prob=0.0,
            drop_path_rate=0.0,
            id2label=dict(enumerate(names)),
            label2id={name: index for index, name in enumerate(names)},
        )
    )
