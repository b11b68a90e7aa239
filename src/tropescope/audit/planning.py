"""What a study would do, before it does it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tropescope.audit.judging import open_judge
from tropescope.audit.pipeline import open_models, plan_study
from tropescope.audit.source import study_source
from tropescope.audit.spending import CostsMoney
from tropescope.generation.plan import Plan, batches
from tropescope.generation.worker import require_prompts
from tropescope.models.entry import OpenContext
from tropescope.models.fingerprints import FileFingerprints
from tropescope.models.protocol import TextToImage
from tropescope.prompts.rendering import prompts_of
from tropescope.study import Study


@dataclass(frozen=True, slots=True)
class ModelPlan:
    name: str
    adapter: str
    images: int
    calls: int
    cost: float | None
    currency: str | None


@dataclass(frozen=True, slots=True)
class PlanDescription:
    study: str
    concepts: int
    attributes: int
    estimand: str
    prompts: tuple[str, ...]
    models: tuple[ModelPlan, ...]
    judged_images: int
    estimates: int
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_text(self) -> str:
        lines = [f"{self.study}", ""]
        lines.append(f"{len(self.prompts)} prompts ({self.estimand}):")
        lines += [f"  {prompt}" for prompt in self.prompts[:12]]
        if self.prompts[12:]:
            lines.append(f"  … and {len(self.prompts) - 12} more (all of them with --json)")
        lines += ["", "models:"]
        for model in self.models:
            line = f"  {model.name} ({model.adapter}): {model.images} images in {model.calls} calls"
            if model.cost is not None:
                line += f", about {model.cost:.2f} {model.currency}"
            lines.append(line)
        lines += [
            "",
            f"{self.judged_images} images judged for {self.attributes} attributes; "
            f"{self.estimates} questions over {self.concepts} concepts",
        ]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines) + "\n"


def describe_plan(
    study: str | Path | Study, *, limit: int | None = None, offline: bool = False
) -> PlanDescription:
    """Check everything that can be checked without weights, and count what would be done."""
    source = study_source(study)
    context = OpenContext(FileFingerprints(), source.folder, offline=offline)
    models = open_models(source.study, context)
    plan = plan_study(source.study, models, limit)
    warnings = require_prompts(models, prompts_of(source.study))
    open_judge(source.study, context).check(source.study)
    return PlanDescription(
        study=source.study.study,
        concepts=len(source.study.concepts),
        attributes=len(source.study.attributes),
        estimand=source.study.prompts.settled_estimand,
        prompts=tuple(dict.fromkeys(image.prompt.text for image in plan.images)),
        models=tuple(
            _model_plan(name, model, source.study, plan) for name, model in models.items()
        ),
        judged_images=len({image.key for image in plan.images}),
        estimates=len(source.study.pairs()) * len(models) * len(source.study.estimators),
        warnings=tuple(warnings),
    )


def _model_plan(name: str, model: TextToImage, study: Study, plan: Plan) -> ModelPlan:
    entry = study.models[name]
    images = plan.of_model(name)
    calls = batches(images, size=entry.batch_size, done=set(), whole=model.batch_matters)
    unique = len({image.key for image in images})
    cost = model.estimated_cost(unique) if isinstance(model, CostsMoney) else None
    return ModelPlan(
        name=name,
        adapter=entry.adapter,
        images=unique,
        calls=sum(1 for _ in calls),
        cost=None if cost is None else cost[0],
        currency=None if cost is None else cost[1],
    )
