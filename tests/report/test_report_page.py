"""The page says what the results say, shows the pictures behind it, and loads nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from tropescope.findings.answers import main_answers
from tropescope.findings.wording import percent, percent_range, places_for, points
from tropescope.report import write_report
from tropescope.report.pictures import Evidence
from tropescope.report.writing import LIMIT, report_html
from tropescope.study.loading import load_study_text

from synthetic_runs import SyntheticRun, make_run, study_data

RATES = {"hat": 0.85, "beard": 0.32, "glasses": 0.05}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SyntheticRun:
    def outcome(image: object) -> tuple[str, str]:
        prompt, number = image.prompt, image.replicate  # type: ignore[attr-defined]
        refused = prompt.concept == "Nolvar person" and number % 4 == 0
        return ("refused", "content policy") if refused else ("generated", "")

    data = study_data(
        attributes=tuple(RATES),
        models=("painter", "drawer"),
        content_note="Strong words ahead.",
        measures=["stereotype_score", "parity_gap"],
    )
    return make_run(
        tmp_path_factory.mktemp("run"),
        data,
        rate_of=lambda row, attribute: RATES[attribute],
        outcome_of=outcome,
        truth=True,
    )


@pytest.fixture(scope="module")
def page(run: SyntheticRun) -> str:
    return run.report(versions={"numpy": "2"})


class Tables(HTMLParser):
    """Rows of all tables as lists of cell texts, and every id and link."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if found.get("id"):
            self.ids.append(str(found["id"]))
        if found.get("href"):
            self.links.append(str(found["href"]))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._in_cell = True
        if tag in ("small", "br") and self._in_cell:
            self.rows[-1][-1] += "|"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


def test_numbers_in_the_page_equal_the_results(run: SyntheticRun, page: str) -> None:
    rows = Tables(page).rows
    for answer in main_answers(run.results):
        rate, difference = answer.rate, answer.difference
        assert difference is not None
        wanted = (
            f"{percent(rate.value, places_for(rate.low, rate.high))}|"
            f"{percent_range(rate.low, rate.high)}"
        )
        matching = [
            row
            for row in rows
            if len(row) > 8 and row[:2] == [rate.attribute, rate.model] and wanted in row
        ]
        assert matching, (rate, wanted)
        assert any(
            str(rate.n) in row
            and any(c.startswith(points(difference.value, 0)) for c in row)
            and any(c.partition("|")[0] == str(rate.n_missing) for c in row)
            for row in matching
        )


def test_every_picture_is_behind_the_number_it_is_shown_with(run: SyntheticRun, page: str) -> None:
    evidence = Evidence(run.folder, run.results)
    seen = 0
    for answer in main_answers(run.results):
        gallery = evidence.gallery(answer, each=3)
        behind = set(run.results.item_sets[answer.rate.items].keys)
        assert {p.key for p in gallery.pictures} <= behind
        assert gallery.present.total + gallery.absent.total == answer.rate.n
        assert all(p.margin > 0 for p in gallery.present.pictures)
        assert all(p.margin <= 0 for p in gallery.absent.pictures)
        share = gallery.present.total / answer.rate.n
        assert share == pytest.approx(answer.rate.value, abs=0.05)
        side = gallery.present
        if side.least:
            assert min(p.margin for p in side.most) >= max(p.margin for p in side.least)
        seen += sum(f"image {p.key}<" in page for p in gallery.pictures)
    assert seen > 20


def test_pictures_shown_belong_to_their_concept_and_model(run: SyntheticRun, page: str) -> None:
    sections = re.split(r'<details class="concept"', page)[1:]
    for section in sections:
        phrase = re.search(r"<h3><bdi>(.*?)</bdi>", section)
        assert phrase
        keys = set(re.findall(r"image ([0-9a-f]{32})<", section))
        allowed = {
            key
            for cell in run.results.item_sets.values()
            if cell.concept == phrase[1]
            for key in cell.keys
        }
        assert keys
        assert keys <= allowed


def test_nothing_is_loaded_from_anywhere(page: str) -> None:
    found = Tables(page)
    for tag, attributes in found.tags:
        assert tag not in ("iframe", "object", "embed", "form", "base")
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        for name in ("src", "href", "xlink:href", "action", "poster", "srcset"):
            value = attributes.get(name)
            if value:
                assert value.startswith(("#", "data:image/webp;base64,", "data:,")), (tag, value)
    without_pictures = re.sub(r"base64,[^\"]*", "", page)
    assert not re.search(r"https?:|//[a-z]", without_pictures)
    assert "url(" not in page
    assert "@import" not in page


