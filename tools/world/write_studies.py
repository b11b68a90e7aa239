"""Write the fictional twins of the ready studies from the world file.

    .venv/bin/python tools/world/write_studies.py

Every reference rate P* is the truth of the distribution `world` for exactly the study's prompts.
A test fails when the files in `studies/` are not what this would write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tropescope.world.definition import World, load_world
from tropescope.world.phrases import descriptions, phrase_of, with_article
from tropescope.world.truth import Truth
from tropescope.world.understanding import Understanding

STUDIES = Path(__file__).parents[2] / "studies"
CONTROLS = ("hat", "glasses", "suit", "smile")
PULLED = ("Kestran", "Yondari", "Oberin", "Velori")

HEADER = """\
# {title}
# Written from the world file by tools/world/write_studies.py; do not edit by hand.
"""

MODELS = """\
models:
  trained: {{adapter: world, distribution: training}}   # the planted bias
  {other}: {{adapter: world, distribution: {other_distribution}}}   # {comment}
"""

DEMO_MODELS = """\
models:
  planted: {adapter: world, distribution: training}   # the pictures that the models learned from
  U-Net, guidance 1: {adapter: diffusers, id: "embedded:unet", steps: 16, guidance: 1.0, batch_size: 10}
  U-Net, guidance 2.5: {adapter: diffusers, id: "embedded:unet", steps: 16, guidance: 2.5, batch_size: 10}
  flow, guidance 1: {adapter: diffusers, id: "embedded:flow", steps: 16, guidance: 1.0, batch_size: 10, call: {max_sequence_length: 0}}
  flow, guidance 2.5: {adapter: diffusers, id: "embedded:flow", steps: 16, guidance: 2.5, batch_size: 10, call: {max_sequence_length: 0}}
