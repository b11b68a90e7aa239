"""How far a model exceeds the world (OASIS, eq. 3).

Ψ = max(0, P − P*): the rate of an attribute in the images minus its rate in the world, where that
is positive. A stereotype is where Ψ ≥ ζ. The score is directional: too few is bias too, but not a
stereotype; the signed difference is kept beside it.

We depart from the paper by giving intervals. The interval is computed for the signed difference and
then clipped, because resampling the kink of max(0, ·) gives intervals that miss. Verdicts:
*found* where the lower end of the difference is above ζ, *excluded* where the upper end is below
it, else *undecided*. An uncertain P* widens the interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tropescope.errors import MeasureError
from tropescope.measures.attribute_rate import (
    Estimand,
    Estimator,
    RateSample,
    rate,
    sample_notes,
    why_not_defined,
)
from tropescope.statistics.estimate import Estimate, Verdict, not_defined
from tropescope.statistics.intervals import Interval, difference_to_reference, one_sided_p

VERSION = 1


@dataclass(frozen=True, slots=True)
class ReferenceRate:
    """P*, exact or with its interval at a level."""

    value: float
    interval: Interval | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.value <= 1:
            raise MeasureError(f"a reference rate must lie between 0 and 1, not {self.value}")


@dataclass(frozen=True, slots=True)
class StereotypeScore:
    """Ψ and the signed difference it is clipped from.

    `fatal_reference` is the P* from which on the finding dies (its own interval moved along with
    it): where the lower end of the difference meets ζ. Correction for many questions not counted.
    """

    score: Estimate
    difference: Estimate
    zeta: float
    fatal_reference: float | None


def score_from_rates(rate_value: float, reference: float) -> float:
    """Ψ of two known rates.

    >>> round(score_from_rates(0.90, 0.50), 2), score_from_rates(0.20, 0.50)
    (0.4, 0.0)
    """
    return max(0.0, rate_value - reference)


def decide(difference: Interval, zeta: float) -> Verdict:
    if difference.low > zeta:
        return "found"
    return "excluded" if difference.high < zeta else "undecided"


def stereotype_score(
    sample: RateSample,
    reference: ReferenceRate,
    *,
    zeta: float = 0.10,
    estimator: Estimator = "mean",
    estimand: Estimand = "fixed",
    level: float = 0.95,
) -> StereotypeScore:
    """Ψ with its interval, verdict and p-value for "the excess is at most ζ"."""
    why = why_not_defined(sample, estimator=estimator, estimand=estimand)
    if why is not None:
        nothing = not_defined(
            "stereotype_score",
            VERSION,
            why=why,
            level=level,
            n=sample.n,
            n_missing=sample.n_missing,
            estimand=estimand,
            verdict="undecided",
        )
        return StereotypeScore(nothing, replace(nothing, measure="signed_difference"), zeta, None)
    result = rate(sample, estimator=estimator, estimand=estimand)
    difference = result.value - reference.value

    def difference_at(at_level: float) -> Interval:
        return difference_to_reference(
            result.value, result.interval_at(at_level), reference.value, reference.interval
        )

    def shortfall_at(at_level: float) -> Interval:
        excess = difference_at(at_level)
        return Interval(-excess.high, -excess.low, at_level)

    interval = difference_at(level)
    signed = Estimate(
        measure="signed_difference",
        version=VERSION,
        value=difference,
        low=interval.low,
        high=interval.high,
        level=level,
        n=sample.n,
        n_missing=sample.n_missing,
        estimand=estimand,
        method=f"{estimator}; {result.method}; MOVER with the reference",
        bounds=_shifted(sample, reference.value) if estimator != "posterior" else None,
        p_value=one_sided_p(difference_at, estimate=difference, limit=zeta),
        p_less=one_sided_p(shortfall_at, estimate=-difference, limit=zeta),
        verdict=decide(interval, zeta),
        notes=sample_notes(sample, result.value, estimand),
    )
    clipped = interval.clipped(0.0, 1.0)
    score = replace(
        signed,
        measure="stereotype_score",
        p_less=None,
        value=max(0.0, difference),
        low=clipped.low,
        high=clipped.high,
        bounds=None if signed.bounds is None else tuple(np.maximum(signed.bounds, 0.0).tolist()),
    )
    return StereotypeScore(score, signed, zeta, interval.low + reference.value - zeta)


def _shifted(sample: RateSample, reference: float) -> tuple[float, float]:
    low, high = sample.worst_case()
    return low - reference, high - reference
