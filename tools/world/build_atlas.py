"""Draw every part of the reference world once and store the sprites in the package.

    .venv/bin/python tools/world/build_atlas.py

Needs `python_avatars` (MIT) and `resvg_py`; the package itself needs only the file this writes.

A drawing in one free colour is linear in that colour: with premultiplied alpha, drawing it in black
gives what is fixed, drawing it in white gives fixed + free. So five bytes a pixel (fixed red,
green, blue; free; alpha) hold a part in every colour exactly, and painting is one multiply-add.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import python_avatars as avatars
import resvg_py
from numpy.typing import NDArray
from own_drawings import FACES, apron, brooch, freckles
from PIL import Image

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "src/tropescope/world/atlas.npz"
SIZE = 64
FINE = 8
"""Parts are drawn this many times finer and averaged, which keeps thin lines at 64 pixels."""
SIDE = 296
"""How many avatar units the picture spans: the avatar (264 × 280) and room for objects."""
OBJECT = 20
PARTS = Path(avatars.__file__).parent / "avatar_parts"

Sprite = NDArray[np.uint8]
Draw = Callable[[str], str]
NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def rasterise(content: str, view: str, size: int) -> NDArray[np.float64]:
    """Premultiplied RGBA in 0..1 of an SVG body, averaged down from a finer drawing."""
    side = size * FINE
    svg = f'<svg {NAMESPACES} viewBox="{view}" width="{side}" height="{side}">{content}</svg>'
    png = bytes(resvg_py.svg_to_bytes(svg_string=svg, width=side, height=side))
    rgba = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA")).astype(np.float64) / 255
    rgba[..., :3] *= rgba[..., 3:]
    return rgba


def shrink(fine: NDArray[np.float64]) -> NDArray[np.float64]:
    size = fine.shape[0] // FINE
    return fine.reshape(size, FINE, size, FINE, -1).mean((1, 3))


def sprite(
    draw: Draw,
    *,
    view: str = f"{132 - SIDE / 2} {280 - SIDE} {SIDE} {SIDE}",
    size: int = SIZE,
    keep: NDArray[np.float64] | None = None,
) -> Sprite:
    """The five layers of a part; `keep` (drawn at the finer size) cuts it out."""
    dark, light = (rasterise(draw(tint), view, size) for tint in ("#000000", "#ffffff"))
    if keep is not None:
        dark, light = dark * keep[..., None], light * keep[..., None]
    dark, light = shrink(dark), shrink(light)
    free = (light - dark)[..., :3].mean(-1, keepdims=True)
    layers = np.concatenate([dark[..., :3], free, dark[..., 3:]], axis=-1)
    return np.round(layers * 255).clip(0, 255).astype(np.uint8)


def part(folder: str, name: str, colours: dict[str, str] | None = None) -> str:
    """The body of one of the library's SVG files, its ids made safe, some colours exchanged."""
    text = (PARTS / folder / f"{name}.svg").read_text(encoding="utf-8")
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    body = re.sub(r'\sblush:[\w-]+="[^"]*"', "", body)
    for old, new in (colours or {}).items():
        body = body.replace(old, new)
    return body


def tinted(body: str, group: str, tint: str) -> str:
    """Set the fill of the element with that id, as the library itself does."""
    found = re.search(rf'<\w+[^>]*\bid="{group}"[^>]*>', body)
    if found is None:
        return body
    tag = found.group(0)
    painted = re.sub(r'\sfill="[^"]*"', "", tag)
    painted = re.sub(r"\s*/?>$", f' fill="{tint}"' + ("/>" if tag.endswith("/>") else ">"), painted)
    return body.replace(tag, painted)


def body_drawing(tint: str) -> str:
    text = (PARTS / "styles/transparent.svg").read_text(encoding="utf-8")
    defs = text[text.index("<defs>") : text.index("</defs>") + 7]
    start = text.index('<g id="Body"')
    group = text[start : text.index('<g id="Clothing"')]
    return defs + tinted(group, "Skin-Color", tint)


def clothes(name: str, colours: dict[str, str] | None = None) -> Draw:
    def draw(tint: str) -> str:
        shape = tinted(part("clothes", name, colours), "Fabric-Color", tint)
        return f'<g transform="translate(0 170)">{shape}</g>'

    return draw


def top(folder: str, name: str, group: str) -> Draw:
    return lambda tint: tinted(part(f"top/{folder}", name), group, tint)


def facial_hair(name: str) -> Draw:
    def draw(tint: str) -> str:
        shape = tinted(part("facial_hair", name), "Facial-Hair-Color", tint)
        return f'<g transform="translate(49 72)">{shape}</g>'

    return draw


def eyewear(name: str) -> Draw:
    return lambda _tint: f'<g transform="translate(62 85)">{part("accessories", name)}</g>'


def fixed(content: str) -> Draw:
    return lambda _tint: content


