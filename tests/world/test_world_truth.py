"""Closed-form truth against hand calculation, and 20,000 drawn people per cell against it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tropescope.errors import StudyError
from tropescope.world.definition import load_world
from tropescope.world.meaning import Meaning, Wanted, WantedObject
from tropescope.world.sampling import draw_scenes
from tropescope.world.scene import Scenes, labels_of
from tropescope.world.tables import tables_of
from tropescope.world.truth import Truth

N = 20_000
WORLD = load_world()
EVERY_TEMPLATE = range(len(WORLD.templates.list))


def draw(meaning: Meaning, distribution: str = "training", *, n: int = N, start: int = 0) -> Scenes:
    return draw_scenes(tables_of(WORLD, distribution), meaning, range(start, start + n))


def shown(scenes: Scenes) -> NDArray[np.bool_]:
    """[drawing, everything visible]."""
    return np.array([list(row.values()) for row in labels_of(scenes)])


CELLS = [
    Meaning(),
    Meaning(nation="Kestran"),
    Meaning(nation="Velori", gender="woman"),
    Meaning(nation="Zorvane", gender="non-binary person", place="in a kitchen"),
    Meaning(profession="nurse", template=3),
    Meaning(nation="Yondari", profession="musician"),
    Meaning(nation="Oberin", profession="manager", gender="man", template=9),
    Meaning(nation="Yondari", wanted=(Wanted("long_hair", False), Wanted("glasses"))),
    Meaning(objects=(WantedObject("hammer"), WantedObject("cat", False))),
]


@pytest.mark.parametrize("distribution", ["world", "training", "faithful"])
@pytest.mark.parametrize("meaning", CELLS, ids=str)
def test_drawn_people_have_the_planted_rates(meaning: Meaning, distribution: str) -> None:
    """All rates of a cell at once: the largest of ~40 standardised errors stays below 4.5."""
    rates = Truth(distribution).of(meaning)
    truth = np.array([rates.rate(name) for name in WORLD.visible])
    found = shown(draw(meaning, distribution)).mean(0)
    certain = (truth < 1e-12) | (truth > 1 - 1e-12)
    assert np.array_equal(found[certain], truth[certain].round())
    error = np.sqrt(truth * (1 - truth) / N)
    assert np.abs((found - truth)[~certain] / error[~certain]).max() < 4.5


def test_rates_by_hand() -> None:
    """Independent of the tables: headwear hides hair, facial hair is men's, odds multiply."""
    truth = Truth("training")
    women = 0.30
    assert truth.share_of_women() == pytest.approx(women)
    assert truth.rate("beard") == pytest.approx(0.70 * 0.22)
    assert truth.rate("headscarf") == pytest.approx(women * 0.06)
    hidden_f, hidden_m = 0.04 + 0.06, 0.04
    long_hair = women * 0.75 * (1 - hidden_f) + 0.70 * 0.08 * (1 - hidden_m)
    assert truth.rate("long_hair") == pytest.approx(long_hair)
    bare_f, bare_m = 1 - 0.04 - 0.06 - 0.10 - 0.08, 1 - 0.04 - 0.10 - 0.08
    assert truth.rate("bald") == pytest.approx(women * 0.01 * bare_f + 0.70 * 0.15 * bare_m)
    brim = 0.18
    seen_f = bare_f * (1 - 0.01) + brim * 0.75
    seen_m = bare_m * (1 - 0.15) + brim * 0.08
    assert truth.rate("grey_hair") == pytest.approx(0.18 * (women * seen_f + 0.70 * seen_m))
    # A nation that names one attribute of a slot leaves the others their proportions.
    assert truth.rate("cap", nation="Kestran", gender="man") == pytest.approx(0.2 * 0.08 / 0.90)
    # Two places beside the person, filled independently.
    assert truth.object_rate("ball", Meaning(gender="man")) == pytest.approx(1 - 0.91**2)
    assert truth.object_bias_score("ball") == pytest.approx(0.09 / 0.11)
    # Nation and profession multiply odds: Oberin glasses .75, librarian .70, anybody .20.
    table = np.array([[0.75, 0.0], [0.70, 0.0]])
    others = 0.06 / 0.80 * (1 - table[:, 0])
    weights = np.array(
        [
            0.75 * 0.70 / 0.20,
            others[0] * others[1] / 0.06,
            (1 - 0.75 - others[0]) * (1 - 0.70 - others[1]) / 0.74,
        ]
    )
    both = truth.rate("glasses", nation="Oberin", profession="librarian")
    assert both == pytest.approx(weights[0] / weights.sum())


def test_the_intersection_is_stronger_than_its_parts() -> None:
    truth, without = Truth("training"), WORLD.model_copy(update={"intersections": ()})
    parts = Truth("training", world=without.__class__.model_validate(without.model_dump()))
    cell = {"nation": "Yondari", "profession": "musician"}
    assert truth.rate("sunglasses", **cell) == pytest.approx(0.80)  # type: ignore[arg-type]
    expected = parts.rate("sunglasses", **cell)  # type: ignore[arg-type]
    assert expected < 0.45
    assert expected > max(
        truth.rate("sunglasses", nation="Yondari"), truth.rate("sunglasses", profession="musician")
    )
    world = Truth("world")
    by_rule = Truth("world", world=without.__class__.model_validate(without.model_dump()))
    assert world.rate("sunglasses", **cell) == by_rule.rate("sunglasses", **cell)  # type: ignore[arg-type]


