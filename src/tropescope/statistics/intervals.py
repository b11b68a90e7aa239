"""Intervals for rates and for their difference to a reference.

Rates near 0 and 1 and few prompts are the normal case in this field, so nothing here uses the
normal approximation of a proportion, and no interval can have zero width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from tropescope.errors import MeasureError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float
    level: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise MeasureError(f"an interval from {self.low} to {self.high} is not one")

    def clipped(self, low: float, high: float) -> Interval:
        return Interval(min(max(self.low, low), high), min(max(self.high, low), high), self.level)


def clopper_pearson(successes: float, n: float, level: float) -> Interval:
    """Exact binomial interval; `successes` and `n` may be effective, non-integer sizes."""
    if not n > 0 or not 0 <= successes <= n * (1 + 1e-12):
        raise MeasureError(f"no interval for {successes} successes in {n} trials")
    successes = min(successes, n)
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(stats.beta.ppf(tail, successes, n - successes + 1))
    high = 1.0 if successes == n else float(stats.beta.isf(tail, successes + 1, n - successes))
    return Interval(low, high, level)


def fixed_prompts_interval(rates: FloatArray, sizes: FloatArray, level: float) -> Interval:
    """Interval of the mean rate over exactly these prompts; only images vary.

    Clopper–Pearson at an effective size. With equally many images for every prompt that is their
    number: a sum of independent but unequal yes/no draws is never more spread out than a binomial
    with their mean rate (Hoeffding 1956), so the interval is conservative. Where images are
    missing, prompts with few images weigh as much as the others, and the size is the smaller of
    Kish's 1/Σ(w²/n) and p(1−p) over the estimated variance Σ w² p̃(1−p̃)/n, with
    p̃ = (k + ½)/(n + 1) so that a prompt without variation still counts as uncertain.
    """
    weight = 1.0 / len(rates)
    effective = 1.0 / float(np.sum(weight**2 / sizes))
    if np.ptp(sizes) > 0:
        shrunk = (rates * sizes + 0.5) / (sizes + 1)
        mean = float(shrunk.mean())
        variance = float(np.sum(weight**2 * shrunk * (1 - shrunk) / sizes))
        effective = min(effective, mean * (1 - mean) / variance)
    return clopper_pearson(float(rates.mean()) * effective, effective, level)


def _t_ratio(level: float, n: float, prompts: int) -> float:
    """Student's quantile on n − 1 over that on G − 1 degrees of freedom.

    At levels near 0 both quantiles vanish; their ratio tends to that of the densities at 0.
    """
    if level < 1e-6:
        return float(stats.t.pdf(0, prompts - 1) / stats.t.pdf(0, n - 1))
    tail = (1 - level) / 2
    return float(stats.t.isf(tail, n - 1) / stats.t.isf(tail, prompts - 1))


def sampled_prompts_interval(rates: FloatArray, sizes: FloatArray, level: float) -> Interval:
    """Interval of the mean rate over all ways to ask, of which these prompts are a sample.

    Korn & Graubard (1998): Clopper–Pearson at the effective size p(1−p)/var, where the variance is
    that of the mean over prompts, with Student's t on G−1 degrees of freedom; never above n.
    """
    prompts = len(rates)
    if prompts < 2:
        raise MeasureError(
            "one prompt is no sample of ways to ask", fix="use `estimand: fixed`, or more templates"
        )
    n = float(sizes.sum())
    rate = float(rates.mean())
    variance = float(rates.var(ddof=1)) / prompts
    effective = n
    if variance > 0 and 0 < rate < 1:
        effective = min(n, rate * (1 - rate) / variance)
    effective *= _t_ratio(level, n, prompts) ** 2
    return clopper_pearson(rate * effective, effective, level)


def difference_to_reference(
    rate: float, interval: Interval, reference: float, reference_interval: Interval | None
) -> Interval:
    """Interval of rate − reference (Zou & Donner 2008, MOVER).

    Each bound moves by the root of the squared distances that either quantity may move alone; a
    reference without an interval is taken as exact.
    """
    difference = rate - reference
    below, above = 0.0, 0.0
    if reference_interval is not None:
        scale = float(
            stats.norm.isf((1 - interval.level) / 2)
            / stats.norm.isf((1 - reference_interval.level) / 2)
        )
        below = (reference - reference_interval.low) * scale
        above = (reference_interval.high - reference) * scale
    low = difference - float(np.hypot(rate - interval.low, above))
    high = difference + float(np.hypot(interval.high - rate, below))
    return Interval(max(low, -1.0), min(high, 1.0), interval.level)


def one_sided_p(
    interval_at: Callable[[float], Interval], *, estimate: float, limit: float
) -> float:
    """p-value of "the truth is at most `limit`", by inverting an interval.

    It is below (1 − level)/2 exactly where the interval's lower end is above `limit`, so a verdict
    from the interval and one from the p-value can never disagree.
    """
    tiny = 1e-12
    if estimate > limit:

        def gap(level: float) -> float:
            return interval_at(level).low - limit
    else:

        def gap(level: float) -> float:
            return limit - interval_at(level).high

    if gap(tiny) <= 0:
        return 0.5
    if gap(1 - tiny) > 0:
        tail = tiny / 2
    else:
        tail = (1 - float(optimize.brentq(gap, tiny, 1 - tiny, xtol=1e-14))) / 2
    return tail if estimate > limit else 1 - tail
