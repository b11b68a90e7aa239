"""Write the tables and pictures of docs/world.md from the world file.

    .venv/bin/python tools/world/write_docs.py

The tables stand between two markers in the page; a test fails when they are out of date.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tropescope.world.definition import World, load_world
from tropescope.world.meaning import Meaning, Wanted
from tropescope.world.parts import parts_of
from tropescope.world.phrases import phrase_of
from tropescope.world.rates import Planted, Rate
from tropescope.world.render import render
from tropescope.world.sampling import draw_scenes
from tropescope.world.tables import tables_of
from tropescope.world.truth import Truth
from tropescope.world.vocabulary import Vocabulary

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "world.md"
PICTURES = DOCS / "pictures"
BEGIN, END = "<!-- planted: begin -->", "<!-- planted: end -->"
SCALE = 2
INK = (40, 44, 52)


def rate_text(rate: Rate | None) -> str:
    if rate is None:
        return "–"
    if rate.women == rate.men:
        return f"{rate.women:.2f}"
    return f"women {rate.women:.2f}, men {rate.men:.2f}"


def nations_table(world: World) -> list[str]:
    lines = [
        "| nation | attribute | rate in the file: world → training | P* | P in training | P − P* |",
        "|---|---|---|---|---|---|",
    ]
    true, trained = Truth("world", world=world), Truth("training", world=world)
    for nation, entry in world.nations.items():
        if entry.share_of_women is not None:
            share = entry.share_of_women
            planted = f"{share.world:.2f} → {share.training:.2f}"
            lines.append(_row(nation, "woman", planted, true, trained))
        for attribute, rate in entry.attributes.items():
            planted = f"{rate_text(rate.world)} → {rate_text(rate.training)}"
            lines.append(_row(nation, attribute, planted, true, trained))
    return lines


def _row(nation: str, attribute: str, planted: str, true: Truth, trained: Truth) -> str:
    p_star, p = (truth.rate(attribute, nation=nation) for truth in (true, trained))
    excess = p - p_star
    sign = "0" if abs(excess) < 5e-4 else f"{excess:+.3f}".replace("-", "−")
    return f"| {nation} | {attribute} | {planted} | {p_star:.3f} | {p:.3f} | {sign} |"


def attributes_table(world: World) -> list[str]:
    lines = ["| attribute | said as | slot | for anybody: world → training |", "|---|---|---|---|"]
    for name, entry in world.attributes.items():
        rate = _sides(entry.rate)
        hard = " (hard to see)" if name in world.hard_to_see else ""
        lines.append(
            f"| {name}{hard} | {phrase_of(world, name).present()} | {entry.slot} | {rate} |"
        )
    return lines


def _sides(planted: Planted) -> str:
    if not planted.biased:
        return rate_text(planted.world)
    return f"{rate_text(planted.world)} → {rate_text(planted.training)}"


def professions_table(world: World) -> list[str]:
    lines = [
        "| profession | share of women: world → training | dress: world → training | things |",
        "|---|---|---|---|",
    ]
    for name, entry in world.professions.items():
        share = entry.share_of_women
        dress = ", ".join(f"{a} {_sides(rate)}" for a, rate in entry.attributes.items())
        things = ", ".join(entry.tools.things)
        lines.append(f"| {name} | {share.world:.2f} → {share.training:.2f} | {dress} | {things} |")
    return lines


def objects_table(world: World) -> list[str]:
    lines = [
        "| object | activity | rate per place: world → training | bias score in training |",
        "|---|---|---|---|",
    ]
    trained = Truth("training", world=world)
    for name, entry in world.objects.items():
        score = trained.object_bias_score(name)
        lines.append(f"| {name} | {entry.activity} | {_sides(entry.rate)} | {score:.2f} |")
    return lines


def planted(world: World) -> str:
    """Everything between the markers of the page."""
    trained = Truth("training", world=world)
    shares = ", ".join(
        f"{word} {g.share_of_women.world:.2f} → {g.share_of_women.training:.2f}"
        for word, g in world.genders.items()
    )
    judges = ", ".join(
        f"{name} sensitivity {trained.best_judge(name)[0]:.2f}, specificity "
        f"{trained.best_judge(name)[1]:.2f}"
        for name in world.hard_to_see
    )
    together = [
        f"{e.nation} {e.profession}: {a} "
        f"{trained.rate(a, nation=e.nation, profession=e.profession):.2f} "
        f"(nation alone {trained.rate(a, nation=e.nation):.2f}, profession alone "
        f"{trained.rate(a, profession=e.profession):.2f})"
        for e in world.intersections
        for a in e.attributes
    ]
    lines = [
        f"World `{world.name}`, version {world.version}, digest `{world.digest[:16]}`: "
        f"{len(world.nations)} nations, {len(world.professions)} professions, "
        f"{len(world.attributes)} attributes, {len(world.objects)} objects, "
        f"{len(world.templates.list)} templates, {len(Vocabulary(world)) - 3} words.",
        "",
        "### Nations",
        *nations_table(world),
        "",
        "### Gender words",
        f"Share of drawings that look like a woman, world → training: {shares}.",
        "",
        "### Professions",
        *professions_table(world),
        "",
        f"Together more than the two alone, in training: {'; '.join(together)}.",
        "",
        "### Attributes",
        *attributes_table(world),
        "",
        f"The best any judge of single pictures can do: {judges}.",
        "",
        "### Objects",
        *objects_table(world),
        "",
        "### Templates",
        f"Strength {world.templates.strength}; correlation within prompts for an attribute alone "
        f"in its slot: {world.templates.strength**2:.4f} · r(1 − r), for instance "
        f"{world.templates.strength**2 / 4:.3f} at r = ½.",
        "",
        ", ".join(f"“{entry.text}”" for entry in world.templates.list) + ".",
    ]
    return "\n".join(lines)


def page_with_tables(page: str, world: World) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{planted(world)}\n{END}{after}"


def _font(size: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    return ImageFont.load_default(size=size)


def _saved(image: Image.Image, name: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    path = PICTURES / name
    image.quantize(255, dither=Image.Dither.NONE).save(path, optimize=True)
    print(name, image.size, f"{path.stat().st_size / 1024:.0f} kB")


def nations_picture(world: World) -> Image.Image:
    """A row per nation; left as the world is, right as training shows it. Same seeds throughout."""
    each, side, label, gap, head = 7, 64 * SCALE, 150, 24, 40
    rows = [None, *world.nations]
    width = label + 2 * each * side + gap
    image = Image.new("RGB", (width, head + len(rows) * side), (255, 255, 255))
    draw = ImageDraw.Draw(image)
    for block, distribution in enumerate(("world", "training")):
        start = label + block * (each * side + gap)
        draw.text((start, 8), f"distribution: {distribution}", INK, font=_font(20))
        tables = tables_of(world, distribution)
        for row, nation in enumerate(rows):
            pictures = render(draw_scenes(tables, Meaning(nation=nation), range(20, 20 + each)))
            strip = Image.fromarray(np.concatenate(list(pictures), 1))
            place = (start, head + row * side)
            image.paste(strip.resize((each * side, side), Image.Resampling.NEAREST), place)
    for row, nation in enumerate(rows):
        draw.text((8, head + row * side + side // 2 - 10), nation or "(anybody)", INK, _font(20))
    return image


def attributes_picture(world: World) -> Image.Image:
    """Every attribute present, on a woman or a man of nowhere."""
    columns, side, text = 8, 64 * 2, 22
    names = list(world.attributes)
    rows = -(-len(names) // columns)
    image = Image.new("RGB", (columns * side, rows * (side + text)), (255, 255, 255))
    draw = ImageDraw.Draw(image)
    tables = tables_of(world, "world")
    for index, name in enumerate(names):
        meaning = Meaning(wanted=(Wanted(name),))
        scenes = draw_scenes(tables, meaning, range(300 + 40 * index, 340 + 40 * index))
        look = f"{name}_look"
        clear = scenes.column(look) == 2 if name in world.hard_to_see else np.ones(40, bool)
        picture = render(scenes)[int(np.flatnonzero(clear)[index % 7])]
        x, y = index % columns * side, index // columns * (side + text)
        enlarged = Image.fromarray(picture).resize((side, side), Image.Resampling.NEAREST)
        image.paste(enlarged, (x, y + text))
        draw.text((x + 4, y + 2), name, INK, font=_font(15))
    return image


def masks_picture(world: World) -> Image.Image:
    """Pictures above, the parts below, each in a colour of its own."""
    side, count = 64 * 2, 8
    image = Image.new("RGB", (count * side, 2 * side), (255, 255, 255))
    scenes = draw_scenes(tables_of(world, "training"), Meaning(), range(40, 40 + count))
    pictures = render(scenes)
    palette: dict[str, tuple[int, int, int]] = {}
    shades = np.random.default_rng(5).integers(60, 235, (60, 3))
    for index in range(count):
        parts = np.full((64, 64, 3), 245, np.uint8)
        for part in parts_of(world, scenes.scene(index)):
            shade = palette.setdefault(part.name, tuple(shades[len(palette)].tolist()))
            parts[part.mask] = shade
        for row, pixels in enumerate((pictures[index], parts)):
            tile = Image.fromarray(pixels).resize((side, side), Image.Resampling.NEAREST)
            image.paste(tile, (index * side, row * side))
    return image


def main() -> None:
    world = load_world()
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8"), world), encoding="utf-8")
    _saved(nations_picture(world), "world_nations.png")
    _saved(attributes_picture(world), "world_attributes.png")
    _saved(masks_picture(world), "world_masks.png")


if __name__ == "__main__":
    main()
