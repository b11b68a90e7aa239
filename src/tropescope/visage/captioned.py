"""What captions say beside what raters marked (ViSAGe §4.2 and Fig. 3).

Two variants: with the visual filter, attributes are the visual ones; without it, all of the
resource. In both, the panel of an identity shows its own attributes that captions name, by
salience. Agreement with raters is over the stereotypes that raters were shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tropescope.annotations.captions import Captions
from tropescope.annotations.cells import csv_bytes
from tropescope.annotations.matching import caption_counts
from tropescope.measures.salience import (
    CaptionAgreement,
    CaptionCounts,
    agreement_with_raters,
    salience,
)
from tropescope.statistics.estimate import Estimate
from tropescope.visage.analysis import Analysis, IdentityRow
from tropescope.visage.inputs import Inputs

COLUMNS = (
    "identity",
    "attribute",
    "visual_filter",
    "captions_naming_it",
    "salience",
    "salience_low",
    "salience_high",
    "level",
    "marked_by_raters",
)


@dataclass(frozen=True, slots=True)
class Salient:
    """An attribute of an identity that its captions name; `marked` is None where never shown."""

    identity: str
    attribute: str
    filtered: bool
    named: int
    salience: Estimate
    marked: bool | None


@dataclass(frozen=True)
class Captioned:
    """Salient attributes of every identity, and agreement with the raters."""

    rows: tuple[Salient, ...]
    agreement: CaptionAgreement
    captions: int
    images: int

    def of(self, identity: str, *, filtered: bool) -> tuple[Salient, ...]:
        return tuple(r for r in self.rows if r.identity == identity and r.filtered == filtered)


def caption_analysis(inputs: Inputs, analysis: Analysis, captions: Captions) -> Captioned:
    """Salience with and without the visual filter, for every identity."""
    rows: list[Salient] = []
    visual = analysis.visual
    for filtered, attributes in ((True, visual), (False, inputs.likert.attributes)):
        counts = caption_counts(
            captions.texts,
            captions.image,
            inputs.marks.identity_of_image,
            attributes=attributes,
            identities=len(inputs.marks.identities),
        )
        rows += _salient(inputs, analysis, counts, attributes, filtered)
    named = {(row.identity, row.attribute) for row in rows if row.filtered}
    shown = [
        (row.identity, attribute.attribute, attribute.marked > 0)
        for row in analysis.identities
        for attribute in row.attributes
        if attribute.kind == "stereotypical"
    ]
    return Captioned(
        tuple(rows),
        agreement_with_raters(
            np.array([(identity, name) in named for identity, name, _ in shown], dtype=bool),
            np.array([marked for _, _, marked in shown], dtype=bool),
        ),
        len(captions.texts),
        len(np.unique(captions.image)),
    )


def _salient(
    inputs: Inputs,
    analysis: Analysis,
    counts: CaptionCounts,
    attributes: Sequence[str],
    filtered: bool,
) -> list[Salient]:
    result = salience(counts, resamples=200, level=analysis.settings.level)
    column = {name: place for place, name in enumerate(attributes)}
    rows = []
    for place, row in enumerate(analysis.identities):
        total = counts.named[counts.identity == place].sum(axis=0)
        own = [
            Salient(
                row.identity,
                name,
                filtered,
                int(total[column[name]]),
                result.estimate(place, column[name]),
                _marked(row, name),
            )
            for name in sorted(inputs.stereotypes.listed(row.identity))
            if name in column and total[column[name]] > 0
        ]
        rows += sorted(own, key=lambda entry: -(entry.salience.value or 0.0))
    return rows


def _marked(row: IdentityRow, name: str) -> bool | None:
    return next((a.marked > 0 for a in row.attributes if a.attribute == name), None)


def salience_csv(captioned: Captioned) -> bytes:
    return csv_bytes(
        COLUMNS,
        (
            (
                row.identity,
                row.attribute,
                row.filtered,
                row.named,
                row.salience.value,
                row.salience.low,
                row.salience.high,
                row.salience.level,
                row.marked,
            )
            for row in captioned.rows
        ),
    )
