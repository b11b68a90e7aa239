"""identities.csv and attributes.csv: every number of the analysis, one row a thing."""

from __future__ import annotations

from tropescope.annotations.cells import csv_bytes
from tropescope.statistics.estimate import Estimate
from tropescope.visage.analysis import Analysis, IdentityRow

_ESTIMATES = (
    "l_stereo",
    "l_random",
    "theta",
    "difference",
    "offensiveness_as_printed",
    "offensiveness_of_stereotypes",
)
IDENTITY_COLUMNS = (
    "identity",
    "country",
    "region",
    "global",
    "images",
    "visual_stereotypes",
    "k_stereo",
    "k_random",
    "n_ratings",
    *(f"{name}{end}" for name in _ESTIMATES for end in ("", "_low", "_high")),
    "offensiveness_as_printed_raw",
    "offensiveness_of_stereotypes_raw",
    "offensiveness_n",
    "offensiveness_missing",
    "level",
    "p_value",
    "p_adjusted",
    "verdict",
    "theta_method",
    "difference_method",
    "note",
)
ATTRIBUTE_COLUMNS = (
    "identity",
    "attribute",
    "kind",
    "marked",
    "shown",
    "likelihood",
    "likelihood_low",
    "likelihood_high",
    "level",
    "method",
    "offensiveness",
)


def identities_csv(analysis: Analysis) -> bytes:
    return csv_bytes(IDENTITY_COLUMNS, (_identity(row) for row in analysis.identities))


def attributes_csv(analysis: Analysis) -> bytes:
    rows = (
        (
            row.identity,
            row.attribute,
            row.kind,
            row.marked,
            row.shown,
            *_ends(row.likelihood),
            row.likelihood.level,
            row.likelihood.method,
            row.offence,
        )
        for identity in analysis.identities
        for row in identity.attributes
    )
    return csv_bytes(ATTRIBUTE_COLUMNS, rows)


def _ends(estimate: Estimate) -> tuple[float | None, float | None, float | None]:
    return estimate.value, estimate.low, estimate.high


def _identity(row: IdentityRow) -> tuple[object, ...]:
    tendency, offence, place = row.tendency, row.offensiveness, row.place
    estimates = (
        tendency.stereo,
        tendency.random,
        tendency.theta,
        tendency.difference,
        offence.as_printed,
        offence.of_stereotypes,
    )
    return (
        row.identity,
        place.country if place else None,
        place.region if place else None,
        place.hemisphere if place else None,
        row.images,
        row.listed_stereotypes,
        row.k_stereo,
        row.k_random,
        tendency.difference.n,
        *(number for estimate in estimates for number in _ends(estimate)),
        offence.raw_as_printed,
        offence.raw_of_stereotypes,
        offence.of_stereotypes.n,
        offence.of_stereotypes.n_missing,
        tendency.difference.level,
        tendency.difference.p_value,
        row.adjusted_p,
        row.verdict if row.scored else "not scored",
        tendency.theta.method,
        tendency.difference.method,
        "; ".join((*tendency.theta.notes, *tendency.difference.notes)),
    )
