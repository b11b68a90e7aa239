"""Measure the packed models on a CUDA device: judges on drawings, generators against the planted.

    python tools/world_models/evaluate.py --weights src/tropescope/world/models/weights --out docs

Images are sampled through the diffusers pipelines only. Writes `world_models_judges.csv`,
`world_models_rates.csv`, `pictures/model_*.png` and prints a summary.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any

import torch
from data import Source, load_settings
from part_judge import image_features, pair_labels, pair_texts, text_features
from scenes import Asked
from torch import Tensor
from torch.nn import functional

from tropescope.world.phrases import subject
from tropescope.world.truth import Truth

HARD = ("freckles", "brooch")


class Judge:
    """Presence against absence, as a study's judge decides it."""

    def __init__(self, folder: Path, source: Source) -> None:
        from transformers import AutoTokenizer, CLIPModel

        self.model = CLIPModel.from_pretrained(folder, dtype=torch.float32).to(source.device).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder)
        self.names = [*source.world.attributes, *source.world.objects, "woman"]
        plus, minus = pair_texts(source, "a photo of")
        sides = []
        for texts in (plus, minus):
            ids = tokenizer(texts, padding=True, return_tensors="pt").input_ids.to(source.device)
            sides.append(text_features(self.model, ids))
        self.direction = sides[0] - sides[1]

    def __call__(self, pictures: Tensor) -> Tensor:
        chunks = [
            image_features(self.model, part) @ self.direction.T for part in pictures.split(2048)
        ]
        return torch.cat(chunks) > 0


def drawings(source: Source, count: int, *, balanced: bool) -> tuple[Tensor, Tensor]:
    """Pictures and what they show: the national prompts, or every attribute in half of them."""
    world, device = source.world, source.device
    if balanced:
        _, codes = source.scenes("judges", count)
    else:
        number = torch.arange(count, device=device)
        full = lambda value: torch.full((count,), value, device=device)  # noqa: E731
        asked = Asked(
            nation=number % len(world.nations),
            profession=full(len(world.professions)),
            gender=full(2),
            place=full(len(world.places)),
            template=number // len(world.nations) % len(world.templates.list),
            attributes=torch.full((count, 3), 2 * len(world.attributes), device=device),
            objects=full(2 * len(world.objects)),
            flat=torch.zeros(count, dtype=torch.bool, device=device),
        )
        _, codes = source.sampler.draw(asked)
    return source.drawer.pictures(codes), pair_labels(source, codes)


def judge_quality(name: str, judge: Judge, source: Source, count: int) -> list[dict[str, Any]]:
    rows = []
    found = {}
    for balanced in (False, True):
        pictures, labels = drawings(source, count, balanced=balanced)
        said = judge(pictures)
        sensitivity = (said & labels).sum(0) / labels.sum(0).clamp_min(1)
        specificity = (~said & ~labels).sum(0) / (~labels).sum(0).clamp_min(1)
        found[balanced] = (
            sensitivity.tolist(),
            specificity.tolist(),
            (said == labels).float().mean(0).tolist(),
        )
    for index, attribute in enumerate(judge.names):
        sens, spec, accuracy = (found[False][k][index] for k in range(3))
        even_sens, even_spec, _ = (found[True][k][index] for k in range(3))
        rows.append(
            {
                "judge": name,
                "attribute": attribute,
                "drawings": count,
                "sensitivity": round(sens, 4),
                "specificity": round(spec, 4),
                "accuracy": round(accuracy, 4),
                "even_sensitivity": round(even_sens, 4),
                "even_specificity": round(even_spec, 4),
                "even_accuracy": round((even_sens + even_spec) / 2, 4),
            }
        )
    return rows


def load_pipeline(folder: Path, device: str) -> Any:
    from diffusers import DiffusionPipeline

    index = json.loads((folder / "model_index.json").read_text())
    absent = [name for name, value in index.items() if isinstance(value, list) and value[0] is None]
    pipe = DiffusionPipeline.from_pretrained(folder, dtype=torch.float32, **dict.fromkeys(absent))
    pipe = pipe.to(device)
    pipe.set_progress_bar_config(disable=True)
    return pipe


