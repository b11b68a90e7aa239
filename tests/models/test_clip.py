"""The judge's encoders against plain calls of transformers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tropescope.errors import ModelError
from tropescope.models.clip import ClipEncoder
from tropescope.models.entry import OpenContext
from tropescope.models.fingerprints import FileFingerprints

pytestmark = pytest.mark.models
Build = Callable[[str], Path]


def encoder(folder: Path) -> ClipEncoder:
    context = OpenContext(FileFingerprints(), Path(), offline=True)
    return ClipEncoder(str(folder), revision=None, dtype=None, context=context)


def images() -> list[np.ndarray]:  # type: ignore[type-arg]
    rng = np.random.default_rng(0)
    return [
        rng.integers(0, 256, (h, w, 3), dtype=np.uint8) for h, w in ((40, 40), (64, 30), (9, 80))
    ]


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_embeddings_equal_the_models_own(tiny_model: Build, kind: str) -> None:
    import torch
    from PIL import Image
    from transformers import AutoModel, AutoProcessor

    folder = tiny_model(kind)
    ours = encoder(folder)
    plain = AutoModel.from_pretrained(folder).eval()
    processor = AutoProcessor.from_pretrained(folder, backend="pil")
    texts = ["a photo of a person wearing a hat", "a person"]
    with torch.inference_mode():
        inputs = processor(
            text=texts,
            images=[Image.fromarray(i) for i in images()],
            return_tensors="pt",
            padding="max_length" if kind == "siglip" else True,
            max_length=16 if kind == "siglip" else None,
        )
        if kind == "siglip":  # trained without a mask; its own tokenizer returns none
            inputs.pop("attention_mask")
        expected = plain(**inputs)
    assert ours.encode_images(images()) == pytest.approx(expected.image_embeds.numpy(), abs=1e-5)
    assert ours.encode_texts(texts) == pytest.approx(expected.text_embeds.numpy(), abs=1e-5)
    assert ours.logit_scale == pytest.approx(plain.logit_scale.exp().item())


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_a_vector_does_not_depend_on_its_batch(tiny_model: Build, kind: str) -> None:
    ours = encoder(tiny_model(kind))
    together = ours.encode_images(images())
    alone = np.concatenate([ours.encode_images([image]) for image in images()])
    assert together == pytest.approx(alone, abs=1e-5)
    assert np.linalg.norm(together, axis=1) == pytest.approx(1.0, abs=1e-5)
    texts = ["a hat", "a photo of a person wearing a red hat"]
    assert ours.encode_texts(texts)[0] == pytest.approx(ours.encode_texts(texts[:1])[0], abs=1e-5)


def test_texts_are_checked(tiny_model: Build) -> None:
    problems = encoder(tiny_model("siglip")).check_texts(["zebra", "a hat", "a " * 40])
    assert [p.level for p in problems] == ["error", "error"]
    assert "'zebra'" in problems[0].message
    assert "reads 16" in problems[1].message


def test_other_models_are_refused(tiny_model: Build, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tiny_model("clip"), tmp_path / "copy"))
    config = copy / "config.json"
    config.write_text(config.read_text().replace('"model_type": "clip"', '"model_type": "bert"'))
    with pytest.raises(ModelError, match="'bert' model"):
        encoder(copy).encode_texts(["a hat"])
    with pytest.raises(ModelError, match="no folder"):
        encoder(Path("no such folder!"))
