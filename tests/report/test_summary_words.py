"""What is said in words follows from the numbers, and is about pictures only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tropescope.findings.answers import Answer, main_answers
from tropescope.findings.results import ReferenceRow
from tropescope.findings.summary import findings_of, reference_words, summary_of
from tropescope.findings.wording import (
    percent,
    percent_range,
    points,
    points_range,
    probability,
    score_range,
)

from synthetic_runs import SyntheticRun, make_run, study_data

NARROW = "\u202f"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SyntheticRun:
    rates = {"hat": 0.9, "beard": 0.02, "glasses": 0.3, "suit": 0.8}
    return make_run(
        tmp_path_factory.mktemp("words"),
        study_data(
            concepts={"Kestran": {"phrase": "Kestran person"}, "Nolvar": {"phrase": "Nolvar"}},
            attributes=tuple(rates),
            images_per_prompt=60,
        ),
        rate_of=lambda row, attribute: rates[attribute],
        outcome_of=lambda image: (
            ("refused", "policy")
            if image.prompt.concept == "Nolvar" and image.replicate < 20
            else ("generated", "")
        ),
    )


PHRASES = {"Kestran": "Kestran person", "Nolvar": "Nolvar"}


def test_findings_are_what_the_rows_say(run: SyntheticRun) -> None:
    findings = findings_of(run.results, phrases=PHRASES)
    claimed = {(f.direction, f.row.concept, f.row.attribute) for f in findings}
    expected = set()
    for row in run.results.select(measure="signed_difference"):
        assert row.high is not None
        if row.high < -0.1:
            expected.add(("less", row.concept, row.attribute))
        elif row.verdict == "found":
            expected.add(("more", row.concept, row.attribute))
    assert claimed == expected
    assert ("less", "Kestran", "beard") in claimed
    assert ("more", "Kestran", "hat") in claimed
    strengths = [finding.strength for finding in findings]
    assert strengths == sorted(strengths, reverse=True)
    assert all(strength > 0 for strength in strengths)


def test_a_claim_names_value_interval_and_reference(run: SyntheticRun) -> None:
    claims = {f.row.attribute: f for f in findings_of(run.results, phrases=PHRASES)}
    hat = claims["hat"]
    rate = hat.answer.rate
    assert "“hat” in images of “" in hat.claim
    assert f"({percent_range(rate.low, rate.high)})" in hat.claim
    assert f"against 30{NARROW}% in the world (census, 2020)" in hat.claim
    assert f"against 30{NARROW}%, an assumed reference" in claims["suit"].claim


def test_summary_counts_add_up_and_names_missing_images(run: SyntheticRun) -> None:
    summary = summary_of(run.results, phrases=PHRASES)
    kinds = [answer.kind for answer in main_answers(run.results)]
    text = summary.text()
    assert f"yes in {kinds.count('found')} of {len(kinds)} questions" in text
    assert f"no in {kinds.count('excluded') + kinds.count('less')}" in text
    assert "by more than 10 percentage points" in text
    assert "40 of 120 images of “Nolvar” were refused." in text
    assert "rest on an assumed reference" in text
    for word in ("biased against", "racist", "people are"):
        assert word not in text


def test_nothing_to_say(tmp_path: Path) -> None:
    run = make_run(
        tmp_path, study_data(images_per_prompt=1), outcome_of=lambda image: ("failed", "x")
    )
    assert findings_of(run.results) == []
    assert "yes in none of 4 questions" in summary_of(run.results).text()
    empty = run.results.model_copy(update={"estimates": (), "item_sets": {}})
    assert summary_of(empty).text() == ""
    assert all(answer.strength < 0 for answer in main_answers(run.results))


def test_a_finding_that_missing_images_could_undo(run: SyntheticRun) -> None:
    answer = next(a for a in main_answers(run.results) if a.kind == "found")
    assert answer.difference is not None
    rate = answer.rate.model_copy(update={"n_missing": 5})
    for low, stands in ((0.05, False), (0.2, True)):
        shifted = answer.difference.model_copy(update={"bounds": (low, 0.9)})
        assert Answer(rate, answer.score, shifted).survives_worst_case is stands


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (percent(0.834), f"83{NARROW}%"),
        (percent(1.0), f"100{NARROW}%"),
        (percent(0.9996), f">{NARROW}99.9{NARROW}%"),
        (percent(0.0), f"0{NARROW}%"),
        (percent(0.0, 1), f"0{NARROW}%"),
        (percent(0.123, 1), f"12.3{NARROW}%"),
        (percent_range(0.0, 0.03), f"0–3{NARROW}%"),
        (percent_range(0.101, 0.112), f"10.1–11.2{NARROW}%"),
        (points(-0.001), "0"),
        (points_range(-0.03, 0.05), "−3 to +5"),
        (score_range(0.0, 0.124), "0–12"),
        (probability(0.0499), "0.050"),
        (probability(1.0), "1.00"),
    ],
)
def test_numbers_in_words(text: str, wanted: str) -> None:
    assert text == wanted


@pytest.mark.parametrize(
    ("value", "shown"), [(0.29, "29"), (0.57, "57"), (0.195, "19.5"), (0.3, "30")]
)
def test_references_have_no_needless_decimals(value: float, shown: str) -> None:
    row = ReferenceRow(value=value, source="x", kind="census")
    assert reference_words(row).startswith(f"{shown}\u202f%")
