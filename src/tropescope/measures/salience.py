"""Which attributes the captions of an identity name more than those of others (ViSAGe §3.2).

salience(a, id) = tf(a, id) · idf(a), a modified tf–idf:
tf = (c(a, id) + 1) / (Σ c(·, id) + |A|), the smoothed share of a among all attributes named in the
captions of the identity; idf = ln((1 + N) / (1 + df(a))) + 1, where N counts all captions and df
those that name a. The paper gives neither smoothing; these are the usual ones.

Higher means more particular to the identity. Pass only visual attributes for the paper's filtered
variant, all of them for the unfiltered one; |A| changes with it. We depart from the paper by giving
intervals: images are resampled within each identity, all their captions together, because captions
of one image repeat each other.

The text never enters here: captions arrive as counts (see `tropescope.annotations.matching`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import MeasureError
from tropescope.statistics.estimate import Estimate
from tropescope.statistics.intervals import FloatArray

VERSION = 1

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CaptionCounts:
    """What the captions of each image name.

    `named[i, a]` is the number of captions of image i that name attribute a, `captions[i]` their
    number, `identity[i]` the identity the image was made for.
    """

    named: FloatArray
    captions: IntArray
    identity: IntArray
    identities: int

    def __post_init__(self) -> None:
        images = len(self.captions)
        if self.named.ndim != 2 or len(self.named) != images or len(self.identity) != images:
            raise MeasureError("captions need a row of counts and an identity for each image")
        if images and (self.named > self.captions[:, None]).any():
            raise MeasureError("more captions name an attribute than there are captions")


@dataclass(frozen=True, slots=True)
class Salience:
    """Salience of every attribute (column) for every identity (row), with its interval.

    Rows of identities without captions are NaN: not defined.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    images: IntArray
    resamples: int

    def estimate(self, identity: int, attribute: int, *, missing: int = 0) -> Estimate:
        value = float(self.value[identity, attribute])
        defined = bool(np.isfinite(value))
        return Estimate(
            measure="salience",
            version=VERSION,
            value=value if defined else None,
            low=float(self.low[identity, attribute]) if defined else None,
            high=float(self.high[identity, attribute]) if defined else None,
            level=self.level,
            n=int(self.images[identity]),
            n_missing=missing,
            estimand="these attributes; images sampled",
            method=f"percentile bootstrap over images, {self.resamples} resamples"
            if defined
            else "not defined",
            notes=() if defined else ("the identity has no captions",),
        )


def salience(
    counts: CaptionCounts, *, resamples: int = 400, seed: int = 0, level: float = 0.95
) -> Salience:
    """Salience of every attribute for every identity."""
    if resamples < 40:
        raise MeasureError("fewer than 40 resamples give no interval at all")
    images = np.bincount(counts.identity, minlength=counts.identities)
    if counts.named.shape[1] == 0:
        empty = np.zeros((counts.identities, 0))
        return Salience(empty, empty, empty, level, images, resamples)
    ones = np.ones((1, len(counts.captions)))
    value = _salience(counts, ones)[0]
    rng = np.random.default_rng(seed)
    weights = np.zeros((resamples, len(counts.captions)))
    for identity in range(counts.identities):
        own = np.flatnonzero(counts.identity == identity)
        if len(own):
            shares = np.full(len(own), 1 / len(own))
            weights[:, own] = rng.multinomial(len(own), shares, size=resamples)
    low, high = _percentiles(counts, weights, level)
    undefined = images == 0
    for array in (value, low, high):
        array[undefined] = np.nan
    return Salience(
        value, np.minimum(low, value), np.maximum(high, value), level, images, resamples
    )


def _percentiles(
    counts: CaptionCounts, weights: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Ends of the bootstrap distribution, identity by identity so that memory stays small."""
    idf = _idf(counts, weights)
    tails = [(1 - level) / 2, (1 + level) / 2]
    ends = np.zeros((2, counts.identities, counts.named.shape[1]))
    for identity in range(counts.identities):
        own = counts.identity == identity
        ends[:, identity] = np.quantile(
            _tf(counts.named[own], weights[:, own]) * idf, tails, axis=0
        )
    return ends[0], ends[1]


def _salience(counts: CaptionCounts, weights: FloatArray) -> FloatArray:
    """Weights (resamples × images) → resamples × identities × attributes."""
    idf = _idf(counts, weights)
    parts = []
    for identity in range(counts.identities):
        own = counts.identity == identity
        parts.append(_tf(counts.named[own], weights[:, own]) * idf)
    return np.stack(parts, axis=1)


def _idf(counts: CaptionCounts, weights: FloatArray) -> FloatArray:
    captions = weights @ counts.captions
    naming = weights @ counts.named
    return np.asarray(np.log((1 + captions[:, None]) / (1 + naming)) + 1)


def _tf(named: FloatArray, weights: FloatArray) -> FloatArray:
    count = weights @ named
    return np.asarray((count + 1) / (count.sum(axis=1, keepdims=True) + named.shape[1]))


@dataclass(frozen=True, slots=True)
class CaptionAgreement:
    """How what captions name compares with what raters marked."""

    precision: float | None
    recall: float | None
    named: int
    marked: int
    both: int


def agreement_with_raters(named: NDArray[np.bool_], marked: NDArray[np.bool_]) -> CaptionAgreement:
    """Precision: of what captions name, the share that raters marked; recall: the reverse.

    >>> import numpy as np
    >>> result = agreement_with_raters(np.array([True, True, False]), np.array([True, False, True]))
    >>> result.precision, result.recall
    (0.5, 0.5)
    """
    if named.shape != marked.shape:
        raise MeasureError("captions and raters must be compared on the same attributes")
    both = int((named & marked).sum())
    n_named, n_marked = int(named.sum()), int(marked.sum())
    return CaptionAgreement(
        precision=both / n_named if n_named else None,
        recall=both / n_marked if n_marked else None,
        named=n_named,
        marked=n_marked,
        both=both,
    )
