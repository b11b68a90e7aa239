"""Agreement of the raters of attributes, all together and by rater group."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tropescope.annotations.likert import LikertRatings
from tropescope.statistics.agreement import Agreement, krippendorff_alpha


@dataclass(frozen=True, slots=True)
class LikertAgreement:
    """α (ordinal) of all raters, of every two groups, and each group's mean rating."""

    together: Agreement
    pairs: tuple[tuple[str, str, Agreement], ...]
    means: tuple[tuple[str, float], ...]


def likert_agreement(ratings: LikertRatings, *, level: float = 0.95) -> LikertAgreement:
    def alpha(columns: tuple[int, ...]) -> Agreement:
        scores = ratings.scores[:, columns] - 1
        unit = np.repeat(np.arange(len(scores)), len(columns))
        return krippendorff_alpha(unit, scores.ravel(), metric="ordinal", level=level)

    everyone = tuple(range(len(ratings.raters)))
    return LikertAgreement(
        together=alpha(everyone),
        pairs=tuple(
            (ratings.raters[a], ratings.raters[b], alpha((a, b)))
            for a, b in combinations(everyone, 2)
        ),
        means=tuple(
            (name, float(ratings.scores[:, column].mean()))
            for column, name in enumerate(ratings.raters)
        ),
    )
