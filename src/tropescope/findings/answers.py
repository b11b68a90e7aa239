"""One question of a study and its answer: all estimates of one model, concept and attribute.

A question is: does this model show the attribute in images of this phrase more often than the
world does? Its answer is read from the stereotype score's verdict and the signed difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tropescope.findings.results import EstimateRow, ReferenceRow, Results

Kind = Literal["found", "less", "undecided", "excluded", "no reference", "not defined"]


@dataclass(frozen=True)
class Answer:
    """Estimates of one (model, concept, attribute) by one estimator."""

    rate: EstimateRow
    score: EstimateRow | None = None
    difference: EstimateRow | None = None
    parity_gap: EstimateRow | None = None

    @property
    def model(self) -> str:
        return self.rate.model

    @property
    def concept(self) -> str:
        return self.rate.concept

    @property
    def attribute(self) -> str:
        return self.rate.attribute

    @property
    def reference(self) -> ReferenceRow | None:
        return self.rate.reference

    @property
    def assumed(self) -> bool:
        return self.reference is not None and self.reference.kind == "assumed"

    @property
    def zeta(self) -> float:
        return 0.0 if self.score is None or self.score.zeta is None else self.score.zeta

    @property
    def kind(self) -> Kind:
        """`less` where the difference lies below −ζ, corrected for many: bias, no stereotype."""
        if self.rate.value is None:
            return "not defined"
        if self.score is None or self.difference is None:
            return "no reference"
        p_less = self.difference.p_less_adjusted
        if p_less is not None and p_less <= (1 - self.difference.level) / 2:
            return "less"
        if self.score.verdict == "found":
            return "found"
        return "excluded" if self.score.verdict == "excluded" else "undecided"

    @property
    def strength(self) -> float:
        """How far the interval's nearer end lies beyond ζ; negative where nothing is claimed."""
        if self.difference is None or self.difference.low is None or self.difference.high is None:
            return -2.0
        beyond = max(self.difference.low, -self.difference.high) - self.zeta
        return beyond if self.kind in ("found", "less") else min(beyond, 0.0) - 1.0

    @property
    def survives_worst_case(self) -> bool | None:
        """Whether the estimate stays beyond ζ whatever the missing images would have shown."""
        if self.difference is None or self.difference.bounds is None or not self.rate.n_missing:
            return None
        low, high = self.difference.bounds
        if self.kind == "found":
            return low > self.zeta
        return high < -self.zeta if self.kind == "less" else None


def main_estimator(results: Results) -> str:
    """The estimator on which claims rest: the first one of the study."""
    return results.estimates[0].estimator if results.estimates else "mean"


def answers_of(results: Results) -> list[Answer]:
    """All answers of all estimators, in the order of the results."""
    grouped: dict[tuple[str, str, str, str], dict[str, EstimateRow]] = {}
    for row in results.estimates:
        place = (row.model, row.concept, row.attribute, row.estimator)
        grouped.setdefault(place, {})[row.measure] = row
    return [
        Answer(
            rate=rows["attribute_rate"],
            score=rows.get("stereotype_score"),
            difference=rows.get("signed_difference"),
            parity_gap=rows.get("parity_gap"),
        )
        for rows in grouped.values()
        if "attribute_rate" in rows
    ]


def main_answers(results: Results) -> list[Answer]:
    """The answers on which claims rest."""
    estimator = main_estimator(results)
    return [answer for answer in answers_of(results) if answer.rate.estimator == estimator]


def by_strength(answers: Iterable[Answer]) -> list[Answer]:
    """Strongest claims first; equal ones in their given order."""
    return sorted(answers, key=lambda answer: -answer.strength)
