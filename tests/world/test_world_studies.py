"""The fictional twins of the ready studies: up to date, understood, with the truth as reference."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tropescope.study.definition import Study
from tropescope.study.loading import load_study
from tropescope.world.definition import load_world
from tropescope.world.generator import WorldGenerator
from tropescope.world.truth import Truth

ROOT = Path(__file__).parents[2]
NAMES = ("demo", "world_national", "world_professions", "world_triplets", "world_pull")


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools/world" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prompts(study: Study, phrase: str) -> list[str]:
    return [template.replace("{concept}", phrase) for template in study.prompts.templates]


@pytest.mark.parametrize("name", NAMES)
def test_the_study_is_what_the_world_file_says(name: str) -> None:
    written = (ROOT / "studies" / f"{name}.yaml").read_text(encoding="utf-8")
    assert written == tool("write_studies").STUDY_WRITERS[name](load_world()), (
        "run tools/world/write_studies.py"
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_word_is_known_and_references_are_the_truth(name: str) -> None:
    study = load_study(ROOT / "studies" / f"{name}.yaml")
    world = WorldGenerator(distribution="world")
    asked = [p for concept in study.concepts.values() for p in prompts(study, concept.phrase)]
    texts = [text for entry in study.attributes.values() for text in (entry.present, entry.absent)]
    assert world.check_prompts([*asked, *texts]) == []
    for reference in study.references:
        assert "world file" in reference.source
        assert reference.kind == "census"
        phrase = study.concepts[reference.concept].phrase
        rates = [world.planted_rate(p, reference.attribute) for p in prompts(study, phrase)]
        mean = sum(rate for rate in rates if rate is not None) / len(rates)
        assert reference.value == pytest.approx(mean, abs=1e-6)


def test_the_national_study_asks_for_everything_planted() -> None:
    study = load_study(ROOT / "studies/world_national.yaml")
    measured = set(study.pairs())
    for nation, entry in load_world().nations.items():
        for attribute in entry.attributes:
            assert (nation, attribute) in measured
    assert len(study.prompts.templates) == len(load_world().templates.list)
    reference = study.reference("Kestran", "hat")
    assert reference is not None
    assert reference.value == pytest.approx(Truth("world").rate("hat", nation="Kestran"))
