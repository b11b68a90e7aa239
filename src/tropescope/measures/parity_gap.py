"""How far a rate is from one half (the measure of earlier tools; OASIS, eq. 1).

|P − ½| treats a half as the only fair rate. It is reported so that results can be compared with
other tools, beside the stereotype score, never instead of it. Higher means further from a half.
"""

from __future__ import annotations

from dataclasses import replace

from tropescope.measures.attribute_rate import Estimand, Estimator, RateSample, attribute_rate
from tropescope.statistics.estimate import Estimate

VERSION = 1


def parity_gap(
    sample: RateSample,
    *,
    estimator: Estimator = "mean",
    estimand: Estimand = "fixed",
    level: float = 0.95,
) -> Estimate:
    """|P − ½|; the interval is the image of the rate's interval."""
    estimate = attribute_rate(sample, estimator=estimator, estimand=estimand, level=level)
    named = replace(estimate, measure="parity_gap", version=VERSION)
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return named
    low, high = _fold(estimate.low, estimate.high)
    return replace(
        named,
        value=abs(estimate.value - 0.5),
        low=low,
        high=high,
        bounds=None if estimate.bounds is None else _fold(*estimate.bounds),
    )


def _fold(low: float, high: float) -> tuple[float, float]:
    """The smallest and largest distance to one half of the values between `low` and `high`."""
    ends = (abs(low - 0.5), abs(high - 0.5))
    return (0.0 if low <= 0.5 <= high else min(ends)), max(ends)
