"""Which traced images are shown, and their pictures: as many and as large as there is room.

The examples of a phrase are the first traced image that was judged to show the attribute with the
largest early SPI, and the first judged not to: chosen by the plan's order, not by how they look.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from PIL import Image

from tropescope.features.rows import ImageRow
from tropescope.features.traces import TraceRow, read_trace
from tropescope.report.inside.heat import heated
from tropescope.report.inside.views import GroupView
from tropescope.report.pictures import Evidence
from tropescope.store.folder import RunFolder


@dataclass(frozen=True, slots=True)
class Step:
    """`each` examples for a phrase and model, at most `side` pixels wide and high."""

    each: int
    side: int


LADDER = (Step(2, 128), Step(2, 96), Step(1, 96), Step(1, 72), Step(1, 56))
#: Reading and drawing is what takes time; no more traces than this are opened.
MOST_TRACES = 120
MOST_FILM = 8
MOST_WORDS = 12
_SAMPLE = 4


@dataclass(frozen=True, slots=True)
class Still:
    """A small picture as a data URI."""

    uri: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class WordHeat:
    """Where one word was looked at; a map that is the same everywhere has no picture."""

    text: str
    low: float
    high: float
    still: Still | None


@dataclass(frozen=True, slots=True)
class Example:
    row: TraceRow
    image: ImageRow
    attribute: str | None
    shows: bool | None
    """What the judge said of the attribute with the largest early SPI."""
    sigma: tuple[float, ...]
    film: tuple[tuple[int, Still], ...]
    """Steps, from 0, with the image foreseen at each."""
    finished: Still | None
    """The run's image or, where tracing gave another one, the image foreseen at the last step."""
    words: tuple[WordHeat, ...]
    words_left_out: int

    @property
    def stills(self) -> tuple[Still, ...]:
        heat = [word.still for word in self.words]
        return tuple(s for s in (*(s for _, s in self.film), self.finished, *heat) if s is not None)


@dataclass(frozen=True)
class Examples:
    """The examples that found room, by the group's anchor; `names` gives each still's symbol."""

    by_group: dict[str, tuple[Example, ...]]
    names: dict[str, str]
    left_out: int
    """Groups with traced images that are not shown."""

    @property
    def symbols(self) -> Markup:
        stills = {s.uri: s for found in self.by_group.values() for e in found for s in e.stills}
        return Markup("").join(
            Markup('<symbol id="{}" viewBox="0 0 {} {}"><image width="{}" height="{}" href="{}"/>')
            .format(name, s.width, s.height, s.width, s.height, s.uri)
            + Markup("</symbol>")
            for name, s in ((self.names[uri], still) for uri, still in stills.items())
        )  # fmt: skip


