"""Rankings of identities by offensiveness, and the regions that the paper singles out."""

from __future__ import annotations

from collections.abc import Sequence

from tropescope.statistics.estimate import Estimate
from tropescope.visage.analysis import IdentityRow
from tropescope.visage.pooling import group_difference


def ranks(scores: Sequence[tuple[str, Estimate]]) -> dict[str, int]:
    """Place of each identity, the most offensive first; without a score no place."""
    known = [(name, score.value) for name, score in scores if score.value is not None]
    ordered = sorted(known, key=lambda pair: -pair[1])
    return {name: place for place, (name, _) in enumerate(ordered, start=1)}


def region_contrast(rows: Sequence[IdentityRow], reading: str) -> Estimate:
    """Mean offensiveness in Africa, South America and South-East Asia minus everywhere else."""
    inside: list[float] = []
    outside: list[float] = []
    for row in rows:
        score = (
            row.offensiveness.as_printed
            if reading == "printed"
            else (row.offensiveness.of_stereotypes)
        )
        if score.value is not None and row.place is not None:
            (inside if _named_by_the_paper(row) else outside).append(score.value)
    return group_difference(inside, outside, name="offensiveness_by_region")


_NORTH_AFRICA = {"Algerian", "Egyptian", "Libyan", "Moroccan", "Sudanese", "Tunisian", "Sahrawi"}
_SOUTH_EAST_ASIA = {
    "Bruneian", "Cambodian", "Indonesian", "Laos", "Malaysian", "Myanmar", "Philippine",
    "Singapore", "Thai", "Timorese", "Vietnamese",
}  # fmt: skip
_SOUTH_AMERICA = {
    "Argentine", "Bolivian", "Brazilian", "Chilean", "Colombian", "Ecuadorian", "Guyanese",
    "Paraguayan", "Peruvian", "Surinamese", "Uruguayan", "Venezuelan", "French Guianese",
}  # fmt: skip


def _named_by_the_paper(row: IdentityRow) -> bool:
    assert row.place is not None
    return (
        row.place.region == "Sub-Saharan Africa"
        or row.identity in _NORTH_AFRICA | _SOUTH_EAST_ASIA | _SOUTH_AMERICA
    )
