"""Sums from which the spread of image features follows, in one pass and bounded memory.

For features of d dimensions the sums need O(d²) memory however many images there are. Features are
collected in a fixed number of groups, so that leaving out one group at a time gives standard errors
(the grouped jackknife) without a second pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import MeasureError

FloatArray = NDArray[np.float64]

GROUPS = 10


@dataclass(frozen=True, slots=True)
class Moments:
    """Number, sum and second moments of some features."""

    n: int
    total: FloatArray
    products: FloatArray

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.n + other.n, self.total + other.total, self.products + other.products)

    def __sub__(self, other: Moments) -> Moments:
        return Moments(self.n - other.n, self.total - other.total, self.products - other.products)

    def scatter(self) -> FloatArray:
        """Σ (z − mean)(z − mean)ᵀ."""
        mean = self.total / self.n
        return self.products - self.n * np.outer(mean, mean)


class Spread:
    """Collects features batch by batch; `moments` and `without` give their sums.

    An image belongs to the group of its position modulo the number of groups, so any chunking of
    the same sequence gives the same groups.
    """

    def __init__(self, dimensions: int, *, groups: int = GROUPS) -> None:
        if groups < 2:
            raise MeasureError("the jackknife needs at least two groups")
        self._n = np.zeros(groups, dtype=np.int64)
        self._total = np.zeros((groups, dimensions))
        self._products = np.zeros((groups, dimensions, dimensions))
        self._seen = 0

    def add(self, features: NDArray[np.floating]) -> None:
        """Take in rows of features."""
        rows = np.asarray(features, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self._total.shape[1]:
            raise MeasureError(f"features must be rows of {self._total.shape[1]} numbers")
        if not np.isfinite(rows).all():
            raise MeasureError("features must be finite numbers")
        groups = len(self._n)
        for group in range(groups):
            chosen = rows[(group - self._seen) % groups :: groups]
            self._n[group] += len(chosen)
            self._total[group] += chosen.sum(axis=0)
            self._products[group] += chosen.T @ chosen
        self._seen += len(rows)

    @property
    def n(self) -> int:
        return self._seen

    def groups(self) -> list[Moments]:
        """The sums of each group that has images."""
        return [
            Moments(int(n), total, products)
            for n, total, products in zip(self._n, self._total, self._products, strict=True)
            if n
        ]

    def moments(self) -> Moments:
        if self._seen == 0:
            raise MeasureError("no features were given")
        return Moments(self._seen, self._total.sum(axis=0), self._products.sum(axis=0))


def spread_of(features: NDArray[np.floating], *, groups: int = GROUPS) -> Spread:
    """The spread of features that are all in memory."""
    rows = np.asarray(features)
    if rows.ndim != 2:
        raise MeasureError("features must be a table: one row per image")
    spread = Spread(rows.shape[1], groups=groups)
    spread.add(rows)
    return spread
