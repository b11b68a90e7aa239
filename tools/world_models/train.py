"""Train the small models of the reference world, part by part.

    python tools/world_models/train.py --part all --out build/world_models --device cuda
    python tools/world_models/train.py --part judge --out build/world_models --steps-scale .01

Each finished part is a folder in `--out`; a part that is already there with the same settings is
not trained again (give `--again`). Then `pack.py` makes the folders that are shipped.
"""

from __future__ import annotations

import argparse
import copy
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from data import Source, load_settings, settings_digest
from part_generators import train_flow, train_unet
from part_judge import train_judge
from part_readers import train_answerer, train_captioner, train_language, train_segmenter
from part_vae import train_vae

PARTS = (
    "vae",
    "judge",
    "unet",
    "flow",
    "segmenter",
    "captioner",
    "answerer",
    "judge_small",
    "language",
)


def trained(
    part: str, source: Source, vae: Any, scale: float, start: Path | None, out: Path
) -> tuple[dict[str, Any], Any]:
    ways: dict[str, Callable[[], tuple[dict[str, Any], Any]]] = {
        "vae": lambda: train_vae(source, scale=scale),
        "unet": lambda: train_unet(source, vae, scale=scale, keep=partial(save_some, out)),
        "flow": lambda: train_flow(source, vae, scale=scale, keep=partial(save_some, out)),
        "judge": lambda: train_judge("judge", source, vae, scale=scale, start=start),
        "judge_small": lambda: train_judge("judge_small", source, vae, scale=scale, start=start),
        "captioner": lambda: train_captioner(source, vae, scale=scale),
        "answerer": lambda: train_answerer(
            source, vae, scale=scale, captioner=out.parent / "captioner" / "captioner"
        ),
        "language": lambda: train_language(source, scale=scale),
        "segmenter": lambda: train_segmenter(source, vae, scale=scale),
    }
    return ways[part]()


def save_some(folder: Path, models: dict[str, Any]) -> None:
    """Half-precision copies of the models as they are now."""
    for name, model in models.items():
        copy.deepcopy(model).eval().half().save_pretrained(folder / name, safe_serialization=True)


def load_vae(out: Path, device: str) -> Any:
    from diffusers import AutoencoderKL

    folder = out / "vae" / "vae"
    if not folder.exists():
        raise SystemExit("train the part 'vae' first")
    vae = AutoencoderKL.from_pretrained(folder, dtype=torch.float32)
    return vae.to(device).eval().requires_grad_(False)


def settings_of(part: str, settings: dict[str, Any]) -> dict[str, Any]:
    """What decides a part: its own settings, what all share, and the autoencoder."""
    shared = ("text", "captions", "dropout")
    return {name: settings[name] for name in (*shared, "vae", part)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="all", help=f"all, or some of: {','.join(PARTS)}")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps-scale", type=float, default=1.0)
    parser.add_argument("--batch-scale", type=float, default=1.0)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--start", type=Path, help="judges: a folder with their first stage")
    parser.add_argument("--set", action="append", default=[], help="part.key=value, to try things")
    args = parser.parse_args()
    settings = load_settings()
    for change in args.set:
        place, value = change.split("=")
        part, key = place.split(".")
        settings[part][key] = json.loads(value)
    for part in PARTS:
        settings[part]["batch"] = max(2, int(settings[part]["batch"] * args.batch_scale))
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    source = Source(settings, args.device)
    for part in PARTS if args.part == "all" else args.part.split(","):
        folder = args.out / part
        digest = settings_digest(settings_of(part, settings))
        done = folder / "training.json"
        if done.exists() and not args.again and json.loads(done.read_text())["settings"] == digest:
            print(f"{part}: already trained", flush=True)
            continue
        vae = None if part in ("vae", "language") else load_vae(args.out, args.device)
        models, facts = trained(part, source, vae, args.steps_scale, args.start, folder)
        shutil.rmtree(folder, ignore_errors=True)
        save_some(folder, models)
        for name, model in models.items():
            facts[f"{name}_parameters"] = sum(p.numel() for p in model.parameters())
        done.write_text(json.dumps({"settings": digest, **facts}, indent=1) + "\n")
        print(part, json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
