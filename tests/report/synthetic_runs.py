"""Run folders made without any model, written with the project's own writers."""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from tropescope.features.presence import Scores, write_presence_table
from tropescope.features.rows import ImageRow
from tropescope.findings.estimating import estimates_of
from tropescope.findings.results import Results
from tropescope.generation.plan import Plan, PlannedImage
from tropescope.generation.table import write_images_table
from tropescope.prompts.rendering import prompts_of
from tropescope.report import write_report
from tropescope.store.canonical import digest
from tropescope.store.folder import RunFolder
from tropescope.study.definition import Study
from tropescope.study.loading import load_study_text

#: Names that must neither execute nor break anything.
HOSTILE = (
    "<script>window.hacked=1</script>",
    "{{7*7}}{% raw %}",
    '"><img src=x onerror="window.hacked=2">',
    "</title></style></svg></details><script>window.hacked=3</script>",
    "\u202eשלום עולם",
    "n" * 4000,
    "javascript:window.hacked=4",
    "=HYPERLINK(1)",
    "]]><!-- \u0000 \ufffe",
    "emoji 👩🏽‍🌾 '",
)


@dataclass(frozen=True)
class SyntheticRun:
    folder: RunFolder
    results: Results
    study: Study

    def report(self, **facts: Any) -> str:
        path = write_report(self.folder, self.results, self.study, facts=facts)
        return path.read_text("utf-8")


def study_data(
    *,
    concepts: Mapping[str, Any] | Sequence[str] = ("Kestran person", "Nolvar person"),
    attributes: Sequence[str] = ("hat", "beard"),
    models: Sequence[str] = ("painter",),
    templates: int = 2,
    images_per_prompt: int = 20,
    **changes: Any,
) -> dict[str, Any]:
    named = concepts if isinstance(concepts, Mapping) else {name: name for name in concepts}
    return {
        "study": "A synthetic study",
        "description": "Made for a test.",
        "seed": 3,
        "models": {
            name: {"adapter": "world", "batch_size": 4 + i} for i, name in enumerate(models)
        },
        "concepts": dict(named),
        "prompts": {"templates": [f"picture {i} of a {{concept}}" for i in range(templates)]},
        "images_per_prompt": images_per_prompt,
        "attributes": {
            name: {"present": f"with {name[:500]}", "absent": f"without {name[:500]}"}
            for name in attributes
        },
        "references": [
            {
                "concept": "*",
                "attribute": name,
                "value": 0.3,
                **({"low": 0.25, "high": 0.36, "year": 2020} if i % 2 == 0 else {}),
                "source": "National statistics",
                "kind": "census" if i % 2 == 0 else "assumed",
            }
            for i, name in enumerate(attributes)
        ],
        "judge": {"kind": "labels"},
        **changes,
    }


def picture(number: int, side: int = 48) -> NDArray[np.uint8]:
    """A small picture that differs from every other one."""
    rng = np.random.default_rng(number)
    colour = np.array(colorsys.hsv_to_rgb(rng.random(), 0.5, 0.9)) * 255
    pixels = np.broadcast_to(colour, (side, side, 3)).astype(np.uint8).copy()
    pixels[8:30, 8:30] = rng.integers(0, 255, 3, dtype=np.uint8)
    pixels[0, 0] = (number % 256, number // 256 % 256, number // 65536)
    return pixels


def shown_by_chance(rate_of: Callable[[ImageRow, str], float]) -> Callable[[ImageRow, str], float]:
    """Margins with the given share above 0, reproducible by key and attribute."""

    def margin(row: ImageRow, attribute: str) -> float:
        draw = int(digest([row.key, attribute])[:12], 16) / 16**12
        return (rate_of(row, attribute) - draw) * 0.2

    return margin


def planned_images(study: Study) -> list[PlannedImage]:
    return [
        PlannedImage(digest([model, prompt.text, i])[:32], model, prompt, i, i)
        for model in study.models
        for prompt in prompts_of(study)
        for i in range(study.images_per_prompt)
    ]


def make_run(
    root: Path,
    data: Mapping[str, Any],
    *,
    rate_of: Callable[[ImageRow, str], float] = lambda row, attribute: 0.6,
    outcome_of: Callable[[PlannedImage], tuple[str, str]] = lambda image: ("generated", ""),
    distinct: int | None = None,
    truth: bool = False,
) -> SyntheticRun:
    """A finished run folder; `distinct` limits how many different pictures there are."""
    text = yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=False)
    study = load_study_text(text)
    folder = RunFolder(root)
    folder.create()
    folder.study.write_text(text, "utf-8")
    planned = planned_images(study)
    stored = {}
    records: dict[str, dict[str, Any]] = {}
    for number, image in enumerate(planned):
        outcome, reason = outcome_of(image)
        record: dict[str, Any] = {
            "outcome": outcome, "reason": reason, "revised_prompt": "", "facts": {},
        }  # fmt: skip
        if outcome == "generated":
            which = number if distinct is None else number % distinct
            if which not in stored:
                stored[which] = folder.images.put(picture(which))
            kept = stored[which]
            record |= {
                "pixels_sha256": kept.pixels_sha256,
                "file_sha256": kept.file_sha256,
                "path": kept.path,
                "width": kept.width,
                "height": kept.height,
            }
        records[image.key] = record
    write_images_table(Plan(tuple(planned)), records, folder)
    margin = shown_by_chance(rate_of)
    names = list(study.attributes)

    def scores_of(row: ImageRow) -> Scores:
        present = np.array([0.2 + margin(row, name) for name in names], dtype=np.float32)
        return Scores(present, np.full(len(names), 0.2, dtype=np.float32))

    write_presence_table(folder, names, scores_of, fingerprint="synthetic")
    sets, rows = estimates_of(study, folder, logit_scale=None)
    if truth:
        rows = [row.model_copy(update={"truth": 0.6}) if row.measure == "attribute_rate" else row
                for row in rows]  # fmt: skip
    results = Results(
        versions={"python": "3.11"},
        tropescope="0.0.test",
        inputs="f" * 64,
        study=study.study,
        models={name: {"adapter": "synthetic", "commit": "c" * 40} for name in study.models},
        judge={"kind": "labels"},
        logit_scale=None,
        item_sets=sets,
        estimates=tuple(rows),
    )
    return SyntheticRun(folder, results, study)
