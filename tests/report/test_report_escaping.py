"""Names from a study are text, whatever they contain."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tropescope.findings.results import Results
from tropescope.report.rendering import clean, short
from tropescope.report.writing import report_html

from synthetic_runs import HOSTILE, SyntheticRun, make_run, study_data

OURS = {"style": 1, "script": 1, "title": None}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> SyntheticRun:
    return make_run(
        tmp_path_factory.mktemp("plain"),
        study_data(
            concepts=("CONCEPT",),
            attributes=("ATTRIBUTE",),
            models=("MODEL",),
            images_per_prompt=4,
        ),
        rate_of=lambda row, attribute: 1.0,
    )


def renamed(run: SyntheticRun, text: str) -> bytes:
    """The report of a run in which every name is `text`."""
    quoted = json.dumps(text)[1:-1]
    raw = run.results.model_dump_json()
    for name in ("CONCEPT", "ATTRIBUTE", "MODEL"):
        raw = raw.replace(name, quoted)
    study = run.study.model_copy(
        update={
            "study": text or "?",
            "description": text,
            "content_note": text,
            "concepts": {text: run.study.concepts["CONCEPT"].model_copy(update={"phrase": text})},
            "attributes": {text: run.study.attributes["ATTRIBUTE"]},
        }
    )
    results = Results.model_validate_json(raw)
    return report_html(run.folder, results, study, facts={text: text})


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[tuple[str, tuple[str, ...]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kept = tuple(sorted(name for name, _ in attrs if name not in ("title", "open")))
        self.names.append((tag, kept))


@settings(max_examples=40, deadline=None)
@given(
    st.one_of(
        st.sampled_from(HOSTILE),
        st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=60),
        st.text(st.sampled_from("<>\"'&;/={}%#-! abcscript"), min_size=1, max_size=40),
    )
)
def test_no_name_changes_the_elements_of_the_page(plain: SyntheticRun, text: str) -> None:
    assert (
        Elements(renamed(plain, text).decode()).names
        == Elements(renamed(plain, "word").decode()).names
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_are_shown_escaped(plain: SyntheticRun, text: str) -> None:
    page = renamed(plain, text).decode()
    for block in ("<script>window", 'onerror="window', "{{7*7}}</title>"):
        assert block not in page.replace(text, "") or block not in text
    assert page.count("<script>") == 1
    assert "\x00" not in page
    assert len(page) < 500_000
    if "{{7*7}}" in text:
        assert "49{%" not in page
        assert "{{7*7}}" in page


def test_a_run_with_hostile_names_from_study_to_page(tmp_path: Path) -> None:
    names = [name for name in HOSTILE if not re.search("[\x00\ufffe]", name)]
    concepts = {f"c{i} {name}"[:300]: {"phrase": name} for i, name in enumerate(names)}
    data = study_data(concepts=concepts, attributes=names[:3], images_per_prompt=2)
    data["references"] = [
        {**reference, "source": HOSTILE[0], "population": HOSTILE[2]}
        for reference in data["references"]
    ]
    page = make_run(
        tmp_path, data, outcome_of=lambda image: ("generated", "") if image.replicate else
        ("refused", HOSTILE[3]),
    ).report()  # fmt: skip
    assert page.count("<script>") == 1
    assert page.count("</details>") == page.count("<details")


def test_clean_and_short() -> None:
    assert clean("a\x00b\ud800c\n") == "a\ufffdb\ufffdc\n"
    assert short("x" * 100, 10) == "x" * 9 + "…"
    assert short("fits", 10) == "fits"
