"""What an API run has cost so far, so that a spending cap holds over all its continuations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tropescope.generation.plan import Plan
from tropescope.models.protocol import TextToImage
from tropescope.store.folder import RunFolder
from tropescope.store.ledger import read_ledger


@runtime_checkable
class CostsMoney(Protocol):
    def estimated_cost(self, n_images: int) -> tuple[float, str] | None: ...

    def add_prior_spend(self, amount: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Spent:
    """How much was spent when so many requests stood in the ledger."""

    amount: float
    asked: int


def remember_spending(plan: Plan, models: Mapping[str, TextToImage], folder: RunFolder) -> None:
    """Tell each model that costs money what earlier calls of this run have cost."""
    for name, spent in spending_so_far(plan, models, folder).items():
        model = models[name]
        if isinstance(model, CostsMoney):
            model.add_prior_spend(spent.amount)


def spending_so_far(
    plan: Plan, models: Mapping[str, TextToImage], folder: RunFolder
) -> dict[str, Spent]:
    """Per model: what was recorded, and for what was done since the larger of the model's own
    count and one price per committed item.

    A killed process cannot report, but every item it committed was asked for at least once; what
    it asked for and did not commit stays unknown.
    """
    spent: dict[str, Spent] = {}
    recorded = folder.manifest_facts()
    for name, model in models.items():
        if not isinstance(model, CostsMoney):
            continue
        keys = {image.key for image in plan.of_model(name)}
        asked = sum(1 for record in read_ledger(folder.ledger) if record.get("key") in keys)
        earlier = recorded.get("spending", {}).get(name, {})
        since = model.estimated_cost(asked - int(earlier.get("asked", 0)))
        if since is not None:
            now = float(model.facts().get("spent", 0.0))
            amount = float(earlier.get("spent", 0.0)) + max(since[0], now)
            spent[name] = Spent(amount, asked)
    return spent