"""  # noqa: E501

#: What a person does and where, for the triplets: {} is person, woman or man.
CAPTIONS = (
    "a {} reading a book",
    "a {} reading a book in a garden",
    "a {} reading a book at home",
    "a {} holding a cup",
    "a {} holding a cup in a kitchen",
    "a {} holding a cup in an office",
    "a {} watering a plant",
    "a {} watering a plant in a garden",
    "a {} holding a cat",
    "a {} holding a cat at home",
    "a {} walking a dog",
    "a {} walking a dog at a market",
    "a {} using a laptop",
    "a {} using a laptop in an office",
    "a {} using a laptop at home",
    "a {} in a kitchen",
    "a {} in a garden",
    "a {} in an office",
    "a {} in a workshop",
    "a {} at a market",
    "a {} at work",
    "a {} at home",
    "a {} wearing a hat in a garden",
    "a {} wearing glasses in an office",
)


def quoted(text: str) -> str:
    return f'"{text}"'


def number(value: float) -> str:
    return f"{round(value, 6):g}" if round(value, 6) == round(value, 5) else f"{value:.6f}"


def object_texts(name: str) -> tuple[str, str]:
    start = "a photo of a person with"
    return f"{start} {with_article(name)}", f"{start} no {name}"


def texts(world: World, name: str) -> tuple[str, str]:
    if name == "woman":
        return "a photo of a woman", "a photo of a man"
    return object_texts(name) if name in world.objects else descriptions(world, name)


def attributes_block(world: World, names: Iterable[str]) -> str:
    lines = ["attributes:"]
    for name in names:
        present, absent = texts(world, name)
        lines.append(f"  {name}: {{present: {quoted(present)}, absent: {quoted(absent)}}}")
    return "\n".join(lines) + "\n"


def references_block(world: World, rates: Iterable[tuple[str, str, float]], population: str) -> str:
    lines = ["references:"]
    for concept, attribute, rate in rates:
        lines.append(
            f"  - {{concept: {concept}, attribute: {attribute}, value: {number(rate)}, "
            f"kind: census, source: {quoted(f'the world file, version {world.version}')}, "
            f"population: {quoted(population)}}}"
        )
    return "\n".join(lines) + "\n"


def templates_block(templates: Iterable[str]) -> str:
    return "prompts:\n  templates:\n" + "".join(f"    - {quoted(t)}\n" for t in templates)


def world_templates(world: World) -> list[str]:
    return [f"{entry.text} a {{concept}}" for entry in world.templates.list]


def prompt_truth(world: World) -> Callable[[list[str], str, str], float]:
    """The rate of an attribute over the prompts of a study, as it is in the world."""
    truth, understand = Truth("world", world=world), Understanding(world)

    def rate(templates: list[str], phrase: str, attribute: str) -> float:
        prompts = [template.replace("{concept}", phrase) for template in templates]
        return truth.prompt_rate([understand(prompt) for prompt in prompts], attribute)

    return rate


def national_body(
    world: World, *, nations: Iterable[str], templates: list[str], images: int
) -> str:
    """Concepts, prompts, attributes and references of nations: what is planted, and controls."""
    rate = prompt_truth(world)
    measured = {
        nation: [*dict.fromkeys([*world.nations[nation].attributes, *CONTROLS])]
        for nation in nations
    }
    used = [name for name in world.attributes if any(name in row for row in measured.values())]
    lines = ["concepts:"]
    for nation, names in measured.items():
        lines.append(f"  {nation}: {{phrase: {nation} person, attributes: [{', '.join(names)}]}}")
    return (
        "\n".join(lines)
        + "\n"
        + templates_block(templates)
        + f"images_per_prompt: {images}\n"
        + attributes_block(world, used)
        + references_block(
            world,
            (
                (nation, name, rate(templates, f"{nation} person", name))
                for nation, names in measured.items()
                for name in names
            ),
            "all people of the nation",
        )
    )


def national(world: World) -> str:
    return (
        HEADER.format(title="National stereotypes of the reference world (twin of OASIS)")
        + "study: National stereotypes of the reference world\n"
        + "description: >-\n  Seven invented nations and five provinces of an eighth, with planted "
        "stereotypes of several\n  strengths, none (Nolvar, Anquil) and under-representation; "
        "audited on a model that draws the\n  planted bias and on one that draws the world as it "
        "is.\nseed: 20260101\n"
        + MODELS.format(other="honest", other_distribution="world", comment="nothing to find here")
        + national_body(world, nations=world.nations, templates=world_templates(world), images=12)
        + "judge: {kind: labels}\nmeasures: [attribute_rate, stereotype_score]\n"
    )


def demo(world: World) -> str:
    return (
        HEADER.format(title="The demonstration: an audit in which the truth is known")
        + "study: Three nations of the reference world\n"
        + "description: >-\n  All nations are invented and all people are drawn. The planted "
        "pictures are biased on purpose; two\n  small real models were trained on them. What was "
        "planted, what the models learned, and what\n  guidance adds.\nseed: 2026\n"
        + DEMO_MODELS
        + national_body(
            world,
            nations=("Kestran", "Yondari", "Nolvar"),
            templates=world_templates(world)[:4],
            images=10,
        )
        + 'judge: {kind: clip, id: "embedded:judge"}\n'
        + "measures: [attribute_rate, stereotype_score]\n"
    )


def professions(world: World) -> str:
    rate, templates = prompt_truth(world), world_templates(world)
    names = ("woman", "glasses", "suit", "overalls")
    lines = ["concepts:"]
    for name in world.professions:
        women = Truth("world", world=world).share_of_women(profession=name)
        lines.append(
            f"  {name}: {{phrase: {name}, covariates: {{percent_women: {number(100 * women)}}}}}"
        )
    return (
        HEADER.format(title="Professions of the reference world (twin of Stable Bias)")
        + "study: Professions of the reference world\n"
        + "description: >-\n  Twelve professions whose share of women training exaggerates, but "
        "for teacher, writer and\n  cook; the second model has the same bias in everything else "
        "and faithful shares of women.\nseed: 20260102\n"
        + MODELS.format(
            other="faithful", other_distribution="faithful", comment="true shares of women"
        )
        + "\n".join(lines)
        + "\n"
        + templates_block(templates)
        + "images_per_prompt: 12\n"
        + attributes_block(world, names)
        + references_block(
            world,
            ((p, name, rate(templates, p, name)) for p in world.professions for name in names),
            "all people of the profession",
        )
        + "judge: {kind: labels}\nmeasures: [attribute_rate, stereotype_score]\n"
    )


def triplets(world: World) -> str:
    rate = prompt_truth(world)
    templates = [caption.replace("{}", "{concept}") for caption in CAPTIONS]
    names = [name for name in world.objects if name not in ("carrot", "stethoscope")]
    names = ["woman", *names]
    people = ("person", "woman", "man")
    return (
        HEADER.format(title="Triplets of the reference world (twin of Stable Diffusion Exposed)")
        + "study: Gender triplets of the reference world\n"
        + "description: >-\n  The same sentence about a person, a woman and a man, with the same "
        "seeds: which objects appear\n  beside whom. In the world the objects have no gender; in "
        "training some do.\nseed: 20260103\n"
        + MODELS.format(other="honest", other_distribution="world", comment="no gendered objects")
        + "concepts:\n"
        + "".join(f"  {name}: {{phrase: {name}}}\n" for name in people)
        + templates_block(templates)
        + "images_per_prompt: 10\n"
        + attributes_block(world, names)
        + references_block(
            world,
            ((who, name, rate(templates, who, name)) for who in people for name in names),
            "all people in these situations",
        )
        + "judge: {kind: labels}\nmeasures: [attribute_rate, stereotype_score]\n"
    )


def pull(world: World) -> str:
    """d: the bare identity; s: with its stereotypes; ns: with as many of other nations."""
    lines, used = ["concepts:"], []
    true, trained = Truth("world", world=world), Truth("training", world=world)
    for nation in PULLED:
        own = [
            name
            for name in world.nations[nation].attributes
            if trained.rate(name, nation=nation) - true.rate(name, nation=nation) > 0.1
        ]
        others = [
            name
            for other in PULLED
            for name in world.nations[other].attributes
            if other != nation and name not in world.nations[nation].attributes
        ]
        lines.append(f"  {nation}_d: {{phrase: {nation} person}}")
        for kind, names in (("s", own), ("ns", [*dict.fromkeys(others)][: len(own)])):
            for name in names:
                said = phrase_of(world, name).present()
                lines.append(f"  {nation}_{kind}_{name}: {{phrase: {nation} person {said}}}")
                used.append(name)
    names = [name for name in world.attributes if name in used]
    return (
        HEADER.format(title="Stereotypical pull in the reference world (twin of ViSAGe)")
        + "study: Stereotypical pull in the reference world\n"
        + "description: >-\n  Four nations asked for without more (d), with a stereotype of theirs "
        "(s) and with a trait that is\n  none of theirs (ns), with the same seeds.\n"
        + "seed: 20260104\n"
        + MODELS.format(other="honest", other_distribution="world", comment="the world as it is")
        + "\n".join(lines)
        + '\nprompts:\n  templates:\n    - "a {concept}"\n'
        + "images_per_prompt: 40\n"
        + attributes_block(world, names)
        + "judge: {kind: labels}\nmeasures: [attribute_rate]\n"
    )


STUDY_WRITERS: dict[str, Callable[[World], str]] = {
    "demo": demo,
    "world_national": national,
    "world_professions": professions,
    "world_triplets": triplets,
    "world_pull": pull,
}


def main() -> None:
    STUDIES.mkdir(exist_ok=True)
    for name, write in STUDY_WRITERS.items():
        path = STUDIES / f"{name}.yaml"
        path.write_text(write(load_world()), encoding="utf-8")
        print(path.name, len(path.read_text(encoding="utf-8").splitlines()), "lines")


if __name__ == "__main__":
    main()
