"""Which attributes are stereotypes of whom, and how offensive: SeeGULL v2 (Jha et al. 2023).

A row is a pair (identity, attribute) with the number of raters in the region and in North America
who know it as a stereotype, and three ratings of how offensive it is (1 to 4, 0 unsure, −1 not
offensive). In the released file 1,197 pairs have no such rating yet print a mean of 0, and 99
print a mean that differs from their ratings: we use the ratings and call the rest missing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from tropescope.annotations.identities import other_names
from tropescope.annotations.names import Names, plain
from tropescope.annotations.tables import Table, read_table, shown
from tropescope.statistics.intervals import FloatArray

Votes = Literal["na_stereo", "region_stereo"]
_RATINGS = ("annotation1", "annotation2", "annotation3")


@dataclass(frozen=True)
class Stereotypes:
    """All pairs, and an index from identity and attribute to the row."""

    identity: tuple[str, ...]
    attribute: tuple[str, ...]
    votes: dict[Votes, FloatArray]
    scores: FloatArray
    notes: tuple[str, ...] = ()
    rows: dict[str, dict[str, int]] = field(default_factory=dict)
    names: Names = field(default_factory=lambda: Names(()))

    def listed(self, identity: str) -> frozenset[str]:
        """Every attribute the resource lists for the identity, known to raters or not."""
        return frozenset(self.rows.get(identity, {}))

    def known(
        self, identity: str, *, visual: Collection[str], votes: Votes = "na_stereo", least: int = 2
    ) -> tuple[str, ...]:
        """The identity's visual stereotypes: visual, and known to at least `least` raters."""
        counts = self.votes[votes]
        return tuple(
            attribute
            for attribute, row in self.rows.get(identity, {}).items()
            if attribute in visual and counts[row] >= least
        )

    def offensiveness(self, identity: str, attributes: Collection[str]) -> FloatArray:
        """Ratings (attributes × raters); NaN where there is none."""
        own = self.rows.get(identity, {})
        empty = np.full(self.scores.shape[1], np.nan)
        rows = [self.scores[own[name]] if name in own else empty for name in attributes]
        return np.asarray(rows, dtype=np.float64).reshape(len(rows), self.scores.shape[1])


def read_stereotypes(path: Path, *, attributes: Names | None = None) -> Stereotypes:
    """Read SeeGULL or a file with its columns; `attributes` gives the spelling of attributes."""
    table = read_table(path, ("identity", "attribute", "na_stereo"), what="file of stereotypes")
    rows: dict[str, dict[str, int]] = {}
    spelt: dict[str, str] = {}
    identities: list[str] = []
    names: list[str] = []
    keep: list[int] = []
    repeated = 0
    for row in range(len(table)):
        identity = _spelling(table, "identity", row, spelt)
        attribute = _spelling(table, "attribute", row, spelt)
        if attributes is not None:
            attribute = attributes.find(attribute) or attribute
        own = rows.setdefault(identity, {})
        if attribute in own:
            _check_repetition(table, keep[own[attribute]], row)
            repeated += 1
            continue
        own[attribute] = len(keep)
        identities.append(identity)
        names.append(attribute)
        keep.append(row)
    votes: dict[Votes, FloatArray] = {
        column: np.array([table.number(column, row, low=0, high=1e6) for row in keep])
        for column in ("na_stereo", "region_stereo")
        if column in table
    }
    scores, notes = _scores(table, keep)
    if repeated:
        notes.append(f"{repeated} pairs listed twice with the same content, counted once")
    every = tuple(rows)
    return Stereotypes(
        tuple(identities),
        tuple(names),
        votes,
        scores,
        tuple(notes),
        rows,
        Names(every, other_names(every)),
    )


def _spelling(table: Table, column: str, row: int, spelt: dict[str, str]) -> str:
    """The cell in the spelling of its first appearance."""
    name = " ".join(table[column][row].split())
    if not name:
        raise table.problem(row, f"the {column} is empty", fix="name it, or remove the row")
    return spelt.setdefault(f"{column} {plain(name)}", name)


def _check_repetition(table: Table, earlier: int, row: int) -> None:
    for column in table.columns:
        if column not in ("identity", "attribute") and table[column][earlier] != table[column][row]:
            raise table.problem(
                row,
                f"{shown(table['identity'][row])}, {shown(table['attribute'][row])} is listed "
                f"twice with a different {column} (also on line {table.lines[earlier]})",
                fix="keep one of the two rows",
            )


def _scores(table: Table, keep: list[int]) -> tuple[FloatArray, list[str]]:
    columns = [name for name in _RATINGS if name in table]
    scores = np.full((len(keep), max(len(columns), 1)), np.nan)
    for place, column in enumerate(columns):
        cells = table[column]
        for number, row in enumerate(keep):
            if cells[row].strip():
                scores[number, place] = table.number(column, row, low=-1, high=4)
    notes = []
    unrated = int(np.isnan(scores).any(axis=1).sum())
    if unrated:
        notes.append(f"{unrated:,} pairs without offensiveness ratings: missing, not 0")
    printed = "mean_offensiveness_score"
    if columns and printed in table:
        means = scores.mean(axis=1)
        differ = 0
        for number, row in enumerate(keep):
            cell = table[printed][row].strip()
            if cell and np.isfinite(means[number]):
                differ += abs(table.number(printed, row, low=-1, high=4) - means[number]) > 0.01
        if differ:
            notes.append(
                f"{differ} pairs print a mean that differs from their ratings; ratings used"
            )
    return scores, notes
