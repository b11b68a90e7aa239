"""Outlines of countries for maps, from a vendored file; nothing is ever fetched.

`assets/world-110m.json` is countries-110m.json of world-atlas 2.0.2 (Michael Bostock, ISC licence;
made from Natural Earth, public domain), unchanged. It is TopoJSON: borders are shared arcs of
quantised steps. We draw it in the Equal Earth projection (Šavrič, Patterson & Jenny 2018), which
keeps areas true, turned by 11° so that the cut falls into the Bering Strait.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

CREDIT = (
    "Outlines: world-atlas 2.0.2 (Michael Bostock, ISC licence), made from Natural Earth, "
    "public domain. Borders are drawn as in that file and imply no judgement."
)
#: Size of the drawing; whole numbers are fine enough.
WIDTH, HEIGHT = 9600, 4320
_TURN = 11.0
_TOP = 84.0
_LEFT_OUT = frozenset({"010"})
_A = (1.340264, -0.081106, 0.000893, 0.003796)
_ROOT3 = np.sqrt(3.0)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outline:
    """A country's shape as an SVG path, and the middle of its largest part."""

    key: str
    name: str
    path: str
    middle: tuple[int, int]


def projected(longitude: FloatArray, latitude: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Equal Earth, in units of the drawing; y grows downwards."""
    theta = np.arcsin(_ROOT3 / 2 * np.sin(np.radians(latitude)))
    square = theta**2
    sixth = square**3
    slope = _A[0] + 3 * _A[1] * square + sixth * (7 * _A[2] + 9 * _A[3] * square)
    x = 2 * _ROOT3 * np.radians(longitude) * np.cos(theta) / (3 * slope)
    y = theta * (_A[0] + _A[1] * square + sixth * (_A[2] + _A[3] * square))
    widest = 2 * _ROOT3 * np.pi / (3 * _A[0])
    scale = WIDTH / (2 * widest)
    return (x + widest) * scale, (_top() - y) * scale


def _top() -> float:
    theta = float(np.arcsin(_ROOT3 / 2 * np.sin(np.radians(_TOP))))
    sixth = theta**6
    return theta * (_A[0] + _A[1] * theta**2 + sixth * (_A[2] + _A[3] * theta**2))


def point(longitude: float, latitude: float) -> tuple[int, int]:
    """A place on the drawing."""
    turned = np.array([(longitude - _TURN + 180) % 360 - 180])
    x, y = projected(turned, np.array([latitude]))
    return round(float(x[0])), round(float(y[0]))


@cache
def outlines() -> dict[str, Outline]:
    """All countries by ISO 3166-1 numeric code, or by name where they have none."""
    text = resources.files("tropescope.visage").joinpath("assets", "world-110m.json")
    topology = json.loads(text.read_text("utf-8"))
    scale, shift = topology["transform"]["scale"], topology["transform"]["translate"]
    arcs = [np.cumsum(np.array(arc), axis=0) * scale + shift for arc in topology["arcs"]]
    result = {}
    for shape in topology["objects"]["countries"]["geometries"]:
        key = shape.get("id") or shape["properties"]["name"]
        if key not in _LEFT_OUT:
            result[key] = _outline(key, shape, arcs)
    return result


def _outline(key: str, shape: dict[str, Any], arcs: list[FloatArray]) -> Outline:
    polygons = [shape["arcs"]] if shape["type"] == "Polygon" else shape["arcs"]
    parts, largest, middle = [], -1.0, (0, 0)
    for polygon in polygons:
        for ring in polygon:
            x, y = _ring(ring, arcs)
            parts.append(_path(x, y))
            extent = float(np.ptp(x) * np.ptp(y))
            if extent > largest:
                largest = extent
                middle = (round(float(x.min() + x.max()) / 2), round(float(y.min() + y.max()) / 2))
    return Outline(key, shape["properties"]["name"], "".join(parts), middle)


def _ring(ring: list[int], arcs: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """The points of a ring; a negative number is an arc walked backwards."""
    walked = [arcs[number] if number >= 0 else arcs[~number][::-1] for number in ring]
    points = np.concatenate([arc[1:] if place else arc for place, arc in enumerate(walked)])
    turned = (points[:, 0] - _TURN + 180) % 360 - 180
    # Walk on over the cut instead of jumping to the other side of the map.
    return projected(np.unwrap(turned, period=360), points[:, 1])


def _path(x: FloatArray, y: FloatArray) -> str:
    steps = np.column_stack([np.rint(x), np.rint(y)]).astype(int)
    moves = np.diff(steps, axis=0)
    moves = moves[(moves != 0).any(axis=1)]
    if len(moves) < 3:
        return ""  # an island smaller than a unit of the drawing
    inner = "".join(_pair(int(dx), int(dy)) for dx, dy in moves)
    return f"M{steps[0, 0]},{steps[0, 1]}l{inner.strip()}z"


def _pair(dx: int, dy: int) -> str:
    first = str(dx) if dx < 0 else f" {dx}"
    return f"{first}{dy}" if dy < 0 else f"{first} {dy}"
