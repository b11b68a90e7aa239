"""The results file: every estimate of a run, with everything needed to trust or doubt it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from tropescope.errors import Corruption

SCHEMA = 1


class Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ReferenceRow(Row):
    value: float
    low: float | None = None
    high: float | None = None
    source: str
    year: int | None = None
    population: str = ""
    kind: str


class EstimateRow(Row):
    """One estimate. `items` names the set of images behind it in `item_sets`."""

    measure: str
    version: int
    estimator: str
    model: str
    concept: str
    attribute: str
    value: float | None
    low: float | None
    high: float | None
    level: float
    n: int
    n_missing: int
    estimand: str
    method: str
    verdict: str
    zeta: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    p_less: float | None = None
    p_less_adjusted: float | None = None
    family: str | None = None
    bounds: tuple[float, float] | None = None
    reference: ReferenceRow | None = None
    fatal_reference: float | None = None
    """The reference rate from which on the finding would no longer hold."""
    truth: float | None = None
    """The value that was planted, where the audited model knows it (the reference world)."""
    notes: tuple[str, ...] = ()
    items: str


class CurveRow(Row):
    """A measure over the steps of the sampler, with a band that holds at all steps at once.

    `sigma` is the noise level before each step; `items` are the images behind the curve.
    """

    measure: str
    version: int
    model: str
    concept: str
    attribute: str
    velocity: str
    sigma: tuple[float, ...]
    value: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    level: float
    n: int
    n_missing: int
    method: str
    notes: tuple[str, ...] = ()
    items: tuple[str, ...]


class ItemSet(Row):
    """The planned images of one model and concept: those judged, and those missing with why."""

    model: str
    concept: str
    keys: tuple[str, ...]
    missing: dict[str, tuple[str, ...]]
    """Keys by outcome other than generated."""


class Results(Row):
    """All estimates of a run."""

    tropescope: str
    results_format: int = SCHEMA
    inputs: str
    """Fingerprint of the tables and settings from which the estimates follow."""
    versions: dict[str, str]
    """Packages with which the estimates were computed."""
    study: str
    models: dict[str, dict[str, Any]]
    judge: dict[str, Any]
    logit_scale: float | None
    item_sets: dict[str, ItemSet]
    estimates: tuple[EstimateRow, ...]
    curves: tuple[CurveRow, ...] = ()

    def to_json(self) -> bytes:
        return (self.model_dump_json(indent=1) + "\n").encode()

    def select(self, **wanted: str) -> list[EstimateRow]:
        """Estimates whose fields equal the given values, such as measure, model or concept."""
        return [e for e in self.estimates if all(getattr(e, k) == v for k, v in wanted.items())]


def read_results(path: Path) -> Results:
    try:
        return Results.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise Corruption(
            f"there is no {path.name} in {path.parent}: the run is not finished",
            fix="run the study again: the same command continues it",
        ) from None
    except ValueError as error:
        raise Corruption(
            f"{path.name} cannot be read: {str(error).splitlines()[0]}",
            fix="delete it and run the study again: the same command rebuilds it",
        ) from None
