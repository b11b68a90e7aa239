"""When an attribute enters the picture: the stereotype propagation index (OASIS, §3.4).

At step t the model is asked what it would do next for the prompt, and for two texts that describe
the attribute's presence (d+) and absence (d−). The direction of the attribute is
δA = v(x_t, t, d+) − v(x_t, t, d−) (eqs. 9 and 10), and

    SPI(A, t) = cos(v(x_t, t, prompt), δA)                                            (eq. 11)

Positive: the attribute is being added in this step; negative: it is being removed. The index is odd
in δA and does not depend on the length of either vector.

Where we depart from the paper: v is ε̂ − x̂0 for every family of models, because "velocity" differs
between parametrisations even in its sign; both the conditional and the guided velocity are
reported; a mean over images comes with a band that holds for the whole curve; and how well the
early steps foretell the finished image is itself measured, with an interval.

SPI says what the model does in its latent space, not why. Where the two texts hardly move the model
(a small `direction_norm` in the trace), the angle is mostly rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from tropescope.errors import MeasureError
from tropescope.statistics.bands import Band, max_t_band
from tropescope.statistics.estimate import Estimate
from tropescope.statistics.intervals import Interval

VERSION = 1
FloatArray = NDArray[np.float64]


def spi(velocity: NDArray[np.floating], delta: NDArray[np.floating]) -> FloatArray:
    """Eq. 11 for each item of the first axis; NaN, not defined, where a vector is zero.

    >>> spi(np.array([[1.0, 0.0]]), np.array([[2.0, 0.0]])).tolist()
    [1.0]
    """
    if velocity.shape != delta.shape or velocity.ndim < 2:
        raise MeasureError(
            f"velocity and direction must have one shape, items first: {velocity.shape} and "
            f"{delta.shape}"
        )
    v = velocity.reshape(len(velocity), -1).astype(np.float64)
    d = delta.reshape(len(delta), -1).astype(np.float64)
    lengths = np.sqrt((v * v).sum(axis=1)) * np.sqrt((d * d).sum(axis=1))
    found = np.full(len(v), np.nan)
    np.divide((v * d).sum(axis=1), lengths, out=found, where=lengths > 0)
    return found


@dataclass(frozen=True, slots=True)
class SpiCurve:
    """Mean SPI over the images of a concept, with a band that holds at all steps at once."""

    band: Band
    n: int
    n_missing: int
    """Images without a trace, or with no step at which SPI is defined."""
    notes: tuple[str, ...] = ()


def spi_curve(
    curves: NDArray[np.floating],
    *,
    n_missing: int = 0,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> SpiCurve:
    """The mean curve of images × steps (Fig. 9). The band is kept inside [−1, 1]."""
    values: FloatArray = _images_by_steps(curves)
    defined = np.isfinite(values).any(axis=1)
    n_missing += int((~defined).sum())
    values = values[defined]
    if len(values) == 0:
        raise MeasureError("no image has a defined SPI, so there is no curve")
    band = max_t_band(values, level=level, resamples=resamples, seed=seed)
    notes = []
    if not np.isfinite(band.critical):
        notes.append(f"{len(values)} images are too few for a band at level {level}")
    gaps = int((band.n < len(values)).sum())
    if gaps:
        notes.append(f"SPI is not defined for some images at {gaps} steps")
    clipped = Band(
        mean=band.mean,
        low=np.clip(band.low, -1, 1),
        high=np.clip(band.high, -1, 1),
        n=band.n,
        level=level,
        critical=band.critical,
    )
    return SpiCurve(clipped, len(values), n_missing, tuple(notes))


def early_spi(curves: NDArray[np.floating], share: float = 0.25) -> FloatArray:
    """Per image the mean SPI over the first share of the steps (at least one); NaN if undefined."""
    values = _images_by_steps(curves)
    if not 0 < share <= 1:
        raise MeasureError(f"the share of early steps must lie in (0, 1], not {share}")
    early = values[:, : max(1, int(np.ceil(share * values.shape[1] - 1e-9)))]
    counts = np.isfinite(early).sum(axis=1)
    found = np.full(len(early), np.nan)
    np.divide(np.nansum(early, axis=1), counts, out=found, where=counts > 0)
    return found


def _images_by_steps(curves: NDArray[np.floating]) -> FloatArray:
    values = np.asarray(curves, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] == 0:
        raise MeasureError("SPI curves must be given as images × steps")
    return values


def foretelling(
    scores: NDArray[np.floating], shows: NDArray[np.bool_], *, level: float = 0.95
) -> Estimate:
    """How well a score of early steps foretells the finished image: AUC with its interval.

    The chance that an image with the attribute scores above one without; 0.5 is guessing. Take the
    images of *one* prompt: over several, the prompts alone would separate the classes. Interval:
    DeLong, DeLong & Clarke-Pearson (1988) on the logit scale; where the sample shows no spread
    (AUC 0 or 1), Newcombe's method 5 (2006), which never has zero width.
    """
    scores = np.asarray(scores, dtype=np.float64)
    shows = np.asarray(shows, dtype=bool)
    if scores.shape != shows.shape or scores.ndim != 1:
        raise MeasureError("scores and labels must be two lists of the same length")
    usable = np.isfinite(scores)
    missing = int((~usable).sum())
    with_it, without = scores[usable & shows], scores[usable & ~shows]
    n = int(usable.sum())
    if not len(with_it) or not len(without):
        which = "every" if len(with_it) else "no"
        note = f"{which} usable image shows the attribute, so there is nothing to tell apart"
        return _auc_estimate(None, None, level, n, missing, "not defined", (note,))
    value, variance = _auc(with_it, without)
    if 0 < value < 1 and variance > 0:
        reach = stats.norm.isf((1 - level) / 2) * np.sqrt(variance) / (value * (1 - value))
        centre = special.logit(value)
        ends = special.expit([centre - reach, centre + reach])
        interval = Interval(float(ends[0]), float(ends[1]), level)
        method = "AUC; DeLong, logit scale"
    else:
        interval = _newcombe(value, len(with_it), len(without), level)
        method = "AUC; Newcombe, method 5"
    return _auc_estimate(value, interval, level, n, missing, method, ())


def _auc(with_it: FloatArray, without: FloatArray) -> tuple[float, float]:
    """AUC and DeLong's variance from ranks (Sun & Xu 2014); ties count one half."""
    m, n = len(with_it), len(without)
    together = stats.rankdata(np.concatenate([with_it, without]))
    above = (together[:m] - stats.rankdata(with_it)) / n
    below = 1 - (together[m:] - stats.rankdata(without)) / m
    variance = 0.0
    if m > 1 and n > 1:
        variance = float(above.var(ddof=1)) / m + float(below.var(ddof=1)) / n
    return float(above.mean()), variance


def _newcombe(value: float, m: int, n: int, level: float) -> Interval:
    z = float(stats.norm.isf((1 - level) / 2))
    size = (m + n) / 2 - 1

    def gap(theta: float) -> float:
        spread = 1 + size * (1 - theta) / (2 - theta) + size * theta / (1 + theta)
        return abs(value - theta) - z * float(np.sqrt(theta * (1 - theta) * spread / (m * n)))

    # Both distances vanish at the value itself when it is 0 or 1; the roots lie beside it.
    tiny = 1e-9
    low, high = 0.0, 1.0
    if value > 0 and gap(tiny) > 0:
        low = optimize.brentq(gap, tiny, value - tiny)
    if value < 1 and gap(1 - tiny) > 0:
        high = optimize.brentq(gap, value + tiny, 1 - tiny)
    return Interval(float(low), float(high), level)


def _auc_estimate(
    value: float | None,
    interval: Interval | None,
    level: float,
    n: int,
    missing: int,
    method: str,
    notes: tuple[str, ...],
) -> Estimate:
    return Estimate(
        measure="spi_foretelling",
        version=VERSION,
        value=value,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        level=level,
        n=n,
        n_missing=missing,
        estimand="fixed",
        method=method,
        notes=notes,
    )
