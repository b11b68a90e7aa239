"""How fast the shipped models are on this machine, through the project's own adapters.

    python benchmarks/world_models.py [--images 32] [--threads 2]

Prints wall-clock speed, and the speed by processor time: the honest one on a busy machine.
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


def timed(label: str, count: int, threads: int, work: Any) -> None:
    work(2)
    wall, busy = time.perf_counter(), time.process_time()
    work(count)
    wall, busy = time.perf_counter() - wall, time.process_time() - busy
    full = count / (busy / threads)
    print(f"{label:44} {count / wall:7.2f} images/s   {full:7.2f} if all cores were free")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=32)
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
        timed(name, 512, args.threads, lambda count, e=encoder: e.encode_images(pictures[:count]))


if __name__ == "__main__":
    main()
