"""The colours of the drawings. A colour that can be named in a prompt has a word."""

from __future__ import annotations

import colorsys

RGB = tuple[int, int, int]

#: Headwear and clothes; every one has a word.
CLOTH: dict[str, RGB] = {
    "red": (224, 72, 72),
    "blue": (66, 124, 214),
    "green": (72, 168, 100),
    "yellow": (244, 206, 82),
    "black": (44, 50, 58),
    "white": (240, 240, 238),
}

#: Shades of each hair colour of the world file; hair and facial hair share them.
HAIR: dict[str, tuple[RGB, ...]] = {
    "grey_hair": ((206, 206, 210), (168, 170, 176)),
    "blond_hair": ((222, 184, 100), (236, 208, 140)),
    "dark": ((44, 30, 27), (96, 56, 44), (140, 62, 34)),
}

#: Shades of each skin tone of the world file.
SKIN: dict[str, tuple[RGB, ...]] = {
    "light_skin": ((255, 222, 190), (243, 200, 158)),
    "tan": ((216, 154, 104), (200, 136, 90)),
    "dark_skin": ((138, 82, 50), (98, 62, 46)),
}

#: Freckles are darker than the skin they lie on, on dark skin lighter.
FRECKLES: dict[str, RGB] = {
    "light_skin": (150, 70, 34),
    "tan": (104, 48, 26),
    "dark_skin": (232, 162, 112),
}

BROOCH: RGB = (255, 204, 40)

#: Share of its colour that a faint mark keeps: a few steps of 255, hardly to be seen.
FAINT = 0.05


def _pastels(hues: tuple[float, ...], saturation: float) -> list[RGB]:
    shades = []
    for hue in hues:
        for lightness in (0.86, 0.78):
            red, green, blue = colorsys.hls_to_rgb(hue, lightness, saturation)
            shades.append((round(red * 255), round(green * 255), round(blue * 255)))
    return shades


_FAMILIES: dict[str, list[RGB]] = {
    "warm": _pastels((0.07, 0.11), 0.55),
    "green": _pastels((0.27, 0.36), 0.38),
    "blue": _pastels((0.54, 0.61), 0.45),
    "grey": _pastels((0.0, 0.6), 0.04),
    "rose": _pastels((0.80, 0.93), 0.42),
}

BACKGROUNDS: tuple[RGB, ...] = tuple(shade for family in _FAMILIES.values() for shade in family)


def backgrounds_of(family: str) -> range:
    """Which backgrounds a place may have; 'any' means all."""
    if family == "any":
        return range(len(BACKGROUNDS))
    start = 0
    for name, shades in _FAMILIES.items():
        if name == family:
            return range(start, start + len(shades))
        start += len(shades)
    raise KeyError(family)