def test_neutral_leans_to_man_and_professions_are_exaggerated() -> None:
    world, training, faithful = Truth("world"), Truth("training"), Truth("faithful")
    assert training.share_of_women() < world.share_of_women() == pytest.approx(0.5)
    exaggerated = 0
    for profession in WORLD.professions:
        true = world.share_of_women(profession=profession)
        drawn = training.share_of_women(profession=profession)
        assert faithful.share_of_women(profession=profession) == pytest.approx(true)
        exaggerated += drawn != pytest.approx(true)
        assert drawn == pytest.approx(true) or (drawn > true) == (true > 0.5)
    assert exaggerated >= 5


@pytest.mark.parametrize("name", WORLD.visible)
def test_template_shifts_average_out_exactly(name: str) -> None:
    truth = Truth("training")
    for cell in ({}, {"nation": "Velori"}, {"profession": "musician"}):
        plain = truth.rate(name, **cell)  # type: ignore[arg-type]
        mean = truth.rate(name, template=EVERY_TEMPLATE, **cell)  # type: ignore[arg-type]
        assert mean == pytest.approx(plain, abs=1e-12)


def test_the_planted_correlation_within_prompts_is_found() -> None:
    """One-way analysis of variance over the templates; an attribute alone in its slot by hand."""
    meaning = Meaning(nation="Nolvar")
    truth = Truth("training")
    strength = WORLD.templates.strength
    by_hand = strength**2 * 0.45 * 0.55
    assert truth.within_prompt_correlation("brooch", meaning) == pytest.approx(by_hand)
    names = ["brooch", "hat", "woman", "smile"]
    columns = [WORLD.visible.index(name) for name in names]
    size = 4_000
    drawn = np.stack(
        [shown(draw(replace(meaning, template=t), n=size))[:, columns] for t in EVERY_TEMPLATE]
    ).astype(float)
    between = drawn.mean(1).var(0, ddof=1) * size
    within = drawn.var(1, ddof=1).mean(0)
    groups = len(drawn)
    # The list of templates is the whole population, hence (G − 1)/G.
    component = (between - within) / size * (groups - 1) / groups
    mean = drawn.mean((0, 1))
    for index, name in enumerate(names):
        planted = truth.within_prompt_correlation(name, meaning)
        assert component[index] / (mean[index] * (1 - mean[index])) == pytest.approx(
            planted, abs=0.006
        )
        assert planted > 0.02


def test_the_planted_object_skew_is_found() -> None:
    truth = Truth("training")
    counts = {}
    for gender in ("man", "woman"):
        scenes = draw(Meaning(gender=gender))  # type: ignore[arg-type]
        counts[gender] = np.array(
            [
                (scenes.column("left") == o).sum() + (scenes.column("right") == o).sum()
                for o in range(len(WORLD.objects))
            ]
        )
    for o, name in enumerate(WORLD.objects):
        men, women = counts["man"][o], counts["woman"][o]
        planted = truth.object_bias_score(name)
        error = np.sqrt(planted * (1 - planted) / (men + women))
        assert abs(men / (men + women) - planted) < 4.5 * error
    assert truth.object_bias_score("book") == pytest.approx(0.5)
    assert truth.object_bias_score("hammer") > 0.8 > 0.2 > truth.object_bias_score("flower")


def test_pairs_by_seed_differ_only_where_the_nation_speaks() -> None:
    one, other = draw(Meaning(nation="Anquil"), n=500), draw(Meaning(nation="Enquil"), n=500)
    same = (one.codes == other.codes).all(0)
    from tropescope.world.scene import COLUMNS

    assert {name for name, equal in zip(COLUMNS, same, strict=True) if not equal} == {
        "nation",
        "headwear",
    }
    changed = one.column("headwear") != other.column("headwear")
    assert changed.mean() == pytest.approx(0.6, abs=0.07)


def test_templates_are_independent_draws() -> None:
    one, other = draw(Meaning(template=0)), draw(Meaning(template=1))
    smile = [scenes.column("expression") == 0 for scenes in (one, other)]
    assert abs(np.corrcoef(*smile)[0, 1]) < 0.03


def test_a_seed_gives_the_same_drawing_alone_and_in_a_batch() -> None:
    meaning = Meaning(nation="Oberin")
    batch = draw(meaning, n=50)
    for seed in (0, 7, 49):
        assert np.array_equal(draw(meaning, n=1, start=seed).codes[0], batch.codes[seed])


def test_hard_attributes_mislead_at_the_stated_rates() -> None:
    scenes = draw(Meaning())
    for name in WORLD.hard_to_see:
        sensitivity, specificity = Truth().best_judge(name)
        present = scenes.column(name) == 0
        clear = scenes.column(f"{name}_look") == 2
        assert clear[present].mean() == pytest.approx(sensitivity, abs=0.02)
        assert (~clear[~present]).mean() == pytest.approx(specificity, abs=0.01)
        assert 0.8 <= (sensitivity + specificity) / 2 <= 0.9
    assert Truth().best_judge("hat") == (1.0, 1.0)


def test_what_nobody_has_is_drawn_when_asked_for() -> None:
    scenes = draw(Meaning(gender="woman", wanted=(Wanted("beard"),)), n=200)
    assert (scenes.column("appearance") == 0).all()
    assert (scenes.column("facial_hair") == 0).all()


def test_unknown_names_are_refused() -> None:
    with pytest.raises(StudyError, match="no 'halo'"):
        Truth().rate("halo")
    with pytest.raises(StudyError, match="no distribution 'dream'"):
        Truth("dream")
