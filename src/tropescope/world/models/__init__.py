"""Small real models of the reference world, shipped with the package. See docs/world_models.md.

They lie in ordinary diffusers and transformers folders and are loaded by the adapters that load hub
models. This module only knows where they are; nothing here imports torch.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

from tropescope.errors import ModelError

WEIGHTS = Path(__file__).with_name("weights")

#: What each model is, by the name studies use for it.
MODELS: dict[str, str] = {
    "unet": "latent diffusion with a U-Net, a StableDiffusionPipeline",
    "flow": "flow matching with a transformer, a StableDiffusion3Pipeline",
    "judge": "CLIP, trained apart from both generators",
    "judge_small": "a smaller CLIP, to see what depends on the judge",
    "captioner": "BLIP, writes one sentence about a picture",
    "answerer": "BLIP, answers the world's questions about a picture",
    "language": "a causal language model over the world's vocabulary",
    "segmenter": "SegFormer, tells parts of the person and objects apart",
}


def model_folder(name: str) -> Path:
    """The folder of a shipped model.

    >>> model_folder("judge").name
    'judge'
    """
    if name not in MODELS:
        near = difflib.get_close_matches(name, MODELS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"use one of: {', '.join(MODELS)}"
        raise ModelError(f"no embedded model is called '{name}'", fix=hint)
    folder = WEIGHTS / name
    if not folder.is_dir():
        raise ModelError(
            f"the embedded model '{name}' is missing from this installation",
            fix="install tropescope again from its wheel or a full checkout",
        )
    return folder


def manifest() -> dict[str, Any]:
    """Hashes of the world, the atlas, the training settings and every file, as of training."""
    found: dict[str, Any] = json.loads((WEIGHTS / "manifest.json").read_text("utf-8"))
    return found