def fine_units() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Avatar coordinates (x, y) of every fine pixel."""
    steps = (np.arange(SIZE * FINE) + 0.5) * SIDE / (SIZE * FINE)
    x, y = np.meshgrid(steps + 132 - SIDE / 2, steps + 280 - SIDE)
    return x, y


def head_region() -> NDArray[np.float64]:
    """Head and ears without neck: above the chin's circle."""
    x, y = fine_units()
    return ((y < 137) | ((x - 132) ** 2 + (y - 130) ** 2 < 56**2)).astype(np.float64)


def below_the_brim() -> NDArray[np.float64]:
    """Where long hair shows under a hat or cap."""
    _, y = fine_units()
    return (y > 92).astype(np.float64)


WHITE_COAT = {"#3A4C5A": "#F6F8FA", "#2F4351": "#D3DBE2", "#E6E6E6": "#8FA3B0"}
LONG = ("straight_1", "straight_strand", "big_hair", "bob")
SHORT = ("short_flat", "short_round", "caesar", "short_curly")


def layers() -> dict[str, dict[str, Sprite]]:
    """Every layer of the picture, back to front; in each, sprites named category/variant."""
    hair = {f"long/{i}": sprite(top("hair", name, "Hair-Color")) for i, name in enumerate(LONG)}
    hair |= {f"short/{i}": sprite(top("hair", n, "Hair-Color")) for i, n in enumerate(SHORT)}
    hair |= {
        f"long under a brim/{i}": sprite(top("hair", n, "Hair-Color"), keep=below_the_brim())
        for i, n in enumerate(LONG)
    }
    objects = json.loads((HERE / "noto_objects.json").read_text(encoding="utf-8"))
    return {
        "body": {"body/0": sprite(body_drawing)},
        "clothing": {
            "shirt/0": sprite(clothes("shirt_crew_neck")),
            "shirt/1": sprite(clothes("shirt_v_neck")),
            "suit/0": sprite(clothes("blazer_shirt")),
            "suit/1": sprite(clothes("shirt_wick")),
            "hoodie/0": sprite(clothes("hoodie")),
            "overalls/0": sprite(clothes("overall")),
            "coat/0": sprite(clothes("blazer_shirt", WHITE_COAT)),
            "apron/0": sprite(apron),
        },
        "head": {"head/0": sprite(body_drawing, keep=head_region())},
        "freckles": {"freckles/0": sprite(freckles)},
        "features": {
            f"{appearance} {expression}/0": sprite(fixed(content))
            for (appearance, expression), content in FACES.items()
        },
        "facial_hair": {
            "beard/0": sprite(facial_hair("beard_medium")),
            "beard/1": sprite(facial_hair("beard_magestic")),
            "moustache/0": sprite(facial_hair("moustache_magnum")),
            "moustache/1": sprite(facial_hair("einstien_mustache")),
        },
        "hair": hair,
        "headwear": {
            "turban/0": sprite(top("hat", "turban", "Fabric-Color")),
            "headscarf/0": sprite(top("hat", "hijab", "Fabric-Color")),
            "hat/0": sprite(top("hat", "hat", "Fabric-Color")),
            "cap/0": sprite(top("hat", "winter_hat_3", "Fabric-Color")),
        },
        "eyewear": {
            "glasses/0": sprite(eyewear("prescription_02")),
            "glasses/1": sprite(eyewear("round")),
            "sunglasses/0": sprite(eyewear("sunglasses")),
            "sunglasses/1": sprite(eyewear("wayfarers")),
        },
        "brooch": {"brooch/0": sprite(brooch)},
        "objects": {
            f"{name}/0": sprite(
                fixed(entry["body"]),
                view=f"0 0 {entry['width']} {entry['height']}",
                size=OBJECT,
            )
            for name, entry in objects.items()
        },
    }


def crop(sprites: NDArray[np.uint8]) -> tuple[list[int], NDArray[np.uint8]]:
    """The smallest box (top, left, bottom, right) that holds all sprites of a layer."""
    used = sprites[..., 4].any(0)
    rows, columns = np.flatnonzero(used.any(1)), np.flatnonzero(used.any(0))
    box = [int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1]
    return box, sprites[:, box[0] : box[2], box[1] : box[3]]


def main() -> None:
    arrays: dict[str, NDArray[np.generic]] = {}
    index: dict[str, object] = {}
    for layer, named in layers().items():
        stack = np.stack(list(named.values()))
        box, pixels = crop(stack) if layer != "objects" else ([0, 0, OBJECT, OBJECT], stack)
        arrays[layer] = pixels
        index[layer] = {"box": box, "sprites": list(named)}
    text = json.dumps({"size": SIZE, "layers": index})
    arrays["index"] = np.frombuffer(text.encode(), dtype=np.uint8)
    np.savez_compressed(TARGET, **arrays)
    count = sum(len(named) for named in arrays.values()) - len(arrays["index"])
    print(f"{TARGET.name}: {count} sprites, {TARGET.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
