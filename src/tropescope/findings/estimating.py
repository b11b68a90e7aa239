"""From the tables of a run to its estimates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tropescope.features.presence import TABLE as PRESENCE
from tropescope.features.rows import ImageRow, image_rows
from tropescope.findings.results import EstimateRow, ItemSet, ReferenceRow
from tropescope.measures.attribute_rate import (
    RateSample,
    attribute_rate,
    presence,
    presence_probability,
)
from tropescope.measures.parity_gap import parity_gap
from tropescope.measures.stereotype_score import ReferenceRate, stereotype_score
from tropescope.statistics.estimate import Estimate
from tropescope.statistics.intervals import FloatArray, Interval
from tropescope.statistics.multiplicity import benjamini_hochberg
from tropescope.store.folder import RunFolder
from tropescope.store.tables import table_batches
from tropescope.study.definition import Estimator, Reference, Study

#: Published intervals of reference rates are taken as 95 % intervals unless they say otherwise.
REFERENCE_LEVEL = 0.95


@dataclass
class Cell:
    """All planned images of one model and concept."""

    rows: list[ImageRow] = field(default_factory=list)

    def item_set(self) -> ItemSet:
        missing: dict[str, list[str]] = defaultdict(list)
        for row in self.rows:
            if not row.usable:
                missing[row.outcome].append(row.key)
        return ItemSet(
            model=self.rows[0].model,
            concept=self.rows[0].concept,
            keys=tuple(row.key for row in self.rows if row.usable),
            missing={outcome: tuple(keys) for outcome, keys in sorted(missing.items())},
        )


class PresenceScores:
    """Similarities to the two texts by attribute and image key, as one array per attribute."""

    def __init__(self, folder: RunFolder) -> None:
        self._positions: dict[str, dict[str, int]] = defaultdict(dict)
        values: dict[str, list[FloatArray]] = defaultdict(list)
        for batch in table_batches(folder.table(PRESENCE)):
            keys = batch.column("key").to_pylist()
            names = np.array(batch.column("attribute").to_pylist())
            pairs = np.stack(
                [
                    batch.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
                    for name in ("similarity_present", "similarity_absent")
                ],
                axis=1,
            )
            for attribute in np.unique(names):
                positions = self._positions[str(attribute)]
                new = []
                for i in np.flatnonzero(names == attribute):
                    if keys[i] not in positions:  # models with equal settings share their images
                        positions[keys[i]] = len(positions)
                        new.append(i)
                values[str(attribute)].append(pairs[new])
        self._values = {name: np.concatenate(parts) for name, parts in values.items()}

    def of(self, attribute: str, rows: Sequence[ImageRow]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """The similarities of the rows that were judged, and which rows those are."""
        positions = self._positions.get(attribute, {})
        found = [positions.get(row.key, -1) if row.usable else -1 for row in rows]
        judged = np.array(found, dtype=np.int64) >= 0
        if not judged.any():
            return np.empty((0, 2)), judged
        return self._values[attribute][np.array(found)[judged]], judged


def cells(folder: RunFolder) -> dict[tuple[str, str], Cell]:
    found: dict[tuple[str, str], Cell] = defaultdict(Cell)
    for row in image_rows(folder):
        found[row.model, row.concept].rows.append(row)
    return found


def rate_sample(
    cell: Cell,
    scores: PresenceScores,
    attribute: str,
    *,
    estimator: Estimator,
    logit_scale: float | None,
) -> RateSample:
    """The judged images of a cell, with the number of missing ones per prompt."""
    order = {t: i for i, t in enumerate(dict.fromkeys(row.template for row in cell.rows))}
    prompts = np.array([order[row.template] for row in cell.rows], dtype=np.int64)
    similarities, judged = scores.of(attribute, cell.rows)
    missing = np.bincount(prompts[~judged], minlength=len(order))
    if estimator == "mean" or logit_scale is None:
        shown = presence(similarities[:, 0], similarities[:, 1]).astype(np.float64)
    else:
        shown = presence_probability(
            similarities[:, 0], similarities[:, 1], logit_scale=logit_scale
        )
    return RateSample(shown, prompts[judged], missing)


def estimates_of(
    study: Study, folder: RunFolder, *, logit_scale: float | None
) -> tuple[dict[str, ItemSet], list[EstimateRow]]:
    """Every estimate the study asks for, verdicts adjusted for their number."""
    scores = PresenceScores(folder)
    found = cells(folder)
    sets = {f"{model} × {concept}": cell.item_set() for (model, concept), cell in found.items()}
    rows = [
        row
        for (model, concept), cell in found.items()
        for attribute in _attributes(study, concept)
        for estimator in study.estimators
        for row in _estimates(
            study,
            rate_sample(cell, scores, attribute, estimator=estimator, logit_scale=logit_scale),
            where={"model": model, "concept": concept, "attribute": attribute},
            estimator=estimator,
        )
    ]
    return sets, adjust(rows, study)


def _attributes(study: Study, concept: str) -> list[str]:
    return [attribute for name, attribute in study.pairs() if name == concept]


def _estimates(
    study: Study, sample: RateSample, *, where: Mapping[str, str], estimator: Estimator
) -> Iterator[EstimateRow]:
    common = {
        "estimator": estimator,
        "estimand": study.prompts.settled_estimand,
        "level": study.level,
    }
    reference = study.reference(where["concept"], where["attribute"])
    place = {**where, "estimator": estimator, "items": f"{where['model']} × {where['concept']}"}
    yield estimate_row(attribute_rate(sample, **common), place, reference)  # type: ignore[arg-type]
    if "parity_gap" in study.measures:
        yield estimate_row(parity_gap(sample, **common), place, None)  # type: ignore[arg-type]
    if "stereotype_score" in study.measures and reference is not None:
        result = stereotype_score(
            sample,
            _reference_rate(reference),
            zeta=study.zeta,
            **common,  # type: ignore[arg-type]
        )
        for estimate in (result.score, result.difference):
            row = estimate_row(estimate, place, reference)
            yield row.model_copy(
                update={"zeta": study.zeta, "fatal_reference": result.fatal_reference}
            )


def _reference_rate(reference: Reference) -> ReferenceRate:
    interval = None
    if reference.low is not None and reference.high is not None:
        interval = Interval(reference.low, reference.high, REFERENCE_LEVEL)
    return ReferenceRate(reference.value, interval)


def estimate_row(
    estimate: Estimate, place: Mapping[str, str], reference: Reference | None
) -> EstimateRow:
    shown = None
    if reference is not None:
        shown = ReferenceRow(**reference.model_dump(exclude={"concept", "attribute"}))
    return EstimateRow(
        measure=estimate.measure,
        version=estimate.version,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        level=estimate.level,
        n=estimate.n,
        n_missing=estimate.n_missing,
        estimand=estimate.estimand,
        method=estimate.method,
        verdict=estimate.verdict,
        p_value=estimate.p_value,
        p_less=estimate.p_less,
        bounds=estimate.bounds,
        notes=estimate.notes,
        reference=shown,
        **place,
    )


def adjust(rows: list[EstimateRow], study: Study) -> list[EstimateRow]:
    """Benjamini–Hochberg inside each family; a finding must survive it.

    Stereotype score and signed difference are one question and share one test of an excess. That
    of a shortfall (less than the world) is adjusted among its own kind.
    """
    families: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        if row.measure == "stereotype_score" and row.p_value is not None:
            families[_family(row, study)].append(i)
    adjusted = list(rows)
    alpha = (1 - study.level) / 2
    for family, scores in families.items():
        excess = benjamini_hochberg([float(rows[i].p_value or 0) for i in scores])
        shortfall = benjamini_hochberg([float(rows[i + 1].p_less or 0) for i in scores])
        for i, p, p_less in zip(scores, excess, shortfall, strict=True):
            for j in (i, i + 1):
                update: dict[str, object] = {"p_adjusted": p, "family": family}
                if rows[j].measure == "signed_difference":
                    update["p_less_adjusted"] = p_less
                if rows[j].verdict == "found" and p > alpha:
                    update["verdict"] = "undecided"
                    update["notes"] = (
                        *rows[j].notes,
                        "the interval alone says found; not after correction for many questions",
                    )
                adjusted[j] = rows[j].model_copy(update=update)
    return adjusted


def _family(row: EstimateRow, study: Study) -> str:
    scope = {
        "study": "all models",
        "model": row.model,
        "concept": f"{row.model} × {row.concept}",
    }[study.families]
    return f"stereotype_score, {row.estimator}, {scope}"
