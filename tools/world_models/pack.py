"""From trained parts to the folders that are shipped, with a manifest of hashes.

    python tools/world_models/pack.py --state build/world_models

Weights stay in half precision. The manifest ties them to the world file, the atlas and the
settings: a part that was trained with other settings is refused.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import torch
from data import load_settings, settings_digest
from part_generators import noise_schedule
from tokenizer import world_tokenizer
from train import PARTS, settings_of

from tropescope.world.atlas import load_atlas
from tropescope.world.definition import load_world

WEIGHTS = Path(__file__).parents[2] / "src" / "tropescope" / "world" / "models" / "weights"
HALF = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}


def check_parts(state: Path, settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    facts = {}
    for part in PARTS:
        facts[part] = json.loads((state / part / "training.json").read_text())
        if facts[part]["settings"] != settings_digest(settings_of(part, settings)):
            raise SystemExit(f"{part} was trained with other settings; train it again")
    return facts


def pack_generators(state: Path, out: Path, tokenizer: Any) -> None:
    from diffusers import (
        AutoencoderKL,
        FlowMatchEulerDiscreteScheduler,
        SD3Transformer2DModel,
        StableDiffusion3Pipeline,
        StableDiffusionPipeline,
        UNet2DConditionModel,
    )
    from transformers import CLIPTextModel, CLIPTextModelWithProjection

    half = torch.float16
    vae = AutoencoderKL.from_pretrained(state / "vae" / "vae", dtype=half)
    StableDiffusionPipeline(
        vae=vae,
        text_encoder=CLIPTextModel.from_pretrained(state / "unet" / "text_encoder", dtype=half),
        tokenizer=tokenizer,
        unet=UNet2DConditionModel.from_pretrained(state / "unet" / "unet", dtype=half),
        scheduler=noise_schedule(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(out / "unet", safe_serialization=True)
    folder = state / "flow"
    load_text = CLIPTextModelWithProjection.from_pretrained
    StableDiffusion3Pipeline(
        transformer=SD3Transformer2DModel.from_pretrained(folder / "transformer", dtype=half),
        scheduler=FlowMatchEulerDiscreteScheduler(shift=1.0),
        vae=vae,
        text_encoder=load_text(folder / "text_encoder", dtype=half),
        tokenizer=tokenizer,
        text_encoder_2=load_text(folder / "text_encoder_2", dtype=half),
        tokenizer_2=tokenizer,
        text_encoder_3=None,
        tokenizer_3=None,
    ).save_pretrained(out / "flow", safe_serialization=True)


def pack_readers(state: Path, out: Path, tokenizer: Any) -> None:
    from transformers import (
        BlipForConditionalGeneration,
        BlipForQuestionAnswering,
        BlipImageProcessorPil,
        CLIPImageProcessorPil,
        CLIPModel,
        LlamaForCausalLM,
        SegformerForSemanticSegmentation,
        SegformerImageProcessorPil,
    )

    square = {"height": 64, "width": 64}
    looks = {"image_mean": HALF["mean"], "image_std": HALF["std"]}
    clip = CLIPImageProcessorPil(size={"shortest_edge": 64}, crop_size=square, **looks)
    blip = BlipImageProcessorPil(size=square, **looks)
    segment = SegformerImageProcessorPil(size=square, **looks)
    for name, kind, processor in (
        ("judge", CLIPModel, clip),
        ("judge_small", CLIPModel, clip),
        ("captioner", BlipForConditionalGeneration, blip),
        ("answerer", BlipForQuestionAnswering, blip),
        ("language", LlamaForCausalLM, None),
        ("segmenter", SegformerForSemanticSegmentation, segment),
    ):
        model = kind.from_pretrained(state / name / name, dtype=torch.float16)
        model.save_pretrained(out / name, safe_serialization=True)
        if processor is not None:
            processor.save_pretrained(out / name)
        if name != "segmenter":
            tokenizer.save_pretrained(out / name)


def write_manifest(out: Path, settings: dict[str, Any], facts: dict[str, Any]) -> None:
    files = {
        path.relative_to(out).as_posix(): {
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "bytes": path.stat().st_size,
        }
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }
    keep = ("settings", "steps", "loss")
    parts = {
        name: {
            key: value for key, value in found.items() if key in keep or key.endswith("parameters")
        }
        for name, found in facts.items()
    }
    manifest = {
        "world": load_world().digest,
        "atlas": load_atlas().digest,
        "settings": settings_digest(settings),
        "parts": parts,
        "files": files,
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    parser.add_argument("--any-settings", action="store_true", help="to try things")
    args = parser.parse_args()
    settings = load_settings()
    if args.any_settings:
        facts = {p: json.loads((args.state / p / "training.json").read_text()) for p in PARTS}
    else:
        facts = check_parts(args.state, settings)
    shutil.rmtree(args.out, ignore_errors=True)
    tokenizer = world_tokenizer(load_world(), settings["text"]["length"])
    pack_generators(args.state, args.out, tokenizer)
    pack_readers(args.state, args.out, tokenizer)
    write_manifest(args.out, settings, facts)
    size = sum(path.stat().st_size for path in args.out.rglob("*") if path.is_file())
    print(f"{size / 1e6:.1f} MB in {args.out}")


if __name__ == "__main__":
    main()
