"""Scores of every identity from what raters marked (ViSAGe §4.1, Tables 1 and 2, Fig. 8).

Two conventions. *Default*: random attributes are those shown that the resource does not list for
the identity at all. *Published*: everything shown that is not a stereotype of the identity is
random, "none of the above" included as one attribute that is never present; this reproduces the
paper's tables. In both, a stereotype is a visual attribute that at least two raters know as one,
and θ is given for identities with at least two of them, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from tropescope.annotations.identities import Place, places
from tropescope.annotations.likert import VisualRule
from tropescope.measures.likelihood import (
    IntArray,
    Likelihoods,
    Ratings,
    attribute_likelihoods,
    likelihoods,
)
from tropescope.measures.offensiveness import Offensiveness, mean_score, offensiveness
from tropescope.measures.tendency import Tendency, tendency
from tropescope.statistics.agreement import Agreement, krippendorff_alpha
from tropescope.statistics.estimate import Estimate, Verdict
from tropescope.statistics.multiplicity import benjamini_hochberg
from tropescope.visage.inputs import Inputs
from tropescope.visage.pooling import Pooled, pooled_tendency

Kind = Literal["stereotypical", "random", "listed", "option"]


@dataclass(frozen=True)
class Settings:
    """How to score."""

    published: bool = False
    rule: VisualRule = field(default_factory=VisualRule)
    votes: int = 2
    least_stereotypes: int = 2
    margin: float = 0.0
    level: float = 0.95


@dataclass(frozen=True, slots=True)
class AttributeRow:
    """One attribute shown with the images of one identity."""

    identity: str
    attribute: str
    kind: Kind
    marked: int
    shown: int
    likelihood: Estimate
    offence: float | None


@dataclass(frozen=True, slots=True)
class IdentityRow:
    """One identity. `listed_stereotypes` counts its visual stereotypes, shown or not."""

    identity: str
    place: Place | None
    images: int
    listed_stereotypes: int
    k_stereo: int
    k_random: int
    tendency: Tendency
    offensiveness: Offensiveness
    attributes: tuple[AttributeRow, ...]
    examples: tuple[str, ...]
    adjusted_p: float | None = None
    verdict: Verdict = "none"

    @property
    def scored(self) -> bool:
        """Whether the identity has enough stereotypes to take part in the comparison."""
        return self.adjusted_p is not None


@dataclass(frozen=True)
class Analysis:
    settings: Settings
    identities: tuple[IdentityRow, ...]
    visual: tuple[str, ...]
    pooled: Pooled
    agreement: Agreement
    unshown: dict[str, int]
    notes: tuple[str, ...]

    def __getitem__(self, identity: str) -> IdentityRow:
        return next(row for row in self.identities if row.identity == identity)

    @property
    def scored(self) -> tuple[IdentityRow, ...]:
        return tuple(row for row in self.identities if row.scored)


def analyse(inputs: Inputs, settings: Settings | None = None) -> Analysis:
    """Score every identity of the annotations."""
    settings = settings or Settings()
    visual = inputs.likert.visual(settings.rule)
    marks = inputs.marks
    order = np.argsort(marks.identity, kind="stable")
    ends = np.searchsorted(marks.identity[order], np.arange(len(marks.identities) + 1))
    rows = [
        _identity(
            inputs, settings, frozenset(visual), number, order[ends[number] : ends[number + 1]]
        )
        for number in range(len(marks.identities))
    ]
    rows = _with_verdicts(rows, settings)
    answers = marks.attribute != (-1 if marks.none_option is None else marks.none_option)
    image, attribute = marks.image[answers], marks.attribute[answers]
    counts = {
        row.identity: row.listed_stereotypes - row.k_stereo
        for row in rows
        if row.listed_stereotypes > row.k_stereo
    }
    return Analysis(
        settings=settings,
        identities=tuple(rows),
        visual=visual,
        pooled=pooled_tendency(
            [
                (row.tendency.stereo.value, row.tendency.random.value)
                for row in rows
                if row.adjusted_p is not None
            ],
            level=settings.level,
        ),
        agreement=krippendorff_alpha(
            image * len(marks.attributes) + attribute,
            marks.present[answers].astype(np.int64),
            cluster=image,
            level=settings.level,
        ),
        unshown=counts,
        notes=inputs.notes,
    )


def _identity(
    inputs: Inputs, settings: Settings, visual: frozenset[str], number: int, rows: IntArray
) -> IdentityRow:
    marks, stereotypes = inputs.marks, inputs.stereotypes
    identity = marks.identities[number]
    images, image = np.unique(marks.image[rows], return_inverse=True)
    attributes, attribute = np.unique(marks.attribute[rows], return_inverse=True)
    names = [marks.attributes[a] for a in attributes]
    known = stereotypes.known(identity, visual=visual, least=settings.votes)
    kinds = _kinds(inputs, identity, attributes, frozenset(known))
    table = likelihoods(
        Ratings(image, attribute, marks.present[rows].astype(float), len(images), len(attributes))
    )
    randoms = ("random", "listed", "option") if settings.published else ("random",)
    stereo_columns = [column for column, kind in enumerate(kinds) if kind == "stereotypical"]
    random_columns = [column for column, kind in enumerate(kinds) if kind in randoms]
    stereo = table.group(stereo_columns)
    scores = stereotypes.offensiveness(identity, known)
    shown = {names[column]: column for column in stereo_columns}
    seen = np.array([name in shown and table.marked[shown[name]] > 0 for name in known], dtype=bool)
    return IdentityRow(
        identity=identity,
        place=places().get(identity),
        images=len(images),
        listed_stereotypes=len(known),
        k_stereo=len(stereo_columns),
        k_random=len(random_columns),
        tendency=tendency(
            stereo, table.group(random_columns), margin=settings.margin, level=settings.level
        ),
        offensiveness=offensiveness(scores, seen, stereo, level=settings.level),
        attributes=_attribute_rows(inputs, identity, names, kinds, table, settings.level),
        examples=_harmless(inputs, identity, known),
    )


def _kinds(
    inputs: Inputs, identity: str, attributes: IntArray, known: frozenset[str]
) -> list[Kind]:
    listed = inputs.stereotypes.listed(identity)
    kinds: list[Kind] = []
    for number in attributes:
        name = inputs.marks.attributes[number]
        if number == inputs.marks.none_option:
            kinds.append("option")
        elif name in known:
            kinds.append("stereotypical")
        else:
            kinds.append("listed" if name in listed else "random")
    return kinds


def _attribute_rows(
    inputs: Inputs,
    identity: str,
    names: list[str],
    kinds: list[Kind],
    table: Likelihoods,
    level: float,
) -> tuple[AttributeRow, ...]:
    estimates = attribute_likelihoods(table, level=level)
    scores = inputs.stereotypes.offensiveness(identity, names)
    rows = [
        AttributeRow(
            identity, name, kind, int(marked), int(shown), estimate, mean_score(score[None])
        )
        for name, kind, marked, shown, estimate, score in zip(
            names, kinds, table.marked, table.shown, estimates, scores, strict=True
        )
    ]
    place = {"stereotypical": 0, "listed": 1, "random": 2, "option": 3}
    return tuple(
        sorted(rows, key=lambda row: (place[row.kind], -(row.likelihood.value or 0), row.attribute))
    )


def _harmless(inputs: Inputs, identity: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Stereotypes that every rater called not offensive: fit to be shown as examples."""
    scores = inputs.stereotypes.offensiveness(identity, known)
    votes = inputs.stereotypes.votes["na_stereo"]
    own = inputs.stereotypes.rows.get(identity, {})
    kept = [name for name, row in zip(known, scores, strict=True) if (row == -1).all()]
    return tuple(sorted(kept, key=lambda name: (-votes[own[name]], name)))


