"""Which attributes can be seen at all: Likert ratings of “can be visually depicted” (ViSAGe §3.1).

The file has a row for each attribute and a column `score_<group>` for each rater (5 strongly agree,
4 agree, 3 unsure, 2 disagree, 1 strongly disagree). Three rules make the visual attributes:
every rater at least agrees (the paper's), the mean is high enough, or enough raters agree.

The paper's rule gives 518 attributes on the released file; its printed 385 cannot be reproduced.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tropescope.annotations.names import Names, plain
from tropescope.annotations.tables import Table, read_table, shown
from tropescope.errors import AnnotationError

LABELS = ("strongly disagree", "disagree", "unsure", "agree", "strongly agree")
AGREE = 4


@dataclass(frozen=True)
class VisualRule:
    """When an attribute counts as visual.

    `all`: every rater gives at least `agree`. `mean`: the mean is at least `threshold`.
    `consensus`: at least `threshold` raters give at least `agree`.
    """

    kind: Literal["all", "mean", "consensus"] = "all"
    threshold: float = 4.0
    agree: int = AGREE

    def words(self) -> str:
        if self.kind == "all":
            return f"every rater at least “{LABELS[self.agree - 1]}”"
        if self.kind == "mean":
            return f"mean rating at least {self.threshold:g}"
        return f"at least {self.threshold:g} raters at least “{LABELS[self.agree - 1]}”"


@dataclass(frozen=True)
class LikertRatings:
    """Ratings (attributes × raters) from 1 to 5."""

    attributes: tuple[str, ...]
    raters: tuple[str, ...]
    scores: NDArray[np.int64]
    rows: int
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> Names:
        return Names(self.attributes)

    def visual(self, rule: VisualRule | None = None) -> tuple[str, ...]:
        """The attributes that the rule calls visual, in the file's order."""
        rule = rule or VisualRule()
        if rule.kind == "all":
            keep = (self.scores >= rule.agree).all(axis=1)
        elif rule.kind == "mean":
            keep = self.scores.mean(axis=1) >= rule.threshold - 1e-9
        else:
            keep = (self.scores >= rule.agree).sum(axis=1) >= rule.threshold
        return tuple(
            name
            for name, kept in zip(self.attributes, np.asarray(keep).tolist(), strict=True)
            if kept
        )

    def consensus(self, least: int = 2) -> tuple[float, ...]:
        """Share of attributes that at least so many raters give the same label, label by label."""
        return tuple(
            float(((self.scores == score).sum(axis=1) >= least).mean()) for score in range(1, 6)
        )


def read_likert(path: Path) -> LikertRatings:
    """Read the ratings; an attribute rated twice must have the same ratings both times."""
    table = read_table(path, ("attribute",), what="file of visual attributes")
    raters = tuple(name for name in table.columns if name.startswith("score_"))
    if not raters:
        raise AnnotationError(
            f"{path.name}: no column with ratings",
            fix="name the columns score_<rater>, with numbers from 1 to 5",
        )
    first: dict[str, int] = {}
    keep: list[int] = []
    scores = np.zeros((len(table), len(raters)), dtype=np.int64)
    repeated = 0
    for row in range(len(table)):
        name = table["attribute"][row]
        if not name.strip():
            raise table.problem(row, "the attribute is empty", fix="name it, or remove the row")
        for column, rater in enumerate(raters):
            scores[row, column] = _score(table, rater, row)
        earlier = first.setdefault(plain(name), row)
        if earlier == row:
            keep.append(row)
        elif (scores[earlier] == scores[row]).all():
            repeated += 1
        else:
            raise table.problem(
                row,
                f"{shown(name)} is rated twice, differently (also on line {table.lines[earlier]})",
                fix="keep one of the two rows",
            )
    notes = []
    if repeated:
        notes.append(f"{repeated} attribute rated twice with the same ratings, counted once")
    return LikertRatings(
        attributes=tuple(" ".join(table["attribute"][row].split()) for row in keep),
        raters=tuple(rater.removeprefix("score_") for rater in raters),
        scores=scores[keep],
        rows=len(table),
        notes=tuple(notes),
    )


def _score(table: Table, column: str, row: int) -> int:
    value = table.number(column, row, low=1, high=5)
    if value != int(value):
        raise table.problem(row, f"{column} is {value:g}", fix="ratings are whole numbers, 1 to 5")
    word = "rating_" + column.removeprefix("score_")
    if word in table:
        label = plain(table[word][row]).partition(" (")[0]
        if label and label != LABELS[int(value) - 1]:
            raise table.problem(
                row, f"{word} says {shown(label)} but {column} says {value:g}", fix="correct one"
            )
    return int(value)
