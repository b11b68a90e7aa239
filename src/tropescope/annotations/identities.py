"""Where the terms of SeeGULL lie in the world: country, region, north or south, other names.

The table and its sources are in `data/identities.csv` and `data/README.md`. Terms outside the table
(fictional nations, states) are fine everywhere; they have no place on the map and no region.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

REGION_SOURCE = "United Nations, Sustainable Development Goals regional groupings (M49, 2023)"
GLOBAL_SOURCE = "UNCTADstat (2023), developed and developing economies"

REGIONS = (
    "Sub-Saharan Africa",
    "Northern Africa and Western Asia",
    "Central and Southern Asia",
    "Eastern and South-Eastern Asia",
    "Latin America and the Caribbean",
    "Australia and New Zealand",
    "Oceania",
    "Europe and Northern America",
)


@dataclass(frozen=True, slots=True)
class Place:
    """One identity term and where it lies."""

    identity: str
    country: str
    outline: str
    region: str
    hemisphere: Literal["north", "south"]
    other_names: tuple[str, ...]
    point: tuple[float, float] | None


@cache
def places() -> dict[str, Place]:
    """All terms of SeeGULL v2 by name."""
    text = resources.files("tropescope.annotations").joinpath("data", "identities.csv")
    rows = csv.DictReader(text.read_text("utf-8").splitlines())
    return {row["identity"]: _place(row) for row in rows}


def _place(row: dict[str, str]) -> Place:
    names = tuple(name for name in row["other_names"].split(";") if name)
    point = (float(row["longitude"]), float(row["latitude"])) if row["longitude"] else None
    return Place(
        identity=row["identity"],
        country=row["country"],
        outline=row["outline"],
        region=row["region"],
        hemisphere="north" if row["global"] == "north" else "south",
        other_names=names,
        point=point,
    )


def other_names(identities: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Other names of each identity: demonyms, and the country unless several terms share it."""
    known = places()
    owners: dict[str, int] = {}
    for identity in identities:
        if identity in known:
            country = known[identity].country
            owners[country] = owners.get(country, 0) + 1
    result = {}
    for identity in identities:
        place = known.get(identity)
        if place is not None:
            alone = (place.country,) if owners[place.country] == 1 else ()
            result[identity] = (*place.other_names, *alone)
    return result
