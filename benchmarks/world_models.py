"""How fast the shipped models are on this machine, through the project's own adapters.

    python benchmarks/world_models.py [--images 16] [--repeats 4] [--threads 2]

Prints the fastest and the slowest of several runs; on a busy machine they differ much.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch

from tropescope.models.clip import ClipEncoder
from tropescope.models.diffusers_entry import DiffusersEntry
from tropescope.models.diffusers_pipeline import DiffusersModel
from tropescope.models.entry import OpenContext
from tropescope.models.fingerprints import FileFingerprints
from tropescope.models.protocol import Request
from tropescope.world.generator import WorldGenerator
from tropescope.world.models import model_folder


def timed(label: str, count: int, repeats: int, work: Any) -> None:
    """The fastest of several runs: what the machine can do when nothing else is in the way."""
    work(2)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work(count)
        seconds.append(time.perf_counter() - start)
    slowest, fastest = count / max(seconds), count / min(seconds)
    print(f"{label:58} {fastest:8.2f} images/s (slowest run {slowest:.2f})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    context = OpenContext(FileFingerprints(), Path(), offline=True, device="cpu")
    for name, call in (("unet", {}), ("flow", {"max_sequence_length": 0}), ("flow", {})):
        for guidance in (1.0, 2.5):
            entry = DiffusersEntry(
                adapter="diffusers",
                id=str(model_folder(name)),
                steps=16,
                guidance=guidance,
                call=call,
            )
            model = DiffusersModel(entry, context)

            def generate(count: int, model: DiffusersModel = model) -> None:
                asked = [Request("a photo of a Kestran person", seed) for seed in range(count)]
                for start in range(0, count, 16):
                    list(model.generate(asked[start : start + 16]))

            length = "" if name == "unet" else f", {call or 'default length'}"
            timed(
                f"{name}, 16 steps, guidance {guidance}{length}",
                args.images,
                args.threads,
                generate,
            )
    requests = [Request("a photo of a person", seed) for seed in range(512)]
    pictures = [outcome.pixels for _, outcome in WorldGenerator().generate(requests)]
    for name in ("judge", "judge_small"):
        encoder = ClipEncoder(str(model_folder(name)), revision=None, dtype=None, context=context)
        timed(name, 512, args.repeats, lambda count, e=encoder: e.encode_images(pictures[:count]))


if __name__ == "__main__":
    main()
