"""What an API run has cost so far, so that a spending cap holds over all its continuations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from tropescope.generation.plan import Plan
from tropescope.models.protocol import TextToImage
from tropescope.store.folder import RunFolder
from tropescope.store.ledger import read_ledger


@runtime_checkable
class CostsMoney(Protocol):
    def estimated_cost(self, n_images: int) -> tuple[float, str] | None: ...

    def add_prior_spend(self, amount: float) -> None: ...


def remember_spending(plan: Plan, models: Mapping[str, TextToImage], folder: RunFolder) -> None:
    """Tell each model that costs money what earlier calls of this run have cost."""
    for name, amount in spending_so_far(plan, models, folder).items():
        model = models[name]
        if isinstance(model, CostsMoney):
            model.add_prior_spend(amount)


def spending_so_far(
    plan: Plan, models: Mapping[str, TextToImage], folder: RunFolder
) -> dict[str, float]:
    """Per model: what finished calls reported, or one price per committed item if that is more.

    A killed process cannot report, but every item it committed was asked for at least once.
    """
    spent: dict[str, float] = {}
    recorded = folder.manifest_facts()
    for name, model in models.items():
        if not isinstance(model, CostsMoney):
            continue
        keys = {image.key for image in plan.of_model(name)}
        asked = sum(1 for record in read_ledger(folder.ledger) if record.get("key") in keys)
        cost = model.estimated_cost(asked)
        if cost is not None:
            earlier = float(recorded.get("spending", {}).get(name, 0.0))
            now = float(model.facts().get("spent", 0.0))
            spent[name] = max(cost[0], earlier + now)
    return spent
