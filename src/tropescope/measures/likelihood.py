"""How likely an attribute is to be marked in the images of an identity (ViSAGe, §4.1).

L(attr, id) = k/n: of the n times an attribute was shown with an image of the identity, raters
marked it present k times. L(stereo, id) and L(random, id) are the unweighted means over the
identity's stereotypical and over its random attributes. Higher means seen more often.

All ratings are pooled: there is no majority vote, and equal rows are raters who agree. We depart
from the paper by giving intervals. Images are the clusters, because all raters and all attributes
of an image share the image; the attributes themselves are taken as given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import MeasureError
from tropescope.statistics.clusters import cluster_variance, clustered_rates
from tropescope.statistics.estimate import Estimate
from tropescope.statistics.intervals import FloatArray, Interval

VERSION = 1
METHOD = "Korn–Graubard (Clopper–Pearson at the effective size, t over images)"

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ratings:
    """The ratings of one identity: rater said `present[i]` of `attribute[i]` in `image[i]`.

    Presence may also be a probability in [0, 1], from a model instead of a rater. `missing` counts
    ratings that were asked for and not given.
    """

    image: IntArray
    attribute: IntArray
    present: FloatArray
    images: int
    attributes: int
    missing: int = 0

    def __post_init__(self) -> None:
        if not self.image.shape == self.attribute.shape == self.present.shape:
            raise MeasureError("image, attribute and present must be lists of the same length")
        for name, numbers, end in (
            ("image", self.image, self.images),
            ("attribute", self.attribute, self.attributes),
        ):
            if len(numbers) and not 0 <= numbers.min() <= numbers.max() < end:
                raise MeasureError(f"an {name} number lies outside the list of {name}s")
        if len(self.present) and not (self.present.min() >= 0 and self.present.max() <= 1):
            raise MeasureError("presence must lie between 0 and 1")


@dataclass(frozen=True, slots=True)
class GroupLikelihood:
    """The mean likelihood of a set of attributes and each image's influence on it."""

    value: float
    influences: FloatArray
    attributes: int
    images: int
    pairs: int
    ratings: int
    missing: int = 0

    def interval(self, level: float) -> Interval:
        low, high = clustered_rates(
            self.value,
            cluster_variance(self.influences),
            clusters=self.images,
            observations=self.ratings,
            distinct=self.pairs,
            level=level,
        )
        return Interval(float(low), float(high), level)


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """k, n and L of every attribute, with the influence of every image on every L."""

    marked: FloatArray
    shown: FloatArray
    value: FloatArray
    influences: FloatArray
    in_image: NDArray[np.bool_]
    missing: int = 0

    def group(self, attributes: Sequence[int] | IntArray) -> GroupLikelihood | None:
        """The unweighted mean over these attributes; None where none of them was shown."""
        chosen = np.asarray(attributes, dtype=np.int64)
        chosen = chosen[self.shown[chosen] > 0]
        if not len(chosen):
            return None
        # Every image of the identity is a cluster; one without these attributes pulls by 0.
        has_any = self.in_image.any(axis=1)
        return GroupLikelihood(
            value=float(self.value[chosen].mean()),
            influences=self.influences[has_any][:, chosen].mean(axis=1),
            attributes=len(chosen),
            images=int(has_any.sum()),
            pairs=int(self.in_image[:, chosen].sum()),
            ratings=int(self.shown[chosen].sum()),
            missing=self.missing,
        )


def likelihoods(ratings: Ratings) -> Likelihoods:
    """L(attr, id) of every attribute of one identity.

    >>> import numpy as np
    >>> image, attribute = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> likelihoods(Ratings(image, attribute, np.array([1.0, 0, 1, 1]), 2, 2)).value.tolist()
    [1.0, 0.5]
    """
    cell = ratings.image * ratings.attributes + ratings.attribute
    shape = (ratings.images, ratings.attributes)
    shown = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    marked = np.bincount(cell, ratings.present, minlength=shape[0] * shape[1]).reshape(shape)
    n, k = shown.sum(axis=0), marked.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(n > 0, k / np.where(n > 0, n, 1), np.nan)
        influences = np.where(n > 0, (marked - np.nan_to_num(value) * shown) / np.maximum(n, 1), 0)
    return Likelihoods(k, n, value, influences, shown > 0, ratings.missing)


def attribute_likelihoods(table: Likelihoods, *, level: float = 0.95) -> list[Estimate]:
    """L(attr, id) of every attribute, as estimates."""
    images = table.in_image.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = images / (images - 1) * np.square(table.influences).sum(axis=0)
    value = np.nan_to_num(table.value)
    low, high = clustered_rates(
        value,
        np.nan_to_num(variance),
        clusters=images,
        observations=np.maximum(table.shown, 1),
        distinct=np.maximum(images, 1),
        level=level,
    )
    rows = zip(table.value, low, high, table.shown, strict=True)
    return [
        _estimate("likelihood", v, lo, hi, level=level, n=int(n), missing=table.missing)
        if n
        else _estimate("likelihood", None, None, None, level=level, n=0, missing=table.missing)
        for v, lo, hi, n in rows
    ]


def group_likelihood(
    group: GroupLikelihood | None, *, name: str, level: float = 0.95, missing: int = 0
) -> Estimate:
    """L(stereo, id) or L(random, id) as an estimate named `name`."""
    if group is None:
        return _estimate(name, None, None, None, level=level, n=0, missing=missing)
    interval = group.interval(level)
    return _estimate(
        name,
        group.value,
        interval.low,
        interval.high,
        level=level,
        n=group.ratings,
        missing=group.missing,
    )


def _estimate(
    name: str,
    value: float | None,
    low: float | None,
    high: float | None,
    *,
    level: float,
    n: int,
    missing: int,
) -> Estimate:
    defined = value is not None
    return Estimate(
        measure=name,
        version=VERSION,
        value=None if value is None else float(value),
        low=None if low is None else float(low),
        high=None if high is None else float(high),
        level=level,
        n=n,
        n_missing=missing,
        estimand="these attributes; images sampled",
        method=METHOD if defined else "not defined",
        notes=() if defined else ("no such attribute was shown, so there is no likelihood",),
    )
