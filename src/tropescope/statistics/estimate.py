"""An estimate: never a bare number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["found", "excluded", "undecided", "none"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its uncertainty, its sample and the method that made it.

    `value` is None where the measure is not defined, and `notes` say why. `bounds` are what the
    value would be if every missing image had (or had not) shown the attribute.
    """

    measure: str
    version: int
    value: float | None
    low: float | None
    high: float | None
    level: float
    n: int
    n_missing: int
    estimand: str
    method: str
    bounds: tuple[float, float] | None = None
    p_value: float | None = None
    """Of "the excess is at most the limit" (or whatever the measure's docstring says)."""
    p_less: float | None = None
    """Of "the shortfall is at most the limit", for measures with a sign."""
    verdict: Verdict = "none"
    notes: tuple[str, ...] = ()


def not_defined(
    measure: str,
    version: int,
    *,
    why: str,
    level: float,
    n_missing: int,
    estimand: str,
    n: int = 0,
    verdict: Verdict = "none",
) -> Estimate:
    """An estimate without a value: there was nothing to measure, and `why` says so."""
    return Estimate(
        measure=measure,
        version=version,
        value=None,
        low=None,
        high=None,
        level=level,
        n=n,
        n_missing=n_missing,
        estimand=estimand,
        method="not defined",
        verdict=verdict,
        notes=(why,),
    )
