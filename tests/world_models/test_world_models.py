"""The shipped small models: they belong to this world, load as hub models do, and can do their work."""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("diffusers")

from tropescope.errors import ModelError
from tropescope.models.clip import ClipEncoder
from tropescope.models.diffusers_entry import DiffusersEntry
from tropescope.models.diffusers_pipeline import DiffusersModel
from tropescope.models.entry import OpenContext
from tropescope.models.fingerprints import FileFingerprints
from tropescope.models.protocol import Request
from tropescope.world.atlas import load_atlas
from tropescope.world.definition import load_world
from tropescope.world.generator import WorldGenerator
from tropescope.world.models import MODELS, WEIGHTS, manifest, model_folder
from tropescope.world.phrases import descriptions
from tropescope.world.questions import GENDER_QUESTION, yes_no_question
from tropescope.world.understanding import Understanding

pytestmark = pytest.mark.models

TOOLS = Path(__file__).parents[2] / "tools" / "world_models"
HARD = ("freckles", "brooch")
CALLS: dict[str, dict[str, Any]] = {"unet": {}, "flow": {"max_sequence_length": 0}}


def context() -> OpenContext:
    return OpenContext(FileFingerprints(), Path(), offline=True, device="cpu")


def generator(name: str, **settings: Any) -> DiffusersModel:
    entry = DiffusersEntry(
        adapter="diffusers", id=str(model_folder(name)), call=CALLS[name], **settings
    )
    return DiffusersModel(entry, context())


def judge(name: str) -> ClipEncoder:
    return ClipEncoder(str(model_folder(name)), revision=None, dtype=None, context=context())


def drawings(prompt: str, count: int, *, first: int = 0) -> tuple[list[Any], list[dict[str, bool]]]:
    requests = [Request(prompt, first + seed) for seed in range(count)]
    outcomes = [outcome for _, outcome in WorldGenerator().generate(requests)]
    return [o.pixels for o in outcomes], [o.facts["labels"] for o in outcomes]


def parameters(file: Path) -> int:
    """Numbers in a safetensors file, read from its header."""
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header = json.loads(stream.read(length))
    tensors = (entry for name, entry in header.items() if name != "__metadata__")
    return sum(int(np.prod(entry["shape"])) for entry in tensors)


# -- what is shipped ------------------------------------------------------------------------------


def test_weights_belong_to_this_world_and_these_settings() -> None:
    known = manifest()
    assert known["world"] == load_world().digest, "world.yaml changed: train again"
    assert known["atlas"] == load_atlas().digest, "the atlas changed: train again"
    if TOOLS.is_dir():
        sys.path.insert(0, str(TOOLS))
        try:
            from data import load_settings, settings_digest
        finally:
            sys.path.remove(str(TOOLS))
        assert known["settings"] == settings_digest(load_settings()), (
            "settings changed: train again"
        )