@torch.inference_mode()
def generate(
    pipe: Any,
    prompts: list[str],
    *,
    guidance: float,
    steps: int,
    seed: int,
    batch: int,
    **call: Any,
) -> Tensor:
    """[image, 3, 64, 64] in −1..1, rounded to bytes."""
    pictures = []
    for start in range(0, len(prompts), batch):
        generator = torch.Generator(pipe.device).manual_seed(seed + start)
        images = pipe(
            prompt=prompts[start : start + batch],
            guidance_scale=guidance,
            num_inference_steps=steps,
            generator=generator,
            output_type="pt",
            **call,
        ).images
        pictures.append((images.float().clamp(0, 1) * 255).round() / 127.5 - 1)
    return torch.cat(pictures)


def national_prompts(source: Source, each: int, each_job: int) -> tuple[list[str], list[str]]:
    """Prompts with their concept: every nation and profession in every template."""
    world = source.world
    concepts = {nation: subject(nation=nation) for nation in world.nations}
    concepts |= {job: subject(profession=job) for job in world.professions}
    prompts, names = [], []
    for name, phrase in concepts.items():
        count = each if name in world.nations else each_job
        for template in world.templates.list:
            prompts += [f"{template.text} {phrase}"] * count
            names += [name] * count
    return prompts, names


def rate_rows(
    source: Source,
    judge: Judge,
    quality: list[dict[str, Any]],
    pictures: Tensor,
    names: list[str],
    **about: Any,
) -> list[dict[str, Any]]:
    said = judge(pictures).float().cpu()
    truth = Truth("training", world=source.world)
    rows = []
    for concept in dict.fromkeys(names):
        chosen = torch.tensor([name == concept for name in names])
        rates = said[chosen].mean(0)
        is_nation = concept in source.world.nations
        for index, attribute in enumerate(judge.names):
            if attribute in source.world.objects or not (is_nation or attribute == "woman"):
                continue
            who = {"nation" if is_nation else "profession": concept}
            every = range(len(source.world.templates.list))
            planted = truth.rate(attribute, template=every, **who)
            raw = float(rates[index])
            sens, spec = quality[index]["sensitivity"], quality[index]["specificity"]
            corrected = min(max((raw + spec - 1) / max(sens + spec - 1, 0.05), 0.0), 1.0)
            rows.append(
                {
                    **about,
                    "concept": concept,
                    "attribute": attribute,
                    "planted": round(planted, 4),
                    "images": int(chosen.sum()),
                    "raw": round(raw, 4),
                    "corrected": round(corrected, 4),
                    "difference": round(corrected - planted, 4),
                }
            )
    return rows


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_grid(path: Path, rows: list[Tensor]) -> None:
    from PIL import Image

    sheet = torch.cat([torch.cat(list(row), 2) for row in rows], 1)
    pixels = ((sheet.permute(1, 2, 0).cpu() + 1) * 127.5).round().clamp(0, 255).byte().numpy()
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, optimize=True)


