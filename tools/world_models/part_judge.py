"""The judges: small CLIP models that never saw a generator's text encoder.

Three lessons at once: caption against all captions of the batch; caption against the same caption
with one thing turned round; and, for every attribute, presence text against absence text, with both
answers weighing the same however rare the attribute is.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from data import Source
from loop import train
from networks import build_judge
from scenes import DEMANDS, Asked
from torch import Tensor
from torch.nn import functional

from tropescope.world.phrases import descriptions, object_phrase
from tropescope.world.scene import COLUMN


def pair_texts(source: Source, opening: str) -> tuple[list[str], list[str]]:
    """d+ and d− of every attribute and object, then woman against man."""
    subject = f"{opening} a person".strip()
    pairs = [descriptions(source.world, name, subject=subject) for name in source.world.attributes]
    pairs += [
        (f"{subject} {object_phrase(name)}", f"{subject} with no {name}")
        for name in source.world.objects
    ]
    pairs.append((f"{opening} a woman".strip(), f"{opening} a man".strip()))
    return [present for present, _ in pairs], [absent for _, absent in pairs]


def pair_labels(source: Source, codes: Tensor) -> Tensor:
    woman = codes[:, COLUMN["appearance"]] == 0
    sampler = source.sampler
    return torch.cat([sampler.labels(codes), sampler.object_labels(codes), woman[:, None]], 1)


def text_features(model: Any, ids: Tensor) -> Tensor:
    return functional.normalize(_pooled(model.get_text_features(input_ids=ids)).float(), dim=-1)


def image_features(model: Any, pictures: Tensor) -> Tensor:
    return functional.normalize(
        _pooled(model.get_image_features(pixel_values=pictures)).float(), dim=-1
    )


def _pooled(output: Any) -> Tensor:
    found: Tensor = getattr(output, "pooler_output", output)
    return found


class Pool:
    """Scenes and pictures made once and used again, for training without a fast device."""

    def __init__(self, source: Source, vae: Any, stage: dict[str, Any]) -> None:
        self.count = stage["pool"]
        parts = []
        for start in range(0, self.count, 500):
            asked, codes = source.scenes("judges", min(500, self.count - start))
            parts.append((asked, codes, source.spoil(source.drawer.pictures(codes), vae, stage)))
        fields = {
            field: torch.cat([getattr(asked, field) for asked, _, _ in parts])
            for field in parts[0][0].__dict__
        }
        self.asked = Asked(**fields)
        self.codes = torch.cat([codes for _, codes, _ in parts])
        self.pictures = torch.cat([pictures for _, _, pictures in parts])

    def some(self, batch: int) -> tuple[Asked, Tensor, Tensor]:
        rows = torch.randint(self.count, (batch,), device=self.codes.device)
        asked = Asked(**{name: value[rows] for name, value in self.asked.__dict__.items()})
        return asked, self.codes[rows], self.pictures[rows]


def train_judge(
    name: str, source: Source, vae: Any, *, scale: float, start: Path | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two stages; in the second, presence against absence weighs more, for what is hard to see.

    `start` is a folder in which the first stage has been saved.
    """
    part = source.settings[name]
    torch.manual_seed(part["seed"])
    model = build_judge(source.sizes, part).to(source.device)
    if start is not None:
        model = type(model).from_pretrained(start / name / name, dtype=torch.float32)
        model = model.to(source.device)
        torch.manual_seed(part["seed"] + 1)
    openings = ["a photo of", *(t.text for t in source.world.templates.list)]
    plus, minus = zip(*(pair_texts(source, opening) for opening in openings), strict=True)
    bank = torch.stack(
        [torch.stack([source.writer.texts(texts) for texts in side]) for side in (plus, minus)]
    )
    columns = torch.arange(bank.shape[2], device=source.device)
    hard = torch.ones(bank.shape[2], device=source.device)
    names = list(source.world.attributes)
    for thing in source.world.hard_to_see:
        hard[names.index(thing)] = part["second"]["hard"]

    def step(stage: dict[str, Any], pool: Pool | None) -> Tensor:
        batch = stage["batch"]
        diagonal = torch.arange(batch, device=source.device)
        with torch.no_grad():
            if pool is None:
                asked, codes = source.scenes("judges", batch)
                pictures = source.spoil(source.drawer.pictures(codes), vae, stage)
            else:
                asked, codes, pictures = pool.some(batch)
            ids = source.writer.write(asked, codes)
            used = asked.attributes < 2 * len(source.world.attributes)
            lot = torch.rand(batch, DEMANDS, device=source.device) * used
            turned = source.writer.write(asked, codes, flip=lot.argmax(1))
            usable = used.any(1)
            labels = pair_labels(source, codes)
            rows = torch.randint(len(openings) * 2, columns.shape, device=source.device)
            rows = (rows - len(openings)).clamp_min(0)  # half of them "a photo of"
            texts = bank[:, rows, columns].flatten(0, 1)
        features = text_features(model, torch.cat([ids, turned, texts]))
        own, wrong, pairs = features.split([batch, batch, len(texts)])
        seen = image_features(model, pictures)
        factor = model.logit_scale.clamp(max=4.605).exp()
        similar = factor * seen @ own.T
        against = (factor * (seen * wrong).sum(1, keepdim=True)).masked_fill(~usable[:, None], -1e4)
        loss = functional.cross_entropy(torch.cat([similar, against], 1), diagonal)
        loss = (loss + functional.cross_entropy(similar.T, diagonal)) / 2
        present, absent = pairs.chunk(2)
        margin = factor * seen @ (present - absent).T
        share = labels.float().mean(0).clamp(0.02, 0.98)
        weight = torch.where(labels, 0.5 / share, 0.5 / (1 - share))
        if "hard" in stage:
            weight = weight * hard
        decided = functional.binary_cross_entropy_with_logits(margin, labels.float(), weight=weight)
        return loss + stage["pairs"] * decided

    facts: dict[str, Any] = {}
    stages = [{**part, **part["second"]}] if start else [part, {**part, **part["second"]}]
    for number, stage in enumerate(stages):
        pool = Pool(source, vae, stage) if "pool" in stage else None
        found = train(
            name, [model], [partial(step, stage, pool)], stage, device=source.device, scale=scale
        )
        facts |= found if number == 0 else {f"second_{key}": value for key, value in found.items()}
    return {name: model}, facts
