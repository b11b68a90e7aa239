"""The torch twins: same scenes, same pixels, and texts that say what is there."""

from __future__ import annotations

import numpy as np
import pytest

from tropescope.world.definition import load_world
from tropescope.world.meaning import Meaning, Wanted, WantedObject
from tropescope.world.questions import all_questions, appearance_words, gender_word
from tropescope.world.render import render, render_owners
from tropescope.world.sampling import draw_scenes
from tropescope.world.scene import Scenes, labels_of
from tropescope.world.tables import tables_of
from tropescope.world.understanding import Understanding

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.models

from tropescope.world.render_torch import TorchRenderer  # noqa: E402
from tropescope.world.sampling_torch import PromptBatch, TorchSampler  # noqa: E402
from tropescope.world.texts_torch import TorchTexts  # noqa: E402

WORLD = load_world()
SAMPLER = TorchSampler(WORLD)
TEXTS = TorchTexts(SAMPLER)
COUNT = 300


def code(names: object, name: str | None) -> int:
    return -1 if name is None else list(names).index(name)  # type: ignore[call-overload]


def batch_of(meaning: Meaning, count: int) -> PromptBatch:
    def filled(value: int) -> object:
        return torch.full((count,), value)

    demands = [2 * code(WORLD.attributes, w.attribute) + (not w.present) for w in meaning.wanted]
    return PromptBatch(
        nation=filled(code(WORLD.nations, meaning.nation)),
        profession=filled(code(WORLD.professions, meaning.profession)),
        gender=filled(code(WORLD.genders, meaning.gender)),
        place=filled(code(WORLD.places, meaning.place)),
        template=filled(-1 if meaning.template is None else meaning.template),
        demands=torch.tensor([[*demands, -1]]).expand(count, -1),
        object=filled(code(WORLD.objects, meaning.objects[0].name if meaning.objects else None)),
    )


@pytest.mark.parametrize("distribution", ["training", "world"])
@pytest.mark.parametrize(
    "meaning",
    [
        Meaning(),
        Meaning(nation="Velori", template=5, place="in a garden"),
        Meaning(nation="Yondari", profession="musician", gender="non-binary person"),
        Meaning(wanted=(Wanted("long_hair", False), Wanted("glasses"))),
        Meaning(gender="woman", wanted=(Wanted("beard"),), objects=(WantedObject("hammer"),)),
    ],
    ids=str,
)
def test_scenes_are_those_of_numpy(meaning: Meaning, distribution: str) -> None:
    """Seeds of all sizes: the integer arithmetic must wrap alike."""
    seeds = [*range(COUNT - 3), 2**31, 2**62 + 12345, 2**63 - 1]
    expected = draw_scenes(tables_of(WORLD, distribution), meaning, seeds)
    sampler = TorchSampler(WORLD, distribution)
    codes = sampler.draw(batch_of(meaning, COUNT), torch.tensor(seeds))
    assert np.array_equal(codes.numpy(), expected.codes)


def test_pixels_and_owners_are_those_of_numpy() -> None:
    scenes = draw_scenes(tables_of(WORLD, "training"), Meaning(), range(COUNT))
    codes = torch.as_tensor(scenes.codes.astype(np.int64))
    renderer = TorchRenderer(WORLD)
    pixels = renderer.render(codes).permute(0, 2, 3, 1).numpy()
    assert np.abs(pixels.astype(int) - render(scenes).astype(int)).max() <= 1
    assert np.array_equal(renderer.owners(codes).numpy(), render_owners(scenes))


def test_prompts_mean_what_was_drawn_and_scenes_obey() -> None:
    understand = Understanding(WORLD)
    generator = torch.Generator().manual_seed(1)
    prompts = TEXTS.draw_prompts(COUNT, generator=generator)
    codes = SAMPLER.draw(prompts, torch.arange(COUNT))
    tokens = TEXTS.write_prompts(prompts, codes, generator=generator)
    assert tokens.shape == (COUNT, TEXTS.length)
    assert int((tokens > 0).sum(1).max()) < TEXTS.length
    ends = (tokens == len(TEXTS.vocabulary) - 1).sum(1)
    assert bool((ends == 1).all())
    scenes = Scenes(WORLD, codes.numpy().astype(np.int16))
    shown = labels_of(scenes)
    for index in range(COUNT):
        meaning = understand(TEXTS.vocabulary.decode(tokens[index]))
        scene = scenes.scene(index)
        assert (meaning.nation, meaning.profession, meaning.gender) == (
            scene.nation,
            scene.profession,
            scene.gender,
        )
        assert (meaning.place, meaning.template) == (scene.place, scene.template)
        for demand in meaning.wanted:
            assert shown[index][demand.attribute] == demand.present
            if demand.colour is not None:
                slot = WORLD.attributes[demand.attribute].slot
                assert getattr(scene, f"{slot}_colour") == demand.colour
        for thing in meaning.objects:
            assert shown[index][thing.name]


def test_captions_are_true_and_name_absence_as_often_as_presence() -> None:
    understand = Understanding(WORLD)
    generator = torch.Generator().manual_seed(2)
    prompts = TEXTS.draw_prompts(3000, generator=generator)
    codes = SAMPLER.draw(prompts, torch.arange(3000))
    tokens = TEXTS.describe(codes, generator=generator)
    shown = labels_of(Scenes(WORLD, codes.numpy().astype(np.int16)))
    states = []
    for index in range(3000):
        meaning = understand(TEXTS.vocabulary.decode(tokens[index]))
        assert shown[index][meaning.gender]
        for demand in meaning.wanted:
            assert shown[index][demand.attribute] == demand.present
            states.append(demand.present)
        assert all(shown[index][thing.name] for thing in meaning.objects)
    assert np.mean(states) == pytest.approx(0.5, abs=0.12)


def test_answers_are_true() -> None:
    questions = all_questions(WORLD)
    generator = torch.Generator().manual_seed(3)
    codes = SAMPLER.draw(TEXTS.draw_prompts(COUNT, generator=generator), torch.arange(COUNT))
    asked, answers = TEXTS.ask(codes, generator=generator)
    shown = labels_of(Scenes(WORLD, codes.numpy().astype(np.int16)))
    kinds = set()
    for index, labels in enumerate(shown):
        question = questions[tuple(TEXTS.vocabulary.decode(asked[index]).split())]
        answer = TEXTS.vocabulary.words[int(answers[index])]
        kinds.add(question.kind)
        beside = [name for name in WORLD.objects if labels[name]]
        allowed = {
            "yes or no": ["yes" if labels.get(question.about) else "no"],
            "gender": [gender_word(labels)],
            "appearance": [gender_word(labels), *appearance_words(labels)],
            "beside": beside or ["nothing"],
        }[question.kind]
        assert answer in allowed
    assert len(kinds) == 4
