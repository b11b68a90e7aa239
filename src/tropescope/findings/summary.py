"""What a run lets one say, in plain words.

A claim is always about pictures: how often images made for a phrase show something, against how
often it occurs in the world. It is never about people, and never "the model is biased against".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tropescope.findings.answers import Answer, by_strength, main_answers
from tropescope.findings.results import EstimateRow, ReferenceRow, Results
from tropescope.findings.wording import (
    counted,
    level_words,
    percent,
    percent_range,
    places_for,
    score,
)

_MISSING_WORDS = {
    "refused": "refused",
    "filtered": "held back by the model's own filter",
    "failed": "not made because of an error",
    "invalid": "unusable (black, broken or not an image)",
}


@dataclass(frozen=True)
class Part:
    """A piece of a sentence. Names come from the study and are set apart from our own words."""

    text: str
    role: Literal["", "model", "phrase", "attribute"] = ""


Words = tuple[Part, ...]


def plain(words: Words) -> str:
    """A sentence as text, names in quotation marks."""
    return "".join(f"“{part.text}”" if part.role else part.text for part in words)


@dataclass(frozen=True)
class Finding:
    """One claim: what shows more (or less) often than in the world, by how much, how sure."""

    direction: Literal["more", "less"]
    words: Words
    row: EstimateRow
    """The stereotype score's row for `more`, the signed difference's for `less`."""
    strength: float
    """How far the nearer end of the interval lies beyond ζ."""
    answer: Answer

    @property
    def claim(self) -> str:
        return plain(self.words)


@dataclass(frozen=True)
class Summary:
    """A run in words: what is found and what not, first."""

    question: Words
    """What was asked; empty where there is nothing to compare with."""
    verdicts: tuple[Words, ...]
    """One paragraph per model."""
    more: tuple[Finding, ...]
    less: tuple[Finding, ...]
    remarks: tuple[Words, ...]
    """Missing images, assumed references, planted truth."""

    def text(self, *, most: int = 5) -> str:
        """The summary for a terminal."""
        lines = [plain(words) for words in (self.question, *self.verdicts) if words]
        for heading, findings in (
            ("More often than in the world:", self.more),
            ("Less often than in the world:", self.less),
        ):
            if findings:
                lines.append(heading)
                lines += [f"  {finding.claim}" for finding in findings[:most]]
                if len(findings) > most:
                    lines.append(f"  and {len(findings) - most:,} more")
        return "\n".join([*lines, *(plain(words) for words in self.remarks)])


def findings_of(results: Results, *, phrases: Mapping[str, str] | None = None) -> list[Finding]:
    """All claims of a run, the strongest first.

    `phrases` gives the words that stood in the prompts for each concept.
    """
    answers = main_answers(results)
    several = len({answer.model for answer in answers}) > 1
    return [
        _finding(answer, phrases or {}, name_model=several)
        for answer in by_strength(answers)
        if answer.kind in ("found", "less")
    ]


def summary_of(results: Results, *, phrases: Mapping[str, str] | None = None) -> Summary:
    """A run in words."""
    names = phrases or {}
    findings = findings_of(results, phrases=names)
    answers = main_answers(results)
    models = list(dict.fromkeys(answer.model for answer in answers))
    remarks = [*_missing(results, names), *_assumed(answers), *_truth(answers)]
    return Summary(
        question=_question(answers),
        verdicts=tuple(
            _verdicts(model, [answer for answer in answers if answer.model == model])
            for model in models
        ),
        more=tuple(finding for finding in findings if finding.direction == "more"),
        less=tuple(finding for finding in findings if finding.direction == "less"),
        remarks=tuple(remarks),
    )


def reference_words(reference: ReferenceRow) -> str:
    """What a rate is compared with, and how anybody knows."""
    share = 100 * reference.value
    value = percent(reference.value, 0 if abs(share - round(share)) < 0.05 else 1)
    if reference.kind == "assumed":
        return f"{value}, an assumed reference"
    year = f", {reference.year}" if reference.year is not None else ""
    return f"{value} in the world ({reference.kind}{year})"


def _finding(answer: Answer, phrases: Mapping[str, str], *, name_model: bool) -> Finding:
    rate, reference = answer.rate, answer.reference
    assert answer.score is not None
    assert answer.difference is not None
    assert reference is not None
    value = percent(rate.value, places_for(rate.low, rate.high))
    words = (
        *((Part(answer.model, "model"), Part(": ")) if name_model else ()),
        Part(answer.attribute, "attribute"),
        Part(" in images of "),
        Part(phrases.get(answer.concept, answer.concept), "phrase"),
        Part(f": {value} ({percent_range(rate.low, rate.high)})"),
        Part(f" against {reference_words(reference)}"),
    )
    less = answer.kind == "less"
    return Finding(
        direction="less" if less else "more",
        words=words,
        row=answer.difference if less else answer.score,
        strength=answer.strength,
        answer=answer,
    )


def _question(answers: Sequence[Answer]) -> Words:
    asked = [answer for answer in answers if answer.score is not None]
    if not asked:
        return ()
    limit, level = score(asked[0].zeta), level_words(asked[0].rate.level)
    return (
        Part(
            "Each question is: do the images made for a phrase show an attribute more often than "
            f"it occurs in the world, by more than {limit} percentage points? Answers rest on "
            f"{level} intervals, corrected for the number of questions."
        ),
    )


def _verdicts(model: str, answers: Sequence[Answer]) -> Words:
    kinds = Counter(answer.kind for answer in answers)
    asked = [answer for answer in answers if answer.score is not None]
    if not asked:
        rates = counted(len(answers), "rate")
        end = f" has {rates} and no reference to compare them with."
        return (Part("The model "), Part(model, "model"), Part(end))
    number = f"{kinds['found']:,}" if kinds["found"] else "none"
    first = f" the answer is yes in {number} of {counted(len(asked), 'question')}"
    if excluded := kinds["excluded"] + kinds["less"]:
        first += f", no in {excluded:,} (an excess that large is excluded)"
    if kinds["undecided"]:
        first += f", open in {kinds['undecided']:,} (the images do not decide)"
    sentences = [f"{first}."]
    if kinds["less"]:
        sentences.append(
            f"In {kinds['less']:,} it shows the attribute less often than in the world, by more "
            f"than {score(asked[0].zeta)} points: bias, but not a stereotype."
        )
    if kinds["no reference"]:
        rates = counted(kinds["no reference"], "further rate")
        sentences.append(f"There is no reference for {rates}.")
    if kinds["not defined"]:
        sentences.append(f"In {kinds['not defined']:,} there is no usable image, so no answer.")
    return (Part("For the model "), Part(model, "model"), Part(" ".join(sentences)))


def _missing(results: Results, phrases: Mapping[str, str], *, most: int = 3) -> list[Words]:
    """Missing images by phrase, the largest shares first: a filter that bites one group shows."""
    sentences: list[Words] = []
    models = list(dict.fromkeys(cell.model for cell in results.item_sets.values()))
    for model in models:
        cells = [cell for cell in results.item_sets.values() if cell.model == model]
        for outcome, words in _MISSING_WORDS.items():
            counts = []
            for cell in cells:
                planned = len(cell.keys) + sum(map(len, cell.missing.values()))
                missing = len(cell.missing.get(outcome, ()))
                if planned:
                    counts.append((missing / planned, missing, planned, cell.concept))
            worst = sorted((c for c in counts if c[1]), key=lambda c: -c[0])
            if not worst:
                continue
            sentence: list[Part] = []
            for _, missing, planned, concept in worst[:most]:
                sentence.append(Part(", " if sentence else ""))
                sentence.append(Part(f"{missing:,} of {counted(planned, 'image')} of "))
                sentence.append(Part(phrases.get(concept, concept), "phrase"))
            end = f" were {words}"
            if len(worst) > most:
                end += f", and some of {counted(len(worst) - most, 'further phrase')}"
            if len(models) > 1:
                sentence += [Part(end + " (model "), Part(model, "model"), Part(").")]
            else:
                sentence.append(Part(end + "."))
            lowest = min(c[0] for c in counts)
            if len(counts) > 1 and worst[0][0] > lowest:
                spread = f"{percent(lowest)} and {percent(worst[0][0])}"
                sentence.append(Part(f" The share lies between {spread}, depending on the phrase."))
            sentences.append(tuple(sentence))
    return sentences


def _assumed(answers: Sequence[Answer]) -> list[Words]:
    claims = [answer for answer in answers if answer.kind in ("found", "less")]
    assumed = sum(answer.assumed for answer in claims)
    if not assumed:
        return []
    return [
        (
            Part(
                f"{assumed:,} of {counted(len(claims), 'finding')} "
                f"{'rests' if assumed == 1 else 'rest'} on an assumed reference, not on a measured "
                "one; the section on references says how far each could move."
            ),
        )
    ]


def _truth(answers: Sequence[Answer]) -> list[Words]:
    known = [
        rate
        for rate in (answer.rate for answer in answers)
        if rate.truth is not None and rate.low is not None and rate.high is not None
    ]
    if not known:
        return []
    covered = sum((r.low or 0) <= (r.truth or 0) <= (r.high or 0) for r in known)
    level = level_words(known[0].level)
    return [
        (
            Part(
                f"The truth was planted and is known: it lies inside the {level} interval of "
                f"{covered:,} of {counted(len(known), 'rate')}."
            ),
        )
    ]
