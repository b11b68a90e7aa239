"""The section about traces says what the curves say and shows only traced images."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tropescope.features.traces import read_trace, trace_rows
from tropescope.findings.results import CurveRow
from tropescope.report.inside.curves import Scale, across, scale_of, ticks_of
from tropescope.report.inside.examples import examples_of
from tropescope.report.inside.heat import COLOURS, colours, heated
from tropescope.report.inside.numbers import plain, signed, signed_range
from tropescope.report.inside.section import PICTURE_SHARE, TEXT_SHARE, inside_of
from tropescope.report.inside.views import early_of, group_views
from tropescope.report.pictures import Evidence
from tropescope.report.rendering import asset
from tropescope.report.writing import report_html

from synthetic_runs import HOSTILE, SyntheticRun, make_run, study_data
from traced_runs import make_traced_run

ATTRIBUTES = ("hat", "beard", "a_red_scarf")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SyntheticRun:
    return make_traced_run(
        tmp_path_factory.mktemp("traced"),
        attributes=ATTRIBUTES,
        models=("painter", "drawer"),
        templates=1,
        images_per_prompt=24,
        trace={"images_per_prompt": 24},
        outcome_of=lambda image: ("filtered", "") if image.replicate == 3 else ("generated", ""),
    )


@pytest.fixture(scope="module")
def page(run: SyntheticRun) -> str:
    return run.report()


def section(page: str) -> str:
    found = re.search(r'<section id="inside".*?</section>', page, re.DOTALL)
    assert found
    return found[0]


def groups(page: str) -> dict[tuple[str, str], str]:
    """The parts of the section by phrase and model."""
    parts = re.split(r'<details class="concept inside"', section(page))[1:]
    names = [re.findall(r"<bdi>(.*?)</bdi>", part)[:2] for part in parts]
    return {(a, b): part for (a, b), part in zip(names, parts, strict=True)}


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value for name, value in attrs if name == "id" and value]


def curve(run: SyntheticRun, **wanted: str) -> CurveRow:
    (found,) = [c for c in run.results.curves if all(getattr(c, k) == v for k, v in wanted.items())]
    return found


def test_numbers_of_every_step_equal_the_curves(run: SyntheticRun, page: str) -> None:
    parts = groups(page)
    assert len(parts) == 4
    for (concept, model), part in parts.items():
        lanes = re.findall(
            r"<title>SPI of (.*?)</title>(.*?)</svg><span class=.early", part, re.DOTALL
        )
        assert {name.replace(" ", "_") for name, _ in lanes} == set(ATTRIBUTES)
        for name, lane in lanes:
            place = {"concept": concept, "model": model, "attribute": name.replace(" ", "_")}
            rows = [curve(run, **place, velocity=v) for v in ("conditional", "guided")]
            titles = re.findall(r'class="h"><title>(.*?)</title>', lane)
            assert titles == [
                f"Step {i + 1} of 12, σ {rows[0].sigma[i]:.3g}; "
                + "; ".join(
                    f"{row.velocity} {signed(row.value[i])} "
                    f"({signed_range(row.low[i], row.high[i])})"
                    for row in rows
                )
                for i in range(12)
            ]


def test_lines_and_bands_are_drawn_where_the_numbers_are(run: SyntheticRun, page: str) -> None:
    views = group_views(run.results, trace_rows(run.folder), phrases={})
    scale = scale_of([t for view in views if view.model == "painter" for t in view.attributes])
    part = groups(page)["Kestran person", "painter"]
    lane = re.search(r"<title>SPI of hat</title>.*?</svg>", part, re.DOTALL)
    assert lane
    row = curve(
        run, concept="Kestran person", model="painter", attribute="hat", velocity="conditional"
    )
    drawn = {
        name: [tuple(map(float, p.split())) for p in re.findall(r"[\d.]+ -?[\d.]+", path)]
        for path, name in re.findall(r'<path d="(.*?)" class="(.*?)"', lane[0])
    }
    wanted = [(across(i, 12) * 10, scale.y(v or 0)) for i, v in enumerate(row.value)]
    assert np.allclose(drawn["mean"], wanted, atol=0.06)
    band = [(across(i, 12) * 10, scale.y(v or 0)) for i, v in enumerate(row.high)]
    band += [(across(i, 12) * 10, scale.y(v or 0)) for i, v in enumerate(row.low)][::-1]
    assert np.allclose(drawn["band"], band, atol=0.06)


def test_the_table_has_early_spi_foretelling_images_and_missing(
    run: SyntheticRun, page: str
) -> None:
    for (concept, model), part in groups(page).items():
        rows = re.findall(r"<tr><th scope=.row.><bdi>(.*?)</bdi>(.*?)</tr>", part, re.DOTALL)
        order = []
        for name, cells in rows:
            place = {"concept": concept, "model": model, "attribute": name.replace(" ", "_")}
            row = curve(run, **place, velocity="conditional")
            early = early_of(row)
            assert early.value == pytest.approx(np.mean(row.value[:3]))
            assert early.low == pytest.approx(np.mean(row.low[:3]))
            order.append(abs(early.value or 0))
            assert f"<td>{signed(early.value)}<small>{signed_range(early.low, early.high)}" in cells
            assert f"<td>{row.n}</td><td>{row.n_missing}</td>" in cells
            (auc,) = run.results.select(measure="spi_foretelling", **place)
            assert f"{plain(auc.value)}<small>{plain(auc.low)}–{plain(auc.high)}<br>" in cells
            assert f"{auc.n} images" in cells
        assert len(rows) == 3
        assert order == sorted(order, reverse=True)


def test_pictures_are_of_traced_images_of_this_model_and_phrase(
    run: SyntheticRun, page: str
) -> None:
    traced = list(trace_rows(run.folder))
    sprite = set(re.findall(r'<symbol id="(f\d+)"', page))
    used = set()
    for (concept, model), part in groups(page).items():
        keys = set(re.findall(r"image ([0-9a-f]{32})<", part))
        assert len(keys) == 2
        assert keys <= {row.key for row in traced if (row.concept, row.model) == (concept, model)}
        used |= set(re.findall(r'<use href="#(f\d+)"', part))
    assert used == sprite
    assert page.count("data:image/webp") == len(
        set(re.findall(r"data:image/webp;base64,[^\"]+", page))
    )


def test_film_and_heat_come_from_the_trace(run: SyntheticRun) -> None:
    views = group_views(run.results, trace_rows(run.folder), phrases={})
    evidence = Evidence(run.folder, run.results)
    found = examples_of(views, run.folder, evidence, room=10**6)
    for view in views:
        examples = found.by_group[view.anchor]
        top = view.attributes[0].attribute
        assert [e.shows for e in examples] == [True, False]
        for example in examples:
            earlier = [
                row
                for row in view.rows[: view.rows.index(example.row)]
                if evidence.shows(row.key, top) == example.shows
            ]
            assert earlier == []
            trace = read_trace(run.folder, example.row)
            assert trace.shown_steps is not None
            assert [step for step, _ in example.film] == trace.shown_steps.tolist()
            assert [w.text for w in example.words] == example.image.prompt.split()
            assert [(w.low, w.high) for w in example.words] == [
                (w.low, w.high) for w in trace.words
            ]
            assert [w.still is None for w in example.words] == [w.text == "a" for w in trace.words]


def test_says_what_a_reader_needs(run: SyntheticRun, page: str) -> None:
    text = section(page)
    for words in (
        "96 images",
        "to the bit",
        "being added in this step",
        "does not say why",
        "0.5 is guessing",
        "within one prompt",
        "95\u202f% band for all steps at once",
        "the same everywhere",
        "conditional",
        "judged without",
    ):
        assert words in text, words
    assert '<a href="#inside">' in page
    assert page.index('id="concepts"') < page.index('id="inside"') < page.index('id="missing"')
    assert not re.search(r"\bnan\b|\bNone\b", re.sub(r"None came out|None:", "", text))


def test_same_bytes(run: SyntheticRun, page: str) -> None:
    assert report_html(run.folder, run.results, run.study, facts={}).decode() == page


def test_no_section_without_traces(tmp_path: Path) -> None:
    plain_run = make_run(tmp_path, study_data(images_per_prompt=2))
    page = plain_run.report()
    assert "#inside" not in page
    assert 'id="inside"' not in page


def test_images_that_differ_are_said_to(tmp_path: Path) -> None:
    run = make_traced_run(
        tmp_path, other_pixels=True, images_per_prompt=4, templates=1, concepts=("Kestran person",)
    )
    text = section(run.report())
    assert "2 of them differ from the run's images" in text
    assert "2 not the same as the run's to the bit" in text


@pytest.mark.parametrize("what", ["words", "film", "curves", "one image", "one step", "gaps"])
def test_parts_alone(tmp_path: Path, what: str) -> None:
    trace = {
        "words": {"attributes": [], "show_steps": 0},
        "film": {"attributes": [], "words": []},
        "curves": {"show_steps": 0, "words": []},
        "one image": {"images_per_prompt": 1},
    }.get(what, {})
    run = make_traced_run(
        tmp_path, trace=trace, guided=False, concepts=("Kestran person",), templates=1,
        images_per_prompt=1 if what == "one image" else 4, steps=1 if what == "one step" else 5,
    )  # fmt: skip
    if what == "gaps":
        holes = [
            c.model_copy(
                update=dict.fromkeys(("value", "low", "high"), (None, 0.1, None, -0.1, 0.2))
            )
            for c in run.results.curves
        ]
        run = SyntheticRun(
            run.folder, run.results.model_copy(update={"curves": tuple(holes)}), run.study
        )
    text = section(run.report())
    assert ('class="lane"' in text) == (what != "words")
    assert ('class="film"' in text) == (what not in ("words", "curves"))
    assert ("Where the words" in text) == (what not in ("film", "curves"))
    assert ("All numbers" in text) == (what not in ("film", "words"))
    assert 'class="mean guided' not in text
    if what == "one image":
        assert "no band" in text
        assert 'class="band"/><path' in text.partition("</p>\n<details")[0]
        assert '"band"' not in text.partition("<details")[2]
    assert not re.search(r"\bnan\b|\binf\b", text)


def test_hostile_names(tmp_path: Path) -> None:
    names = [name for name in HOSTILE if not re.search("[\x00\ufffe]", name)]
    run = make_traced_run(
        tmp_path,
        concepts={f"c{i}": {"phrase": name[:200]} for i, name in enumerate(names[1:4])},
        attributes=(names[0], names[2], names[4]),
        models=(HOSTILE[3],),
        images_per_prompt=2,
        templates=1,
        steps=4,
        trace={"images_per_prompt": 2},
    )
    page = run.report()
    assert page.count("<script>") == 1
    for tag in ("details", "svg", "figure", "section", "div", "span"):
        assert page.count(f"</{tag}>") == len(re.findall(f"<{tag}[ >]", page)), tag
    assert "<img" not in page
    tags = Tags(page)
    assert not [name for name in tags.attributes if name.startswith("on") or name == "style"]
    assert {i for i in tags.ids if i.startswith("i")} == {"inside", "i1", "i2", "i3"}
    assert unescape(section(page)).count(HOSTILE[1])


def test_a_large_traced_study_keeps_to_its_share(tmp_path: Path) -> None:
    run = make_traced_run(
        tmp_path,
        concepts=[f"nation {i}" for i in range(12)],
        attributes=[f"attribute {i}" for i in range(4)],
        templates=1,
        images_per_prompt=2,
        trace={"images_per_prompt": 2},
    )
    evidence = Evidence(run.folder, run.results)
    sizes = {}
    for limit in (5_000_000, 600_000, 150_000):
        found = inside_of(run.folder, run.results, evidence, phrases={}, limit=limit)
        assert found is not None
        sizes[limit] = len(found.section.encode()), len(found.symbols.encode())
        assert sizes[limit][1] <= limit * PICTURE_SHARE
        assert sizes[limit][0] <= limit * TEXT_SHARE + 8_000
    assert found.section.count('class="concept inside"') < 12
    assert "some detail is left out" in found.section
    full = report_html(run.folder, run.results, run.study, facts={}, limit=600_000)
    assert len(full) <= 600_000
    assert full.count(b'<details class="concept inside" id=') == 12
    assert len(re.findall(rb'<details class="concept inside" id="i\d+" open', full)) == 1


def test_scale_and_axis() -> None:
    assert scale_of([]) == Scale(-0.001, 0.001, 3)
    assert [across(i, 3) for i in range(3)] == [9, 50, 91]
    assert across(0, 1) == 50
    assert ticks_of(1) == (0,)
    assert ticks_of(50)[0] == 0
    assert ticks_of(50)[-1] == 49


def test_equal_steps_of_attention_look_equal() -> None:
    linear = (colours(np.linspace(0, 1, 33)) / 255) ** 2.2
    lightness = np.cbrt(linear @ np.array([0.2126, 0.7152, 0.0722]))
    steps = np.diff(lightness)
    assert (steps > 0).all()
    assert steps.max() < 2.5 * steps.min()
    legend = "".join(f", #{r:02x}{g:02x}{b:02x}" for r, g, b in COLOURS.astype(int))
    assert legend in asset("report.css")
    picture = Image.new("RGB", (20, 10), "white")
    hot = np.asarray(heated(picture, np.array([[0.0, 1.0]])))
    assert hot.shape == (10, 20, 3)
    assert hot[5, 19, 0] > hot[5, 0, 0] + 60
