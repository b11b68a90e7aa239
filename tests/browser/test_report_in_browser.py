"""The report in a real browser: quiet console, no requests, no foreign script, readable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from synthetic_runs import HOSTILE, make_run, study_data
from traced_runs import make_traced_run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = make_run(
        tmp_path_factory.mktemp("browser"),
        study_data(
            concepts=[f"Kestran person {i}" for i in range(8)],
            attributes=("hat", "beard", "glasses"),
            models=("painter", "drawer"),
            images_per_prompt=12,
        ),
        rate_of=lambda row, attribute: {"hat": 0.9, "beard": 0.3, "glasses": 0.02}[attribute],
        distinct=40,
        truth=True,
    )
    run.report()
    return run.folder.report


@pytest.fixture(scope="module")
def traced_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = make_traced_run(
        tmp_path_factory.mktemp("traced"),
        attributes=("hat", "beard", "glasses", "scarf", "cap", "shawl", "n" * 300),
        templates=1,
        images_per_prompt=4,
    )
    run.report()
    return run.folder.report


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = [name for name in HOSTILE if "\x00" not in name]
    data = study_data(
        concepts={f"c{i}": {"phrase": name} for i, name in enumerate(names)},
        attributes=names[:4],
        models=(HOSTILE[0], HOSTILE[2]),
        images_per_prompt=3,
        study=HOSTILE[3],
        description=HOSTILE[2],
        content_note=HOSTILE[0],
    )
    run = make_run(
        tmp_path_factory.mktemp("hostile"),
        data,
        distinct=5,
        outcome_of=lambda image: ("generated", "") if image.replicate else ("refused", HOSTILE[3]),
    )
    run.report(**{"<b>x</b>": HOSTILE[0]})
    return run.folder.report


@dataclass
class Opened:
    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def opened(chromium: Any, path: Path, **options: Any) -> Iterator[Opened]:
    context = chromium.new_context(viewport={"width": 1200, "height": 900}, **options)
    page = context.new_page()
    seen = Opened(page)
    page.on("console", lambda message: seen.complaints.append(message.text))
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("dialog", lambda dialog: seen.complaints.append("dialog"))
    page.goto(path.as_uri())
    yield seen
    context.close()


def test_opens_without_complaint_or_request(chromium: Any, report: Path) -> None:
    with opened(chromium, report) as seen:
        assert seen.page.locator("h1").inner_text() == "A synthetic study"
        # The style sheet is applied and the script has run, so both hashes are right.
        assert seen.page.evaluate("getComputedStyle(document.querySelector('.t')).width") != "auto"
        assert seen.page.locator(".tools input").count() == 1
        assert seen.complaints == []
        assert [url for url in seen.requests if not url.startswith("data:")] == [report.as_uri()]


def test_thumbnails_are_drawn(chromium: Any, report: Path) -> None:
    with opened(chromium, report) as seen:
        seen.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        thumb = seen.page.locator(".thumbs svg").first
        thumb.scroll_into_view_if_needed()
        shot = thumb.screenshot()
        empty = seen.page.evaluate(
            "[...document.querySelectorAll('.thumbs use')]"
            ".filter(u => !document.querySelector(u.getAttribute('href'))).length"
        )
        assert empty == 0
        assert seen.page.locator(".thumbs use").count() > 50
        assert len(set(_colours(shot))) > 3


def _colours(png: bytes) -> list[Any]:
    import io

    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        middle = image.convert("RGB").crop(
            (0, image.height // 2, image.width, image.height // 2 + 1)
        )
        return [pixel for _, pixel in middle.getcolors() or []]


def test_links_open_what_they_lead_to_and_tables_sort(chromium: Any, report: Path) -> None:
    with opened(chromium, report) as seen:
        page = seen.page
        assert page.locator("#c8").get_attribute("open") is None
        page.locator(".matrix a[href='#c8']").first.click()
        assert page.locator("#c8").get_attribute("open") is not None
        page.locator("#c8 .numbers").evaluate("d => { d.open = true }")
        page.locator("#c8 thead button", has_text="Rate").click()
        rates = page.locator("#c8 tbody tr").evaluate_all(
            "rows => rows.map(r => parseFloat(r.cells[3].textContent))"
        )
        assert rates == sorted(rates, reverse=True)
        page.locator(".tools input").fill("person 3")
        assert page.locator("details.concept:visible").count() == 1
        assert seen.complaints == []


def test_reads_without_javascript(chromium: Any, report: Path) -> None:
    with opened(chromium, report, java_script_enabled=False) as seen:
        assert seen.page.locator("#summary").is_visible()
        assert seen.page.locator("details.concept > summary").count() == 8
        assert seen.page.locator("thead button").count() == 0
        seen.page.locator("#c2 > summary").click()
        assert seen.page.locator("#c2 .chart").is_visible()


def test_no_foreign_script_runs(chromium: Any, hostile_report: Path) -> None:
    with opened(chromium, hostile_report) as seen:
        page = seen.page
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        assert page.evaluate("window.hacked") is None
        assert page.locator("script").count() == 1
        assert page.locator("img, iframe, object").count() == 0
        assert seen.complaints == []
        assert page.locator("h1").inner_text().startswith("</title></style>")
        assert page.locator("details.concept").count() == len(HOSTILE) - 1


@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize("kind", ["report", "hostile_report", "traced_report"])
def test_the_page_is_never_wider_than_the_screen(
    chromium: Any, width: int, kind: str, request: pytest.FixtureRequest
) -> None:
    with opened(chromium, request.getfixturevalue(kind)) as seen:
        seen.page.set_viewport_size({"width": width, "height": 800})
        seen.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


CONTRAST = """
() => {
  const parse = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => {
    v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  }).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length) layers.push([...c.slice(0, 3), c.length > 3 ? c[3] : 1]);
    }
    let out = [255, 255, 255];
    for (const [r, g, b, a] of layers.reverse())
      out = [r, g, b].map((v, i) => v * a + out[i] * (1 - a));
    return out;
  };
  const bad = new Set();
  for (const e of document.querySelectorAll('p, td, th, li, dd, dt, h1, h2, h3, a, small, span, b')) {
    if (!e.textContent.trim() || e.closest('.unseen, .skip')) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) bad.add(`${e.tagName}.${e.className} ${ratio.toFixed(2)}`);
  }
  return [...bad];
}
"""


def test_pictures_stand_under_their_steps(chromium: Any, traced_report: Path) -> None:
    for width in (360, 1200):
        with opened(chromium, traced_report) as seen:
            page = seen.page
            page.set_viewport_size({"width": width, "height": 900})
            page.locator("nav a[href='#inside']").click()
            middles = """es => es.map(e => e.getBoundingClientRect())
                .map(r => Math.round(r.x + r.width / 2))"""
            figure = page.locator("#i1 .curves").first
            steps = figure.locator(".row > .lane").last.locator("text:has(title)")
            pictures = figure.locator(".film").first.locator("use")
            lines = figure.locator(".lane").first.locator("line.g")
            wanted = steps.evaluate_all(middles)
            assert len(wanted) == 6
            for found in (pictures.evaluate_all(middles), lines.evaluate_all(middles)):
                assert all(abs(a - b) <= 2 for a, b in zip(found, wanted, strict=True))
            assert len(set(_colours(pictures.last.screenshot()))) > 1
            assert page.locator("#i1 .heat .t use").first.is_visible()
            assert seen.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["report", "traced_report"])
def test_contrast(chromium: Any, scheme: str, kind: str, request: pytest.FixtureRequest) -> None:
    with opened(chromium, request.getfixturevalue(kind), color_scheme=scheme) as seen:
        assert seen.page.evaluate(CONTRAST) == []
