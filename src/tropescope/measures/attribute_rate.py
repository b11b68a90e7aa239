"""How often an attribute shows in the images of a concept (OASIS, eqs. 4 and 5).

**Presence** (eq. 5): an attribute is present in an image when the image is nearer to the text d+
that describes its presence than to the text d− that describes its absence.

**Rate** P(A | D, C). Eq. 4 of the paper, a normalised product over images, is 0/0 with yes/no
presence unless all images agree, and saturates with soft presence; the paper's tables can only be
the *mean* of the yes/no values. Three estimators:

- `mean`: the share of images in which the attribute is present (default);
- `soft`: the mean probability of presence, softmax over the two similarities times the encoder's
  own logit scale;
- `posterior`: eq. 4 in log space. It tends to 0 or 1 as images are added: read it as "how sure is
  one that the set as a whole shows the attribute", not as a share.

Prompts have equal weight. Higher means the attribute shows more often.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from tropescope.errors import MeasureError
from tropescope.statistics.estimate import Estimate, not_defined
from tropescope.statistics.intervals import (
    FloatArray,
    Interval,
    fixed_prompts_interval,
    sampled_prompts_interval,
)

VERSION = 1

Estimand = Literal["fixed", "sample"]
Estimator = Literal["mean", "soft", "posterior"]


def presence(similarity_present: FloatArray, similarity_absent: FloatArray) -> NDArray[np.bool_]:
    """Eq. 5: which images are strictly nearer to d+ than to d−."""
    return np.asarray(similarity_present > similarity_absent)


def presence_probability(
    similarity_present: FloatArray, similarity_absent: FloatArray, *, logit_scale: float
) -> FloatArray:
    """Softmax over the two texts at the encoder's own temperature."""
    margin = np.asarray(similarity_present, float) - np.asarray(similarity_absent, float)
    return np.asarray(special.expit(logit_scale * margin), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class RateSample:
    """The judged images of one concept: a presence in [0, 1] each, and the prompt it came from.

    `missing` counts, per prompt, the images that were planned but have no judgement.
    """

    presence: FloatArray
    prompt: NDArray[np.int64]
    missing: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.presence.shape != self.prompt.shape or self.presence.ndim != 1:
            raise MeasureError("presence and prompt must be two lists of the same length")
        if len(self.prompt) and not 0 <= self.prompt.min() <= self.prompt.max() < len(self.missing):
            raise MeasureError("a prompt number lies outside the list of prompts")
        if len(self.presence) and not (
            np.isfinite(self.presence).all()
            and self.presence.min() >= 0
            and self.presence.max() <= 1
        ):
            raise MeasureError("presence must lie between 0 and 1")

    @property
    def n(self) -> int:
        return len(self.presence)

    @property
    def n_missing(self) -> int:
        return int(self.missing.sum())

    def per_prompt(self) -> tuple[FloatArray, FloatArray]:
        """Mean presence and number of images of every prompt that has images."""
        sizes = np.bincount(self.prompt, minlength=len(self.missing)).astype(np.float64)
        sums = np.bincount(self.prompt, weights=self.presence, minlength=len(self.missing))
        has = sizes > 0
        return sums[has] / sizes[has], sizes[has]

    def worst_case(self) -> tuple[float, float]:
        """The rate if no missing image had shown the attribute, and if all had."""
        sizes = np.bincount(self.prompt, minlength=len(self.missing)).astype(np.float64)
        sums = np.bincount(self.prompt, weights=self.presence, minlength=len(self.missing))
        planned = sizes + self.missing
        asked = planned > 0
        low = sums[asked] / planned[asked]
        high = (sums[asked] + self.missing[asked]) / planned[asked]
        return float(low.mean()), float(high.mean())


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate and its interval at any level, from which other measures are made."""

    value: float
    interval_at: Callable[[float], Interval]
    method: str


def why_not_defined(sample: RateSample, *, estimator: Estimator, estimand: Estimand) -> str | None:
    """Why a sample has no rate, in words; None where it has one."""
    if sample.n == 0:
        return "no image was made and judged, so there is nothing to measure"
    if estimand == "sample" and len(np.unique(sample.prompt)) < 2:
        return "only one prompt gave judged images, and one prompt is no sample of ways to ask"
    if estimator == "posterior" and np.isin(sample.presence, (0.0, 1.0)).all():
        return "eq. 4 is 0/0 for presence without degrees; use a judge that gives probabilities"
    return None


def rate(sample: RateSample, *, estimator: Estimator, estimand: Estimand) -> Rate:
    """The rate of a sample for which it is defined."""
    why = why_not_defined(sample, estimator=estimator, estimand=estimand)
    if why is not None:
        raise MeasureError(why)
    if estimator == "posterior":
        return _posterior_rate(sample, estimand)
    rates, sizes = sample.per_prompt()
    if estimand == "sample":
        method = "Korn–Graubard (Clopper–Pearson at the effective size, t over prompts)"

        def at(level: float) -> Interval:
            return sampled_prompts_interval(rates, sizes, level)
    else:
        method = "Clopper–Pearson, stratified by prompt"

        def at(level: float) -> Interval:
            return fixed_prompts_interval(rates, sizes, level)

    return Rate(float(rates.mean()), at, method)


def _posterior_rate(sample: RateSample, estimand: Estimand) -> Rate:
    """Eq. 4 in log space: the logit of the rate is the sum of the images' logits."""
    tiny = 1e-12
    logits = special.logit(np.clip(sample.presence, tiny, 1 - tiny))
    prompts = np.unique(sample.prompt)
    n = sample.n
    centre = float(logits.mean())
    groups = [logits[sample.prompt == prompt] for prompt in prompts]
    if estimand == "sample":
        means = np.array([group.mean() for group in groups])
        spread, freedom = float(means.std(ddof=1) / np.sqrt(len(means))), len(means) - 1
    else:
        squares = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
        freedom = n - len(groups)
        spread = float(np.sqrt(squares / freedom / n)) if freedom > 0 else float("inf")

    def at(level: float) -> Interval:
        if not np.isfinite(spread):
            return Interval(0.0, 1.0, level)
        reach = spread * float(stats.t.isf((1 - level) / 2, freedom))
        low, high = special.expit(n * (centre - reach)), special.expit(n * (centre + reach))
        return Interval(float(low), float(high), level)

    return Rate(float(special.expit(n * centre)), at, "t interval of the mean logit, times n")


def attribute_rate(
    sample: RateSample,
    *,
    estimator: Estimator = "mean",
    estimand: Estimand = "fixed",
    level: float = 0.95,
) -> Estimate:
    """How often the attribute shows, with its interval.

    >>> import numpy as np
    >>> sample = RateSample(np.array([1.0, 1, 0, 1]), np.array([0, 0, 1, 1]), np.array([0, 0]))
    >>> round(attribute_rate(sample).value, 2)
    0.75
    """
    why = why_not_defined(sample, estimator=estimator, estimand=estimand)
    if why is not None:
        return not_defined(
            "attribute_rate",
            VERSION,
            why=why,
            level=level,
            n=sample.n,
            n_missing=sample.n_missing,
            estimand=estimand,
        )
    result = rate(sample, estimator=estimator, estimand=estimand)
    interval = result.interval_at(level)
    return Estimate(
        measure="attribute_rate",
        version=VERSION,
        value=result.value,
        low=interval.low,
        high=interval.high,
        level=level,
        n=sample.n,
        n_missing=sample.n_missing,
        estimand=estimand,
        method=f"{estimator}; {result.method}",
        bounds=sample.worst_case() if estimator != "posterior" else None,
        notes=sample_notes(sample, result.value, estimand),
    )


def sample_notes(sample: RateSample, value: float, estimand: Estimand) -> tuple[str, ...]:
    """What a careful reader should know about this sample."""
    notes = []
    rates, sizes = sample.per_prompt()
    empty = len(sample.missing) - len(rates)
    if empty:
        notes.append(f"{empty} of {len(sample.missing)} prompts gave no usable image")
    if estimand == "fixed" and len(sizes) > 1 and sizes.min() <= 2 < sizes.max():
        notes.append("a prompt has only one or two images: the interval may be too short")
    if estimand == "sample" and len(rates) < 30 and not 0.05 <= value <= 0.95:
        notes.append(
            f"a rate this close to 0 or 1 from {len(rates)} sampled prompts: the interval may be "
            "too short"
        )
    return tuple(notes)
