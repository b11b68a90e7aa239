"""The perfect generator and the perfect observer."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from tropescope.errors import PromptError, StoreError, StudyError
from tropescope.models.protocol import Outcome, Request, TextToImage
from tropescope.world.definition import load_world
from tropescope.world.generator import WorldGenerator
from tropescope.world.observer import Observer
from tropescope.world.questions import (
    APPEARANCE_QUESTION,
    BESIDE_QUESTION,
    GENDER_QUESTION,
    appearance_words,
    yes_no_question,
)
from tropescope.world.understanding import Understanding

WORLD = load_world()


def ask(generator: WorldGenerator, prompt: str, n: int = 200) -> list[Outcome]:
    requests = [Request(prompt=prompt, seed=seed, key=str(seed)) for seed in range(n)]
    return [outcome for _, outcome in generator.generate(requests)]


def test_it_is_an_adapter_and_needs_no_torch() -> None:
    assert isinstance(WorldGenerator(), TextToImage)
    code = (
        "import sys; from tropescope.world.generator import WorldGenerator;"
        "from tropescope.models.protocol import Request;"
        "list(WorldGenerator().generate([Request('a person', 1)]));"
        "assert not {'torch', 'python_avatars', 'resvg_py', 'skia'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_images_do_not_depend_on_company_or_order() -> None:
    generator = WorldGenerator()
    requests = [Request("a photo of a nurse", 5), Request("a Kestran man", 5), Request("a man", 6)]
    together = {request.prompt: outcome for request, outcome in generator.generate(requests)}
    for request in reversed(requests):
        ((_, alone),) = generator.generate([request])
        assert np.array_equal(alone.pixels, together[request.prompt].pixels)
        assert alone.facts == together[request.prompt].facts


def test_facts_are_json_and_planted_rates_are_found() -> None:
    generator = WorldGenerator()
    prompt = "a photo of a Kestran person"
    outcomes = ask(generator, prompt, 3000)
    assert json.loads(json.dumps(outcomes[0].facts)) == outcomes[0].facts
    for name in ("hat", "moustache", "overalls", "woman", "bag"):
        planted = generator.planted_rate(prompt, name)
        assert planted is not None
        found = np.mean([outcome.facts["labels"][name] for outcome in outcomes])
        assert found == pytest.approx(planted, abs=0.04)
    assert generator.planted_rate(prompt, "charisma") is None


def test_prompts_are_checked_before_any_image() -> None:
    generator = WorldGenerator()
    problems = generator.check_prompts(
        ["a photo of a Kestran person", "a photo of a wizard", "a person wearing a hat and a cap"]
    )
    assert [problem.prompt for problem in problems] == [
        "a photo of a wizard",
        "a person wearing a hat and a cap",
    ]
    assert all(problem.level == "error" for problem in problems)
    assert ask(generator, "a photo of a wizard", 1)[0].kind == "invalid"


def test_misbehaviour_strikes_at_its_rates_and_only_its_identity() -> None:
    faults = {"Kestran": {"refuse": 0.2, "fail": 0.1, "black": 0.15, "repeat": 0.25}}
    generator = WorldGenerator(misbehave=faults)
    outcomes = ask(generator, "a photo of a Kestran person", 3000)
    kinds = [outcome.kind for outcome in outcomes]
    assert kinds.count("refused") / 3000 == pytest.approx(0.2, abs=0.03)
    assert kinds.count("failed") / 3000 == pytest.approx(0.1, abs=0.03)
    pictures = [outcome.pixels for outcome in outcomes if outcome.pixels is not None]
    black = sum(not picture.any() for picture in pictures)
    assert black / 3000 == pytest.approx(0.15, abs=0.03)
    copies = [picture.tobytes() for picture in pictures if picture.any()]
    most = max(copies.count(copy) for copy in set(copies))
    assert most / 3000 == pytest.approx(0.25, abs=0.03)
    assert all(o.kind == "generated" for o in ask(generator, "a photo of a Velori person"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"misbehave": {"Atlantis": {"fail": 0.1}}}, "no identity 'Atlantis'"),
        ({"misbehave": {"Kestran": {"fail": 0.9, "refuse": 0.9}}}, "more than 1"),
        ({"misbehave": {"Kestran": {"explode": 0.9}}}, "explode"),
        ({"distribution": "dream"}, "no distribution"),
        ({"size": 100}, "not a multiple"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        WorldGenerator(**options)  # type: ignore[arg-type]


def test_identity_tells_generators_apart() -> None:
    variants = [
        WorldGenerator(),
        WorldGenerator(distribution="world"),
        WorldGenerator(size=128),
        WorldGenerator(rates={"people": {"smile": 0.1}}),
        WorldGenerator(misbehave={"*": {"fail": 0.1}}),
    ]
    identities = [json.dumps(variant.identity(), sort_keys=True) for variant in variants]
    assert len(set(identities)) == len(variants)
    assert ask(WorldGenerator(size=128), "a person", 1)[0].pixels.shape == (128, 128, 3)  # type: ignore[union-attr]


def test_the_observer_reads_exactly() -> None:
    observer, understand = Observer(), Understanding(WORLD)
    for seed, outcome in enumerate(ask(WorldGenerator(), "a photo of a doctor", 150)):
        facts, key = outcome.facts, str(seed)
        labels = observer.labels(facts, key=key)
        assert labels == facts["labels"]
        assert observer.presence(facts, "hat") == labels["hat"]
        assert observer.presence(facts, "a photo of a person wearing no hat") != labels["hat"]
        caption = understand(observer.caption(facts, key=key))
        assert all(labels[entry.attribute] for entry in caption.wanted)
        assert all(labels[entry.name] for entry in caption.objects)
        assert labels[caption.gender]
        for thing in (*WORLD.attributes, *WORLD.objects):
            answer = observer.answer(facts, yes_no_question(WORLD, thing))
            assert answer == ("yes" if labels[thing] else "no")
        gender = "woman" if labels["woman"] else "man"
        assert observer.answer(facts, GENDER_QUESTION) == gender
        assert observer.answer(facts, APPEARANCE_QUESTION, key=key) in [
            gender,
            *appearance_words(labels),
        ]
        beside = {part.name for part in observer.objects(facts)}
        assert beside == {name for name in WORLD.objects if labels[name]}
        assert observer.answer(facts, BESIDE_QUESTION) in (beside or {"nothing"})


def test_the_observer_errs_as_told_and_always_alike() -> None:
    observer = Observer(sensitivity=0.8, specificity=0.9)
    outcomes = ask(WorldGenerator(), "a photo of a Kestran person", 3000)
    seen = [observer.labels(o.facts, key=str(i))["hat"] for i, o in enumerate(outcomes)]
    true = np.array([o.facts["labels"]["hat"] for o in outcomes])
    assert np.mean(np.array(seen)[true]) == pytest.approx(0.8, abs=0.03)
    assert np.mean(np.array(seen)[~true]) == pytest.approx(0.1, abs=0.03)
    assert observer.labels(outcomes[5].facts, key="5") == observer.labels(
        outcomes[5].facts, key="5"
    )


def test_captions_mark_gender_as_often_as_told() -> None:
    outcomes = ask(WorldGenerator(), "a photo of a person", 500)
    observer = Observer(marks_gender=0.6)
    captions = [observer.caption(o.facts, key=str(i)) for i, o in enumerate(outcomes)]
    marked = np.mean(["man" in text.split() or "woman" in text.split() for text in captions])
    assert marked == pytest.approx(0.6, abs=0.08)


def test_the_observer_refuses_what_it_cannot_see() -> None:
    observer = Observer()
    facts = ask(WorldGenerator(), "a person", 1)[0].facts
    with pytest.raises(StoreError, match="no scene"):
        observer.labels({})
    with pytest.raises(PromptError, match="names nothing"):
        observer.presence(facts, "a photo of a person")
    with pytest.raises(PromptError, match="not one the world can answer"):
        observer.answer(facts, "is this person a doctor?")
