"""Planted truth beside the estimates, where the audited model knows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from tropescope.findings.results import EstimateRow
from tropescope.generation.plan import Plan
from tropescope.models.protocol import TextToImage


@runtime_checkable
class KnowsTruth(Protocol):
    """A model of a world in which the rates are planted."""

    def planted_rate(self, prompt: str, attribute: str) -> float | None: ...


def with_truth(
    rows: Iterable[EstimateRow], models: Mapping[str, TextToImage], plan: Plan
) -> list[EstimateRow]:
    """Add the value each estimate would have without any error."""
    prompts: dict[tuple[str, str], list[str]] = {}
    for image in plan.images:
        texts = prompts.setdefault((image.model, image.prompt.concept), [])
        if image.prompt.text not in texts:
            texts.append(image.prompt.text)

    def truth(row: EstimateRow) -> float | None:
        model = models[row.model]
        if not isinstance(model, KnowsTruth) or row.estimator == "posterior":
            return None
        rates = [model.planted_rate(t, row.attribute) for t in prompts[row.model, row.concept]]
        if any(rate is None for rate in rates):
            return None
        rate = sum(float(r or 0.0) for r in rates) / len(rates)
        if row.measure == "attribute_rate":
            return rate
        if row.measure == "parity_gap":
            return abs(rate - 0.5)
        if row.reference is None:
            return None
        difference = rate - row.reference.value
        return max(0.0, difference) if row.measure == "stereotype_score" else difference

    return [row.model_copy(update={"truth": truth(row)}) for row in rows]
