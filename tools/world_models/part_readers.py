"""Captioner, question answerer, language model and segmenter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from data import Source
from loop import train
from networks import build_answerer, build_captioner, build_language, build_segmenter
from torch import Tensor
from torch.nn import functional
from transformers import BlipForConditionalGeneration

Trained = tuple[dict[str, Any], dict[str, Any]]


def _next_word_loss(logits: Tensor, ids: Tensor) -> Tensor:
    """Cross-entropy of each next token; padding does not count."""
    return functional.cross_entropy(
        logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten(), ignore_index=0
    )


def train_captioner(source: Source, vae: Any, *, scale: float) -> Trained:
    part = source.settings["captioner"]
    torch.manual_seed(part["seed"])
    model = build_captioner(source.sizes, part).to(source.device)

    def step() -> Tensor:
        with torch.no_grad():
            _, codes = source.scenes("observers", part["batch"])
            pictures = source.spoil(source.drawer.pictures(codes), vae, part)
            ids = source.writer.describe(codes)
        seen = model.vision_model(pixel_values=pictures).last_hidden_state
        logits = model.text_decoder(
            input_ids=ids, attention_mask=(ids > 0).long(), encoder_hidden_states=seen
        ).logits
        return _next_word_loss(logits, ids)

    facts = train("captioner", [model], [step], part, device=source.device, scale=scale)
    return {"captioner": model}, facts


def train_answerer(source: Source, vae: Any, *, scale: float, captioner: Path) -> Trained:
    """The eyes are the captioner's and stay as they are, so each picture is looked at only once."""
    part = source.settings["answerer"]
    torch.manual_seed(part["seed"])
    model = build_answerer(source.sizes, part).to(source.device)
    eyes = BlipForConditionalGeneration.from_pretrained(captioner, dtype=torch.float32).vision_model
    model.vision_model.load_state_dict(eyes.state_dict())
    model.vision_model.requires_grad_(False)
    views, scenes = [], []
    with torch.no_grad():
        for start in range(0, part["pool"], 250):
            _, codes = source.scenes("observers", min(250, part["pool"] - start))
            pictures = source.spoil(source.drawer.pictures(codes), vae, part)
            views.append(model.vision_model(pixel_values=pictures).last_hidden_state.half())
            scenes.append(codes)
    pool, known = torch.cat(views), torch.cat(scenes)
    start, end = 1, source.writer.end

    def step() -> Tensor:
        with torch.no_grad():
            rows = torch.randint(len(known), (part["batch"],), device=source.device)
            questions, answers = source.writer.ask_questions(known[rows])
            word = torch.stack(
                [torch.full_like(answers, start), answers, torch.full_like(answers, end)], 1
            )
            real = (questions > 0).long()
            # `generate` lets the decoder see padded places of the question: learn both ways
            lenient = torch.rand(len(answers), 1, device=source.device) < 0.5
            visible = torch.where(lenient, torch.ones_like(real), real)
            seen = pool[rows].float()
        asked = model.text_encoder(
            input_ids=questions, attention_mask=real, encoder_hidden_states=seen
        ).last_hidden_state
        logits = model.text_decoder(
            input_ids=word,
            attention_mask=torch.ones_like(word),
            encoder_hidden_states=asked,
            encoder_attention_mask=visible,
        ).logits
        return _next_word_loss(logits, word)

    facts = train("answerer", [model], [step], part, device=source.device, scale=scale)
    return {"answerer": model}, facts


def train_language(source: Source, *, scale: float) -> Trained:
    part = source.settings["language"]
    torch.manual_seed(part["seed"])
    model = build_language(source.sizes, part).to(source.device)

    def step() -> Tensor:
        with torch.no_grad():
            asked, codes = source.scenes("language", part["batch"])
            ids = source.writer.write(asked, codes)
        return _next_word_loss(model(input_ids=ids, use_cache=False).logits, ids)

    facts = train("language", [model], [step], part, device=source.device, scale=scale)
    return {"language": model}, facts


def train_segmenter(source: Source, vae: Any, *, scale: float) -> Trained:
    part = source.settings["segmenter"]
    torch.manual_seed(part["seed"])
    model = build_segmenter(source.sizes, part).to(source.device).train()

    def step() -> Tensor:
        with torch.no_grad():
            _, codes = source.scenes("observers", part["batch"])
            pictures = source.spoil(source.drawer.pictures(codes), vae, part)
            parts = source.drawer.parts(codes)
        logits = model(pixel_values=pictures).logits.float()
        logits = functional.interpolate(
            logits, size=parts.shape[1:], mode="bilinear", align_corners=False
        )
        return functional.cross_entropy(logits, parts)

    facts = train("segmenter", [model], [step], part, device=source.device, scale=scale)
    return {"segmenter": model.eval()}, facts