def _with_verdicts(rows: list[IdentityRow], settings: Settings) -> list[IdentityRow]:
    """θ only from enough stereotypes; verdicts after correction for the number of identities."""
    least = settings.least_stereotypes
    scored = [
        number
        for number, row in enumerate(rows)
        if row.k_stereo >= least and row.tendency.difference.p_value is not None
    ]
    p_values = [rows[n].tendency.difference.p_value or 0.0 for n in scored]
    more, less = benjamini_hochberg(p_values), benjamini_hochberg([1 - p for p in p_values])
    limit = (1 - settings.level) / 2
    result = [row if row.k_stereo >= least else _without_theta(row, least) for row in rows]
    for number, up, down in zip(scored, more, less, strict=True):
        verdict = rows[number].tendency.difference.verdict
        if (verdict == "found" and up > limit) or (verdict == "excluded" and down > limit):
            verdict = "undecided"
        result[number] = replace(result[number], adjusted_p=up, verdict=verdict)
    return result


def _without_theta(row: IdentityRow, least: int) -> IdentityRow:
    note = f"fewer than {least} visual stereotypes were shown, so θ is not given, as in the paper"
    theta = replace(
        row.tendency.theta, value=None, low=None, high=None, method="not defined", notes=(note,)
    )
    return replace(row, tendency=replace(row.tendency, theta=theta))
