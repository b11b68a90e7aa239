"""Small copies of images inside the page, each stored once however often it is shown.

How many are shown and how large follows from the room that is left in the file: the first step of
`LADDER` on which everything fits is taken; on the last step the strongest answers go first.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup
from PIL import Image

from tropescope.report.pictures import Gallery
from tropescope.store.images import ImageStore


@dataclass(frozen=True, slots=True)
class Step:
    """`each` images at either end of certainty, at most `side` pixels wide and high."""

    each: int
    side: int


LADDER = (
    Step(4, 176),
    Step(4, 136),
    Step(3, 136),
    Step(3, 112),
    Step(2, 112),
    Step(2, 88),
    Step(2, 72),
    Step(1, 72),
    Step(1, 56),
)

#: Decoding is what takes time; more distinct images than this are never read.
MOST_IMAGES = 1200
_SAMPLE = 12
#: No thumbnail takes fewer bytes than this.
_SMALLEST = 300


def encode(store: ImageStore, side: int, path: str) -> tuple[str, int, int]:
    """A stored image as a WebP data URI of at most `side` pixels, with its size."""
    picture = Image.fromarray(store.read(path), "RGB")
    picture.thumbnail((side, side), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    picture.save(buffer, format="WEBP", quality=72, method=4)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/webp;base64,{data}", picture.width, picture.height


@dataclass(frozen=True)
class Sprite:
    """The thumbnails of a page as SVG symbols; `names` gives each image's symbol."""

    markup: Markup
    names: dict[str, str]


@dataclass(frozen=True)
class Shown:
    """The galleries that found room."""

    galleries: tuple[Gallery, ...]
    left_out: int
    sprite: Sprite
    step: Step


def choose(
    galleries_at: Callable[[int], Sequence[Gallery]],
    store: ImageStore,
    *,
    room: int,
    markup_of: Callable[[Gallery, dict[str, str]], str],
) -> Shown:
    """Galleries, in order, as many and with as large images as fit into `room` bytes."""
    step, galleries = LADDER[-1], list(galleries_at(LADDER[-1].each))
    offered = len(galleries)
    if _estimate(galleries, store, step, markup_of) <= room:
        for candidate in LADDER[:-1]:
            larger = list(galleries_at(candidate.each))
            if _estimate(larger, store, candidate, markup_of) <= room:
                step, galleries = candidate, larger
                break
    while galleries:
        kept, symbols, names = _fill(galleries, store, step, room, markup_of)
        if len(kept) == len(galleries) or step == LADDER[-1]:
            markup = Markup("".join(symbols))  # noqa: S704 - base64 and numbers of ours
            return Shown(tuple(kept), offered - len(kept), Sprite(markup, names), step)
        step = LADDER[LADDER.index(step) + 1]
        galleries = list(galleries_at(step.each))
    return Shown((), offered, Sprite(Markup(""), {}), step)


def _paths(galleries: Iterable[Gallery]) -> list[str]:
    return list(dict.fromkeys(p.path for gallery in galleries for p in gallery.pictures))


def _estimate(
    galleries: Sequence[Gallery],
    store: ImageStore,
    step: Step,
    markup_of: Callable[[Gallery, dict[str, str]], str],
) -> float:
    paths = _paths(galleries)
    if not paths:
        return 0.0
    if len(paths) > MOST_IMAGES:
        return float("inf")
    count = min(_SAMPLE, len(paths))
    sample = [paths[i * len(paths) // count] for i in range(count)]
    sizes = [len(_symbol("p0000", *encode(store, step.side, path))) for path in sample]
    some = galleries[:: max(1, len(galleries) // _SAMPLE)]
    blank = dict.fromkeys(paths, "p0000")
    markup = sum(len(markup_of(gallery, blank).encode()) for gallery in some) / len(some)
    return sum(sizes) / count * len(paths) + markup * len(galleries)


def _fill(
    galleries: Sequence[Gallery],
    store: ImageStore,
    step: Step,
    room: int,
    markup_of: Callable[[Gallery, dict[str, str]], str],
) -> tuple[list[Gallery], list[str], dict[str, str]]:
    wanted = _paths(galleries)[: min(MOST_IMAGES, max(1, room // _SMALLEST))]
    kept: list[Gallery] = []
    symbols: list[str] = []
    names: dict[str, str] = {}
    used = 0
    with ThreadPoolExecutor(max_workers=2) as pool:
        encoded = dict(
            zip(wanted, pool.map(partial(encode, store, step.side), wanted), strict=True)
        )
    for gallery in galleries:
        fresh = [path for path in _paths([gallery]) if path not in names]
        if any(path not in encoded for path in fresh):
            break
        added = {path: f"p{len(names) + i}" for i, path in enumerate(fresh)}
        new = [_symbol(name, *encoded[path]) for path, name in added.items()]
        names |= added
        cost = sum(map(len, new)) + len(markup_of(gallery, names).encode())
        if used + cost > room:
            names = {path: name for path, name in names.items() if path not in added}
            break
        used += cost
        symbols += new
        kept.append(gallery)
    return kept, symbols, names


def _symbol(name: str, uri: str, width: int, height: int) -> str:
    return (
        f'<symbol id="{name}" viewBox="0 0 {width} {height}">'
        f'<image width="{width}" height="{height}" href="{uri}"/></symbol>'
    )
