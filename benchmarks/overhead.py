"""What Tropescope adds to the bare model: wall time of a run over the model's own calls inside it.

    python benchmarks/overhead.py            # all parts
    python benchmarks/overhead.py memory     # one part

The lower bound of a run is the time inside the model's forward passes (generation) and inside the
encoder (judging). Both are measured in the same process and the same run, so that a noisy machine
disturbs numerator and denominator alike. Peak memory is read from the operating system, each size
in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))


class Stopwatch:
    """Total time inside wrapped calls."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - started

        return timed


def study(models: dict[str, Any], judge: dict[str, Any], images: int) -> Any:
    import yaml

    from tropescope.study.loading import load_study_text

    from runs import world_study

    text = {"present": "a photo of a person wearing a hat", "absent": "a person wearing no hat"}
    settings = world_study(
        models=models,
        judge=judge,
        concepts={"kestran": "kestran person", "velori": "velori person"},
        images_per_prompt=images // 4,
        attributes={"hat": text, "beard": {"present": "a beard", "absent": "no beard"}},
        measures=["attribute_rate"],
        references=[],
    )
    return load_study_text(yaml.safe_dump(settings, sort_keys=False))


def generation(work: Path) -> dict[str, Any]:
    """500 images from a small pipeline: the whole run against the pipeline's calls and encoder."""
    import tropescope
    from tropescope.models.clip import ClipEncoder
    from tropescope.models.diffusers_pipeline import DiffusersModel

    import tiny

    model = tiny.stable_diffusion(work / "sd")
    encoder = tiny.clip(work / "clip")
    entry = {"adapter": "diffusers", "id": str(model), "steps": 10, "guidance": 3.0, "height": 64,
             "width": 64, "batch_size": 4}  # fmt: skip
    bare = Stopwatch()
    load = Stopwatch()
    original = DiffusersModel.pipeline

    def pipeline(self: DiffusersModel) -> Any:
        fresh = self._pipeline is None
        loaded = load.wrap(original)(self) if fresh else original(self)
        return bare.wrap(loaded)

    DiffusersModel.pipeline = pipeline  # type: ignore[method-assign]
    ClipEncoder._load = load.wrap(ClipEncoder._load)  # type: ignore[method-assign]
    ClipEncoder.encode_prepared = bare.wrap(ClipEncoder.encode_prepared)  # type: ignore[method-assign]
    judge = {"kind": "clip", "id": str(encoder)}
    definition = study({"sd": entry}, judge, 500)
    started = time.perf_counter()
    tropescope.run(definition, out=work / "run", offline=True)
    whole = time.perf_counter() - started
    DiffusersModel.pipeline = original  # type: ignore[method-assign]
    return {
        "images": 500,
        "run_s": round(whole, 2),
        "model_calls_s": round(bare.seconds, 2),
        "loading_s": round(load.seconds, 2),
        "ratio": round((whole - load.seconds) / bare.seconds, 3),
    }


def write_folder(folder: Path, count: int, side: int) -> None:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    base = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
    prompts = [
        f"a {t} of a {c} person" for c in ("kestran", "velori") for t in ("photo", "picture")
    ]
    lines = ["file,prompt"]
    for i in range(count):
        pixels = np.roll(base, i, axis=0) ^ np.uint8(i % 251)
        image = Image.fromarray(pixels).resize((side, side), Image.Resampling.BICUBIC)
        image.putpixel((0, 0), (i % 256, i // 256 % 256, 7))
        image.save(folder / f"{i}.png", compress_level=1)
        lines.append(f"{i}.png,{prompts[i % 4]}")
    (folder / "metadata.csv").write_text("\n".join(lines))


def folder(work: Path) -> dict[str, Any]:
    """2,000 pictures and an encoder of CLIP ViT-B/32's shape: run against the encoder alone."""
    from transformers import CLIPConfig, CLIPModel

    import tropescope
    from tropescope.models.clip import ClipEncoder

    import tiny

    write_folder(work / "pictures", 2000, 256)
    encoder = tiny.clip(work / "clip")
    config = CLIPConfig.from_pretrained(encoder)
    vision = {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 12,
              "num_attention_heads": 6, "image_size": 224, "patch_size": 32}  # fmt: skip
    config = CLIPConfig(
        text_config=config.text_config.to_dict(), vision_config=vision, projection_dim=32
    )
    CLIPModel(config).save_pretrained(encoder)
    processor = encoder / "preprocessor_config.json"
    settings = json.loads(processor.read_text())
    settings.update(size={"shortest_edge": 224}, crop_size={"height": 224, "width": 224})
    processor.write_text(json.dumps(settings))
    bare, load = Stopwatch(), Stopwatch()
    ClipEncoder._load = load.wrap(ClipEncoder._load)  # type: ignore[method-assign]
    ClipEncoder.encode_prepared = bare.wrap(ClipEncoder.encode_prepared)  # type: ignore[method-assign]
    judge = {"kind": "clip", "id": str(encoder)}
    models = {"pictures": {"adapter": "folder", "path": str(work / "pictures"), "batch_size": 64}}
    definition = study(models, judge, 2000)
    started = time.perf_counter()
    tropescope.run(definition, out=work / "run", offline=True)
    whole = time.perf_counter() - started
    return {
        "images": 2000,
        "run_s": round(whole, 2),
        "encoder_s": round(bare.seconds, 2),
        "loading_s": round(load.seconds, 2),
        "ratio": round((whole - load.seconds) / bare.seconds, 3),
    }


def peak(count: int) -> None:
    """In a process of its own: peak memory of a run with so many drawn images."""
    import tropescope

    from runs import world_study, write_study

    with tempfile.TemporaryDirectory() as place:
        settings = world_study(images_per_prompt=count // 4)
        path = write_study(Path(place), settings)
        tropescope.run(path, out=Path(place) / "run")
    # Not getrusage: its peak includes the parent's pages from before the program was started.
    status = Path("/proc/self/status").read_text()
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024)


def memory(work: Path) -> dict[str, Any]:
    """Peak memory at 1,000 and 10,000 images."""
    del work
    peaks = {}
    for count in (1000, 10_000):
        done = subprocess.run(
            [sys.executable, __file__, "peak", str(count)],
            capture_output=True,
            text=True,
            check=True,
        )
        peaks[count] = float(done.stdout.split()[-1])
    grown = peaks[10_000] - peaks[1000]
    return {
        "peak_mb_1k": round(peaks[1000]),
        "peak_mb_10k": round(peaks[10_000]),
        "bytes_per_image": round(grown * 2**20 / 9000),
    }


def main() -> None:
    if sys.argv[1:2] == ["peak"]:
        peak(int(sys.argv[2]))
        return
    parts = {"generation": generation, "folder": folder, "memory": memory}
    for name in sys.argv[1:] or parts:
        with tempfile.TemporaryDirectory() as place:
            print(name, json.dumps(parts[name](Path(place))), flush=True)


if __name__ == "__main__":
    main()