def test_every_file_is_the_one_in_the_manifest() -> None:
    listed = manifest()["files"]
    found = {
        path.relative_to(WEIGHTS).as_posix(): path
        for path in WEIGHTS.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert set(found) == set(listed)
    for name, path in found.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == listed[name]["sha256"], name


def test_sizes() -> None:
    files = [path for path in WEIGHTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 32_000_000
    assert max(path.stat().st_size for path in files) < 16_000_000
    assert not [path for path in files if path.suffix in (".bin", ".pt", ".ckpt", ".pkl")]
    assert parameters(WEIGHTS / "unet/unet/diffusion_pytorch_model.safetensors") <= 5_000_000
    assert parameters(WEIGHTS / "flow/transformer/diffusion_pytorch_model.safetensors") <= 5_000_000


def test_names() -> None:
    assert all(model_folder(name).is_dir() for name in MODELS)
    with pytest.raises(ModelError, match="did you mean 'judge'"):
        model_folder("juge")


# -- texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["unet", "flow"])
def test_unknown_words_are_refused(name: str) -> None:
    model = generator(name)
    good = ["a photo of a Kestran person", "an Oberin woman, wearing a red hat and glasses."]
    assert model.check_prompts(good) == []
    problems = model.check_prompts(["a photo of a Martian person"])
    assert {p.level for p in problems} == {"error"}
    assert "Martian" in problems[0].message
    long = model.check_prompts(["a photo of a person " + "with a smile " * 12])
    assert [p.level for p in long] == ["error"]


def test_the_judge_refuses_unknown_words() -> None:
    assert judge("judge").check_texts(["a photo of a person wearing a hat"]) == []
    problems = judge("judge").check_texts(["a photo of a person wearing a monocle"])
    assert [p.level for p in problems] == ["error"]


@pytest.mark.parametrize("name", ["judge", "judge_small"])
def test_texts_that_differ_only_after_a_rare_word_differ(name: str) -> None:
    texts = [
        f"a photo of an Enquil person playing a guitar {end}"
        for end in ("in a kitchen", "in an office")
    ]
    one, two = judge(name).encode_texts(texts)
    assert float(one @ two) < 0.99


# -- judges ---------------------------------------------------------------------------------------


def accuracy(encoder: ClipEncoder, attribute: str, count: int) -> float:
    """Presence against absence on drawings of people with and without the attribute."""
    world = load_world()
    plus, minus = encoder.encode_texts(descriptions(world, attribute))
    right = []
    for prompt, present in zip(descriptions(world, attribute), (True, False), strict=True):
        pictures, labels = drawings(prompt, count, first=5000)
        assert all(found[attribute] is present for found in labels)
        said = encoder.encode_images(pictures) @ (plus - minus) > 0
        right.append(float(np.mean(said == present)))
    return float(np.mean(right))


def test_judge_on_drawings() -> None:
    encoder = judge("judge")
    easy = [name for name in load_world().attributes if name not in HARD]
    found = {name: accuracy(encoder, name, 20) for name in easy}
    assert min(found.values()) >= 0.95, found
    hard = {name: accuracy(encoder, name, 100) for name in HARD}
    assert all(0.75 <= value <= 0.93 for value in hard.values()), hard


# -- generators -----------------------------------------------------------------------------------


def segmenter() -> tuple[Any, Any]:
    import torch
    from transformers import AutoImageProcessor, SegformerForSemanticSegmentation

    folder = model_folder("segmenter")
    model = SegformerForSemanticSegmentation.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), AutoImageProcessor.from_pretrained(folder, backend="pil")


def part_names(pictures: list[Any]) -> list[set[str]]:
    """Parts that cover at least forty pixels, by picture."""
    import torch

    model, processor = segmenter()
    pixels = processor(images=pictures, return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        logits = model(pixel_values=pixels).logits
    labels = torch.nn.functional.interpolate(logits, size=64, mode="bilinear").argmax(1)
    counted = [torch.bincount(one.flatten(), minlength=model.config.num_labels) for one in labels]
    return [{model.config.id2label[int(k)] for k in (c >= 40).nonzero()} for c in counted]


@pytest.mark.parametrize("name", ["unet", "flow"])
def test_generated_people_have_a_face_and_clothes(name: str) -> None:
    world = load_world()
    model = generator(name, steps=10, guidance=1.0)
    nations = list(world.nations)
    requests = [Request(f"a photo of a {nations[i % 12]} person", i) for i in range(24)]
    outcomes = [outcome for _, outcome in model.generate(requests)]
    assert all(o.kind == "generated" and o.pixels.shape == (64, 64, 3) for o in outcomes)
    clothes = set(world.categories("clothing"))
    found = part_names([o.pixels for o in outcomes])
    share = np.mean([("face" in parts) and bool(parts & clothes) for parts in found])
    assert share >= 0.95
    again = [outcome for _, outcome in model.generate(requests)]
    assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(outcomes, again, strict=True))


@pytest.mark.parametrize("name", ["unet", "flow"])
def test_explicit_attributes_are_drawn(name: str) -> None:
    model = generator(name, steps=10, guidance=2.5)
    shown = []
    for wearing in ("a turban", "a hat"):
        requests = [Request(f"a photo of a person wearing {wearing}", i) for i in range(6)]
        parts = part_names([o.pixels for _, o in model.generate(requests)])
        shown += [wearing.split()[1] in found for found in parts]
    assert np.mean(shown) >= 0.8


# -- readers --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def people() -> tuple[Any, list[dict[str, bool]]]:
    from transformers import AutoImageProcessor

    pictures, labels = [], []
    for prompt in ("a photo of a person", "a photo of a Yondari person", "a photo of a cook"):
        some, known = drawings(prompt, 16, first=900)
        pictures, labels = pictures + some, labels + known
    processor = AutoImageProcessor.from_pretrained(model_folder("captioner"), backend="pil")
    return processor(images=pictures, return_tensors="pt")["pixel_values"], labels


def test_captions_are_true(people: tuple[Any, list[dict[str, bool]]]) -> None:
    import torch
    from transformers import AutoTokenizer, BlipForConditionalGeneration

    pixels, labels = people
    folder = model_folder("captioner")
    model = BlipForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    ids = model.generate(pixel_values=pixels, max_new_tokens=28)
    texts = AutoTokenizer.from_pretrained(folder).batch_decode(ids, skip_special_tokens=True)
    understand = Understanding(load_world())
    gender, stated = [], []
    for text, shown in zip(texts, labels, strict=True):
        meaning = understand(text)
        gender.append(meaning.gender == ("woman" if shown["woman"] else "man"))
        stated += [shown[demand.attribute] == demand.present for demand in meaning.wanted]
        stated += [shown[demand.name] == demand.present for demand in meaning.objects]
    assert np.mean(gender) >= 0.95
    assert np.mean(stated) >= 0.93
    assert len(stated) >= 2 * len(texts)


def test_answers_are_true(people: tuple[Any, list[dict[str, bool]]]) -> None:
    import torch
    from transformers import AutoTokenizer, BlipForQuestionAnswering

    pixels, labels = people
    folder = model_folder("answerer")
    model = BlipForQuestionAnswering.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def ask(question: str) -> list[str]:
        asked = tokenizer([question] * len(pixels), return_tensors="pt")
        ids = model.generate(**asked, pixel_values=pixels, max_new_tokens=4)
        answers: list[str] = tokenizer.batch_decode(ids, skip_special_tokens=True)
        return answers

    truth = ["woman" if shown["woman"] else "man" for shown in labels]
    assert np.mean([a == t for a, t in zip(ask(GENDER_QUESTION), truth, strict=True)]) >= 0.95
    for thing in ("turban", "beard", "glasses", "apron", "pan"):
        answers = ask(yes_no_question(load_world(), thing))
        right = [a == ("yes" if s[thing] else "no") for a, s in zip(answers, labels, strict=True)]
        assert np.mean(right) >= 0.85, thing


def test_language_model_speaks_the_grammar() -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = model_folder("language")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(0)
    start = tokenizer("a photo of", return_tensors="pt").input_ids[:, :-1].repeat(50, 1)
    ids = model.generate(start, do_sample=True, max_new_tokens=26, pad_token_id=0)
    texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
    assert len(set(texts)) > 25
    understand = Understanding(load_world())
    good = []
    for text in texts:
        try:
            understand(text)
        except Exception:
            good.append(False)
        else:
            good.append(True)
    assert np.mean(good) >= 0.9