def examples_of(
    views: Sequence[GroupView], folder: RunFolder, evidence: Evidence, *, room: int
) -> Examples:
    """Examples for as many groups as fit into `room` bytes, the largest early SPI first."""
    ordered = sorted(views, key=lambda view: -view.strength)
    wanted = [view for view in ordered if chosen(view, evidence, each=1)]

    def draw(view: GroupView, step: Step) -> tuple[Example, ...]:
        found = chosen(view, evidence, each=step.each)
        return tuple(e for e in (_drawn(folder, *one, step.side) for one in found) if e.stills)

    step = _step_that_fits(wanted, draw, room)
    by_group: dict[str, tuple[Example, ...]] = {}
    names: dict[str, str] = {}
    used = 0
    for view in wanted[: MOST_TRACES // step.each]:
        drawn = draw(view, step)
        fresh = dict.fromkeys(s.uri for e in drawn for s in e.stills if s.uri not in names)
        cost = _cost(drawn)
        if used + cost > room:
            break
        used += cost
        names |= {uri: f"f{len(names) + i}" for i, uri in enumerate(fresh)}
        if drawn:
            by_group[view.anchor] = drawn
    left_out = sum(view.anchor not in by_group for view in wanted) if names else 0
    return Examples(by_group, names, left_out)


def _step_that_fits(
    views: Sequence[GroupView],
    draw: Callable[[GroupView, Step], tuple[Example, ...]],
    room: int,
) -> Step:
    some = views[:: max(1, len(views) // _SAMPLE)][:_SAMPLE]
    for step in LADDER[:-1]:
        if len(views) * step.each > MOST_TRACES:
            continue
        sizes = [_cost(draw(view, step)) for view in some]
        if sum(sizes) / max(len(some), 1) * len(views) <= room:
            return step
    return LADDER[-1]


def _cost(examples: Sequence[Example]) -> int:
    """Bytes in the page: the pictures, and about what is written around each."""
    return sum(len(s.uri) + 420 for e in examples for s in e.stills) + 600 * len(examples)


Chosen = tuple[TraceRow, ImageRow, str | None, bool | None]


def chosen(view: GroupView, evidence: Evidence, *, each: int) -> list[Chosen]:
    """The first images on either side of the judgement; images equal to the run's go before."""
    attribute = view.attributes[0].attribute if view.attributes else None
    sides: dict[bool | None, Chosen] = {}
    for row in sorted(view.rows, key=lambda row: not row.same_image):
        image = evidence.image(row.key)
        if image is not None:
            shows = None if attribute is None else evidence.shows(row.key, attribute)
            sides.setdefault(shows, (row, image, attribute, shows))
    ordered = sorted(sides.items(), key=lambda side: (side[0] is None, side[0] is False))
    return [found for _, found in ordered][:each]


def _drawn(
    folder: RunFolder,
    row: TraceRow,
    image: ImageRow,
    attribute: str | None,
    shows: bool | None,
    side: int,
) -> Example:
    trace = read_trace(folder, row)
    foreseen: list[tuple[int, Image.Image]] = []
    if trace.thumbnails is not None and trace.shown_steps is not None:
        found = list(zip(map(int, trace.shown_steps), trace.thumbnails, strict=True))
        count = min(MOST_FILM, len(found))
        kept = {round(i * (len(found) - 1) / max(count - 1, 1)) for i in range(count)}
        foreseen = [(found[i][0], Image.fromarray(found[i][1], "RGB")) for i in sorted(kept)]
    picture: Image.Image | None = None
    if trace.words:
        if row.same_image and image.path is not None:
            picture = Image.fromarray(folder.images.read(image.path), "RGB")
        elif foreseen:
            picture = foreseen[-1][1]
    words = []
    for word in trace.words[:MOST_WORDS]:
        still = None
        if picture is not None and word.high > word.low:
            still = _still(heated(_small(picture, side), word.normalised()), side)
        words.append(WordHeat(word.text, word.low, word.high, still))
    return Example(
        row=row,
        image=image,
        attribute=attribute,
        shows=shows,
        sigma=tuple(float(s) for s in trace.sigma),
        film=tuple((step, _still(picture, side)) for step, picture in foreseen),
        finished=None if picture is None else _still(picture, side),
        words=tuple(words),
        words_left_out=max(0, len(trace.words) - MOST_WORDS),
    )


def _small(picture: Image.Image, side: int) -> Image.Image:
    """At most, and where the picture is a tiny one at least half, `side` pixels wide and high."""
    scale = side / max(picture.size)
    if scale > 2:
        width, height = (max(1, round(length * scale)) for length in picture.size)
        return picture.resize((width, height), Image.Resampling.NEAREST)
    copy = picture.copy()
    copy.thumbnail((side, side), Image.Resampling.LANCZOS)
    return copy


def _still(picture: Image.Image, side: int) -> Still:
    small = _small(picture, side)
    buffer = io.BytesIO()
    small.save(buffer, format="WEBP", quality=72, method=4)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return Still(f"data:image/webp;base64,{data}", small.width, small.height)
