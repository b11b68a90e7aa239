"""What tracing found for one model and phrase, ready to be drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from tropescope.features.traces import TraceRow
from tropescope.findings.results import CurveRow, EstimateRow, Results
from tropescope.measures.spi import early_spi
from tropescope.report.inside.numbers import signed, steps_in_words

FORETELLING = "spi_foretelling"


@dataclass(frozen=True)
class Early:
    """Mean SPI over the first quarter of the steps.

    The band holds at all steps at once, so the means of its ends hold for the mean.
    """

    value: float | None
    low: float | None
    high: float | None

    @property
    def sign(self) -> Literal["added", "removed", ""]:
        """Whether the band settles on which side of zero it lies."""
        if self.low is not None and self.low > 0:
            return "added"
        return "removed" if self.high is not None and self.high < 0 else ""


def early_of(curve: CurveRow) -> Early:
    value, low, high = (_early(ends) for ends in (curve.value, curve.low, curve.high))
    return Early(value, *((low, high) if has_band(curve) else (None, None)))


def _early(values: Sequence[float | None]) -> float | None:
    numbers = np.array([[np.nan if v is None else v for v in values]], dtype=np.float64)
    found = float(early_spi(numbers)[0])
    return None if np.isnan(found) else found


def has_band(curve: CurveRow) -> bool:
    """Too few images leave a band that says nothing: gaps in it, or all from −1 to 1."""
    steps = zip(curve.value, curve.low, curve.high, strict=True)
    ends = [(low, high) for value, low, high in steps if value is not None]
    return all(None not in pair for pair in ends) and any(pair != (-1.0, 1.0) for pair in ends)


@dataclass(frozen=True)
class AttributeTrace:
    """The curves of one attribute; `guided` only where guidance changed them."""

    attribute: str
    conditional: CurveRow
    guided: CurveRow | None
    foretelling: tuple[EstimateRow, ...]

    @property
    def curves(self) -> tuple[CurveRow, ...]:
        return (self.conditional,) if self.guided is None else (self.conditional, self.guided)

    @cached_property
    def early(self) -> Early:
        return early_of(self.conditional)

    @cached_property
    def early_guided(self) -> Early | None:
        return None if self.guided is None else early_of(self.guided)

    @cached_property
    def has_band(self) -> bool:
        return has_band(self.conditional)

    @property
    def size(self) -> float:
        return abs(self.early.value or 0.0)

    def beyond_zero(self, side: Literal["above", "below"]) -> list[int]:
        """Steps, counted from 1, at which the whole band lies on one side of zero."""
        if not self.has_band:
            return []
        ends = self.conditional.low if side == "above" else self.conditional.high
        sign = 1 if side == "above" else -1
        return [i for i, end in enumerate(ends, 1) if end is not None and end * sign > 0]

    @property
    def extreme(self) -> tuple[int, float] | None:
        """Step, from 1, and value of the mean farthest from zero."""
        known = [(i, v) for i, v in enumerate(self.conditional.value, 1) if v is not None]
        return max(known, key=lambda pair: abs(pair[1]), default=None)

    def in_words(self, places: int) -> str:
        """The curve for readers who do not see it."""
        values = self.conditional.value
        parts = [f"Mean SPI over {len(values)} steps, from noise to image"]
        if self.extreme is not None:
            step, value = self.extreme
            parts.append(f"farthest from zero at step {step} with {signed(value, places)}")
        above, below = self.beyond_zero("above"), self.beyond_zero("below")
        if above:
            parts.append(f"the band lies above zero at steps {steps_in_words(above)}")
        if below:
            parts.append(f"below zero at steps {steps_in_words(below)}")
        if not self.has_band:
            parts.append("too few images for a band")
        elif not above and not below:
            parts.append("the band holds zero at every step")
        return "; ".join(parts) + "."


@dataclass(frozen=True)
class GroupView:
    """One model and one phrase: curves by the size of early SPI, and the traced images."""

    anchor: str
    model: str
    concept: str
    phrase: str
    attributes: tuple[AttributeTrace, ...]
    rows: tuple[TraceRow, ...]

    @cached_property
    def strength(self) -> float:
        return max((trace.size for trace in self.attributes), default=-1.0)

    @property
    def guided(self) -> bool:
        return any(trace.guided is not None for trace in self.attributes)

    @property
    def foretells(self) -> bool:
        return any(trace.foretelling for trace in self.attributes)

    @property
    def templates(self) -> int:
        return len({row.template for row in self.rows})

    @property
    def different(self) -> int:
        """Traced images that are not the run's to the bit."""
        return sum(not row.same_image for row in self.rows)

    @property
    def sigma(self) -> tuple[float, ...]:
        return self.attributes[0].conditional.sigma if self.attributes else ()


def group_views(
    results: Results, rows: Iterable[TraceRow], *, phrases: Mapping[str, str]
) -> list[GroupView]:
    """Phrase by phrase, the models of a phrase one after another."""
    traced: dict[tuple[str, str], dict[str, TraceRow]] = defaultdict(dict)
    for row in rows:
        traced[row.concept, row.model].setdefault(row.key, row)
    curves: dict[tuple[str, str], dict[str, dict[str, CurveRow]]] = defaultdict(dict)
    for curve in results.curves:
        if curve.measure == "spi":
            by_velocity = curves[curve.concept, curve.model].setdefault(curve.attribute, {})
            by_velocity[curve.velocity] = curve
    foretold: dict[tuple[str, str, str], list[EstimateRow]] = defaultdict(list)
    for estimate in results.estimates:
        if estimate.measure == FORETELLING:
            foretold[estimate.concept, estimate.model, estimate.attribute].append(estimate)
    places = [(c.concept, c.model) for c in results.item_sets.values()]
    concepts = list(dict.fromkeys([*phrases, *(c for c, _ in [*places, *curves, *traced])]))
    models = list(dict.fromkeys([*results.models, *(m for _, m in [*places, *curves, *traced])]))
    ordered = [(c, m) for c in concepts for m in models if (c, m) in curves or (c, m) in traced]
    return [
        GroupView(
            anchor=f"i{i}",
            model=model,
            concept=concept,
            phrase=phrases.get(concept, concept),
            attributes=_attributes(
                curves.get((concept, model), {}),
                {a: tuple(foretold[concept, model, a]) for a in curves.get((concept, model), {})},
            ),
            rows=tuple(traced.get((concept, model), {}).values()),
        )
        for i, (concept, model) in enumerate(ordered, 1)
    ]


def _attributes(
    curves: Mapping[str, Mapping[str, CurveRow]],
    foretold: Mapping[str, tuple[EstimateRow, ...]],
) -> tuple[AttributeTrace, ...]:
    traces = []
    for attribute, found in curves.items():
        conditional = found.get("conditional") or found["guided"]
        guided = found.get("guided")
        if guided is not None and guided.value == conditional.value:
            guided = None
        traces.append(AttributeTrace(attribute, conditional, guided, foretold[attribute]))
    return tuple(sorted(traces, key=lambda trace: -trace.size))
