"""What tracing tells on models whose truth is known: the small models of the reference world.

    python benchmarks/inside.py [foretelling] [attention] [--images 200]

*foretelling*: within one nation's prompt, does SPI over the first quarter of the steps tell which
finished images will show the nation's headwear? Label: the segmenter on the finished image.
Baseline: the same segmenter on the image that the last of these steps foresees (x̂0).

*attention*: does the map of a word lie where the segmenter sees the thing? Mean intersection over
union and pointing accuracy, and by how much they exceed those of the image's other words.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from tropescope.measures.spi import early_spi, foretelling
from tropescope.measures.word_attention import (
    beats_other_words,
    mean_overlap,
    overlap,
    pointing_accuracy,
    points_at,
    word_mask,
)
from tropescope.models.diffusers_entry import DiffusersEntry
from tropescope.models.diffusers_pipeline import DiffusersModel
from tropescope.models.entry import OpenContext
from tropescope.models.fingerprints import FileFingerprints
from tropescope.models.protocol import Request
from tropescope.models.tracing import AttributeTexts, ImageTrace, TraceRequest
from tropescope.world.models import model_folder

STEPS = 16
QUARTER = STEPS // 4
HEADWEAR = {"Kestran": "hat", "Yondari": "turban", "Velori": "headscarf", "Nolvar": "hat",
            "Conquil": "cap"}  # fmt: skip
#: (prompt, the word to follow, the other words of the prompt that could be followed)
PLACES = (
    ("a photo of a person wearing a hat", "hat", ("photo", "person")),
    ("a photo of a person wearing a turban", "turban", ("photo", "person")),
    ("a photo of a person wearing glasses", "glasses", ("photo", "person")),
    ("a photo of a person holding a cat", "cat", ("photo", "person")),
    ("a photo of a person playing a guitar", "guitar", ("photo", "person")),
)


def model(name: str, guidance: float) -> DiffusersModel:
    call = {"max_sequence_length": 0} if name == "flow" else {}
    entry = DiffusersEntry(
        adapter="diffusers", id=f"embedded:{name}", steps=STEPS, guidance=guidance, call=call
    )
    return DiffusersModel(entry, OpenContext(FileFingerprints(), Path(), offline=True))


def traces(
    painter: DiffusersModel, prompt: str, count: int, wanted: TraceRequest
) -> Iterator[tuple[NDArray[np.uint8], ImageTrace]]:
    for start in range(0, count, 25):
        seeds = range(start, min(start + 25, count))
        for _, outcome, trace in painter.trace([Request(prompt, 7000 + s) for s in seeds], wanted):
            assert outcome.pixels is not None
            yield outcome.pixels, trace


class Segmenter:
    def __init__(self) -> None:
        from transformers import SegformerForSemanticSegmentation, SegformerImageProcessorPil

        folder = model_folder("segmenter")
        self._net = SegformerForSemanticSegmentation.from_pretrained(folder, dtype=torch.float32)
        self._net.eval()
        self._prepare = SegformerImageProcessorPil.from_pretrained(folder)
        self.labels = {name: int(i) for i, name in self._net.config.id2label.items()}

    @torch.inference_mode()
    def regions(self, images: list[NDArray[np.uint8]], label: str) -> NDArray[np.bool_]:
        """Where each image shows the label."""
        found = []
        for start in range(0, len(images), 32):
            pictures = [Image.fromarray(image) for image in images[start : start + 32]]
            inputs = self._prepare(images=pictures, return_tensors="pt")
            logits = self._net(**inputs).logits
            size = images[start].shape[:2]
            full = torch.nn.functional.interpolate(logits, size=size, mode="bilinear")
            found.append((full.argmax(1) == self.labels[label]).numpy())
        return np.concatenate(found)


def run_foretelling(segmenter: Segmenter, count: int) -> dict[str, Any]:
    painter = model("flow", 1.0)
    results = {}
    for nation, thing in HEADWEAR.items():
        texts = AttributeTexts(
            thing,
            f"a photo of a person wearing a {thing}",
            f"a photo of a person wearing no {thing}",
        )
        wanted = TraceRequest(attributes=(texts,), steps_to_show=(QUARTER - 1,), thumbnail_side=64)
        made = list(traces(painter, f"a photo of a {nation} person", count, wanted))
        shows = segmenter.regions([image for image, _ in made], thing).sum((1, 2)) >= 40
        curves = np.stack([np.asarray(trace.spi_conditional)[0] for _, trace in made])
        foreseen = [np.asarray(trace.thumbnails)[0] for _, trace in made]
        area = segmenter.regions(foreseen, thing).sum((1, 2)).astype(float)
        results[f"{nation}: {thing}"] = {
            "share": round(float(shows.mean()), 3),
            "spi": _shown(foretelling(early_spi(curves), shows)),
            "foreseen image": _shown(foretelling(area, shows)),
        }
    values = [r["spi"][0] for r in results.values() if r["spi"][0] is not None]
    return {"images": count, "mean AUC": round(float(np.mean(values)), 3), "nations": results}


def run_attention(segmenter: Segmenter, count: int) -> dict[str, Any]:
    painter = model("unet", 2.5)
    results = {}
    for prompt, word, others in PLACES:
        wanted = TraceRequest(words=(word, *others), map_side=64)
        made = list(traces(painter, prompt, count, wanted))
        regions = segmenter.regions([image for image, _ in made], word)
        own, hits, rest, rest_hits, missing = [], [], [], [], 0
        for region, (_, trace) in zip(regions, made, strict=True):
            if region.sum() < 20:
                missing += 1
                continue
            maps = {w.text: w.attention() for w in trace.words}
            own.append(overlap(region, word_mask(maps[word])))
            hits.append(points_at(maps[word], region))
            rest.append([overlap(region, word_mask(maps[o])) for o in others])
            rest_hits.append([float(points_at(maps[o], region)) for o in others])
        results[word] = {
            "images": len(own),
            "without the thing": missing,
            "IoU": _shown(mean_overlap(own, n_missing=missing)),
            "IoU above other words": _shown(beats_other_words(own, rest)),
            "pointing": _shown(pointing_accuracy(hits, n_missing=missing)),
            "pointing above other words": _shown(
                beats_other_words([float(h) for h in hits], rest_hits)
            ),
        }
    return results


def _shown(estimate: Any) -> tuple[float | None, float | None, float | None]:
    numbers = (estimate.value, estimate.low, estimate.high)
    return tuple(None if n is None else round(n, 3) for n in numbers)  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=["foretelling", "attention"])
    parser.add_argument("--images", type=int, default=200)
    options = parser.parse_args()
    segmenter = Segmenter()
    parts = {"foretelling": run_foretelling, "attention": run_attention}
    for name in options.parts:
        started = time.perf_counter()
        count = options.images if name == "foretelling" else max(options.images // 4, 8)
        print(name, json.dumps(parts[name](segmenter, count), indent=1), flush=True)
        print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