def test_policy_names_exactly_the_style_and_the_script(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    allowed = policy[1].replace("&#39;", "'")
    assert "default-src 'none'" in allowed
    assert "unsafe" not in allowed
    for tag in ("style", "script"):
        blocks = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert len(blocks) == 1
        digest = base64.b64encode(hashlib.sha256(blocks[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in allowed


def test_links_inside_the_page_lead_somewhere_and_ids_are_unique(page: str) -> None:
    found = Tables(page)
    assert len(found.ids) == len(set(found.ids))
    targets = {link[1:] for link in found.links if link.startswith("#")}
    assert targets <= set(found.ids)


def test_headings_go_down_one_level_at_a_time(page: str) -> None:
    levels = [int(tag[1]) for tag, _ in Tables(page).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_says_what_a_reader_needs(run: SyntheticRun, page: str) -> None:
    for text in (
        "Strong words ahead.",
        "10 of 40 images of ",
        "refused",
        "content policy",
        "worst case",
        "assumed reference",
        "planted truth",
        "Dies at",
        "Parity gap",
        "estimand: fixed",
        "Benjamini",
        "cccccccc",
        "numpy",
        "tropescope run study.yaml",
        "picture 1 of a {concept}",
        "with glasses",
    ):
        assert text in page, text
    assert "biased against" not in page


def test_same_run_same_bytes_and_an_unchanged_file_is_left_alone(run: SyntheticRun) -> None:
    first = report_html(run.folder, run.results, run.study, facts={"a": 1})
    assert first == report_html(run.folder, run.results, run.study, facts={"a": 1})
    path = write_report(run.folder, run.results, run.study, facts={"a": 1})
    before = path.stat()
    write_report(run.folder, run.results, run.study, facts={"a": 1})
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_one_concept_one_attribute_one_model(tmp_path: Path) -> None:
    data = study_data(concepts=("Kestran person",), attributes=("hat",), images_per_prompt=3)
    page = make_run(tmp_path, data).report()
    assert 'id="overview"' not in page
    assert "#overview" not in page
    assert page.count('class="concept"') == 1


def test_no_reference_and_several_estimators(tmp_path: Path) -> None:
    data = study_data(references=[], measures=["attribute_rate"], images_per_prompt=4)
    page = make_run(tmp_path / "a", data).report()
    assert "no reference to compare them with" in page
    assert "Score Ψ" not in page
    data = study_data(estimators=["mean", "posterior"], images_per_prompt=4)
    page = make_run(tmp_path / "b", data).report()
    assert '<td class="word">posterior</td>' in page


def test_no_usable_image_at_all(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        study_data(images_per_prompt=2),
        outcome_of=lambda image: ("refused", "no"),
    )
    assert all(row.value is None for row in run.results.estimates)
    page = run.report()
    assert "not defined" in page
    assert "there is no usable image, so no answer" in page
    body = page.partition("<script>")[0]
    assert not re.search(r"\bnan\b|\bNone\b(?!:)", body)


def test_one_concept_without_usable_images(tmp_path: Path) -> None:
    page = make_run(
        tmp_path,
        study_data(images_per_prompt=5),
        outcome_of=lambda image: (
            ("invalid", "black") if image.prompt.concept == "Nolvar person" else ("generated", "")
        ),
    ).report()
    assert "∅" in page


def test_a_missing_study_file_is_replaced_by_what_is_known(tmp_path: Path) -> None:
    run = make_run(tmp_path, study_data(images_per_prompt=2))
    run.folder.study.unlink()
    assert "A synthetic study" in run.report()


def test_a_large_study_stays_below_the_limit(tmp_path: Path) -> None:
    """135 phrases × 20 attributes × 3 models; rows copied, because only the page is tested."""
    small = make_run(
        tmp_path,
        study_data(attributes=("hat", "beard"), images_per_prompt=30, concepts=("seed person",)),
        rate_of=lambda row, attribute: 0.85 if attribute == "hat" else 0.3,
    )
    concepts = {f"phrase number {i}": f"person of the nation number {i}" for i in range(135)}
    attributes = [f"attribute {i}" for i in range(20)]
    models = ("stable-diffusion-v1-5", "stable-diffusion-xl", "flux-dev")
    study = load_study_text(
        yaml.safe_dump(study_data(concepts=concepts, attributes=attributes, models=models))
    )
    seed = {row.attribute: [] for row in small.results.estimates}
    for row in small.results.estimates:
        seed[row.attribute].append(row)
    (cell,) = small.results.item_sets.values()
    rows = [
        row.model_copy(update={"model": m, "concept": c, "attribute": a, "items": f"{m} × {c}"})
        for m in models
        for c in concepts
        for i, a in enumerate(attributes)
        for row in seed["hat" if i % 2 else "beard"]
    ]
    sets = {
        f"{m} × {c}": cell.model_copy(update={"model": m, "concept": c})
        for m in models
        for c in concepts
    }
    results = small.results.model_copy(
        update={"estimates": tuple(rows), "item_sets": sets, "models": {m: {} for m in models}}
    )
    page = report_html(small.folder, results, study, facts={})
    assert len(page) <= LIMIT
    assert page.count(b'<details class="concept"') == 135
    half = report_html(small.folder, results, study, facts={}, limit=2_500_000)
    assert len(half) <= 2_500_000
    assert b"without a section" in half


def test_pictures_shrink_and_thin_out_before_the_limit_is_passed(tmp_path: Path) -> None:
    run = make_run(tmp_path, study_data(images_per_prompt=30))
    large = report_html(run.folder, run.results, run.study, facts={})
    limit = len(large) - 4_000
    tight = report_html(run.folder, run.results, run.study, facts={}, limit=limit)
    assert len(tight) <= limit
    assert b'<symbol id="p0"' in tight