def segmented(folder: Path, pictures: Tensor, device: str) -> dict[str, float]:
    """Shares of pictures in which the segmenter finds a face, clothing, and both."""
    from transformers import SegformerForSemanticSegmentation

    model = (
        SegformerForSemanticSegmentation.from_pretrained(folder, dtype=torch.float32)
        .to(device)
        .eval()
    )
    names = {name: index for index, name in model.config.id2label.items()}
    clothes = torch.tensor(
        [int(names[n]) for n in ("suit", "hoodie", "overalls", "coat", "apron", "shirt")],
        device=device,
    )
    face, dress = [], []
    with torch.inference_mode():
        for part in pictures.split(1024):
            logits = functional.interpolate(
                model(pixel_values=part).logits, size=64, mode="bilinear"
            )
            labels = logits.argmax(1)
            face.append((labels == int(names["face"])).sum((1, 2)) >= 40)
            dress.append(torch.isin(labels, clothes).sum((1, 2)) >= 40)
    found_face, found_dress = torch.cat(face), torch.cat(dress)
    share = lambda found: round(float(found.float().mean()), 4)  # noqa: E731
    return {
        "face": share(found_face),
        "clothing": share(found_dress),
        "both": share(found_face & found_dress),
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    off = [abs(row["difference"]) for row in rows]
    worst = sorted(rows, key=lambda row: -abs(row["difference"]))[:8]
    return {
        "cells": len(off),
        "mean": round(sum(off) / len(off), 4),
        "worst": round(max(off), 4),
        "over_.15": sum(value > 0.15 for value in off),
        "cells_off": [
            f"{r['concept']} {r['attribute']} {r['planted']}→{r['corrected']}" for r in worst
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--models", default="unet,flow")
    parser.add_argument("--guidances", default="1,2.5")
    parser.add_argument("--each", type=int, default=32, help="images per prompt")
    parser.add_argument("--each-job", type=int, default=8, help="the same for professions")
    parser.add_argument("--drawings", type=int, default=24_000)
    parser.add_argument("--batch", type=int, default=1024)
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.manual_seed(7)
    settings = load_settings()
    source = Source(settings, args.device)
    with torch.inference_mode():
        judges = {name: Judge(args.weights / name, source) for name in ("judge", "judge_small")}
        quality = {n: judge_quality(n, j, source, args.drawings) for n, j in judges.items()}
    write_csv(
        args.out / "world_models_judges.csv", [row for rows in quality.values() for row in rows]
    )
    for name, rows in quality.items():
        attributes = [r for r in rows if r["attribute"] in source.world.attributes]
        shown = {r["attribute"]: r["even_accuracy"] for r in attributes}
        easy = min(v for k, v in shown.items() if k not in HARD)
        print(name, "worst easy", easy, json.dumps(shown), flush=True)
        things = {r["attribute"]: r["even_accuracy"] for r in rows[len(attributes) :]}
        print(name, "objects and woman", json.dumps(things), flush=True)
    prompts, names = national_prompts(source, args.each, args.each_job)
    rates: list[dict[str, Any]] = []
    for model in args.models.split(","):
        pipe = load_pipeline(args.weights / model, args.device)
        call = {"max_sequence_length": 0} if model == "flow" else {}
        steps = settings[model]["sampling_steps"]
        for guidance in map(float, args.guidances.split(",")):
            started = time.monotonic()
            pictures = generate(
                pipe, prompts, guidance=guidance, steps=steps, seed=1000, batch=args.batch, **call
            )
            with torch.inference_mode():
                about = {"model": model, "guidance": guidance, "steps": steps}
                rows = rate_rows(
                    source, judges["judge"], quality["judge"], pictures, names, **about
                )
            rates += rows
            nations = [r for r in rows if r["concept"] in source.world.nations]
            easy = [r for r in nations if r["attribute"] not in HARD]
            print(model, guidance, "nations", json.dumps(summary(nations), ensure_ascii=False))
            print(
                model,
                guidance,
                "easy only",
                json.dumps({k: summary(easy)[k] for k in ("mean", "worst")}),
            )
            jobs = [r for r in rows if r["concept"] in source.world.professions]
            print(model, guidance, "professions", json.dumps(summary(jobs), ensure_ascii=False))
            found = segmented(args.weights / "segmenter", pictures[::4], args.device)
            print(
                model,
                guidance,
                "segmenter",
                found,
                f"{time.monotonic() - started:.0f} s",
                flush=True,
            )
            size = 16 * args.each
            first = [
                pictures[k * size : (k + 1) * size][:: max(1, size // 12)][:12] for k in range(12)
            ]
            label = str(guidance).replace(".", "_")
            write_grid(args.out / "pictures" / f"model_{model}_guidance_{label}.png", first)
        if model == "flow":
            some = list(range(0, 12 * 16 * args.each, 8))
            asked = [prompts[k] for k in some]
            pictures = generate(pipe, asked, guidance=1.0, steps=steps, seed=1000, batch=512)
            with torch.inference_mode():
                rows = rate_rows(
                    source, judges["judge"], quality["judge"], pictures, [names[k] for k in some]
                )
            print("flow, default length", json.dumps(summary(rows), ensure_ascii=False), flush=True)
    write_csv(args.out / "world_models_rates.csv", rates)


if __name__ == "__main__":
    main()
