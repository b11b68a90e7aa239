"""From traces to findings: mean SPI over the steps, and how well early steps foretell the image."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tropescope.features.rows import ImageRow
from tropescope.features.traces import SPI, TraceRow, trace_rows
from tropescope.findings.estimating import PresenceScores, cells, estimate_row
from tropescope.findings.results import CurveRow, EstimateRow
from tropescope.measures.spi import VERSION, early_spi, foretelling, spi_curve
from tropescope.store.folder import RunFolder
from tropescope.store.tables import table_batches
from tropescope.study.definition import Study

Velocity = Literal["conditional", "guided"]
VELOCITIES: tuple[Velocity, ...] = ("conditional", "guided")
#: Fewer traced images of one prompt say too little about how well its early steps foretell.
FORETELL_FROM = 20


class SpiTable:
    """SPI by attribute and image: one row of steps each."""

    def __init__(self, folder: RunFolder) -> None:
        self._rows: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        self.sigmas: dict[str, list[float]] = {}
        sigmas: dict[str, dict[int, float]] = defaultdict(dict)
        for batch in table_batches(folder.table(SPI)):
            for row in batch.to_pylist():
                pair = (row["spi_conditional"], row["spi_guided"])
                self._rows[row["attribute"], row["key"]].append(pair)
                sigmas[row["key"]][row["step"]] = row["sigma"]
        self.sigmas = {key: [by[i] for i in sorted(by)] for key, by in sigmas.items()}

    def curves(
        self, attribute: str, keys: list[str], velocity: Velocity
    ) -> tuple[NDArray[np.float64], list[str]]:
        """Images × steps, and the keys of the rows."""
        column = VELOCITIES.index(velocity)
        found = [key for key in keys if (attribute, key) in self._rows]
        values = [[pair[column] for pair in self._rows[attribute, key]] for key in found]
        return np.array(values, dtype=np.float64), found


def curves_of(study: Study, folder: RunFolder) -> tuple[list[CurveRow], list[EstimateRow]]:
    """Every SPI curve of a traced run, and the estimates that follow from them."""
    if study.trace is None:
        return [], []
    table = SpiTable(folder)
    groups: dict[tuple[str, str], list[TraceRow]] = defaultdict(list)
    for row in trace_rows(folder):
        groups[row.model, row.concept].append(row)
    curves: list[CurveRow] = []
    estimates: list[EstimateRow] = []
    scores = PresenceScores(folder)
    found = cells(folder)
    judged = {
        (model, concept): {row.key: row for row in cell.rows if row.usable}
        for (model, concept), cell in found.items()
    }
    for (model, concept), rows in groups.items():
        for attribute in study.attributes:
            keys = list(dict.fromkeys(row.key for row in rows))
            for velocity in VELOCITIES:
                values, kept = table.curves(attribute, keys, velocity)
                if not len(values) or not np.isfinite(values).any():
                    continue
                curve = spi_curve(values, n_missing=len(keys) - len(kept), level=study.level)
                curves.append(
                    CurveRow(
                        measure="spi",
                        version=VERSION,
                        model=model,
                        concept=concept,
                        attribute=attribute,
                        velocity=velocity,
                        sigma=tuple(table.sigmas[kept[0]]),
                        value=_numbers(curve.band.mean),
                        low=_numbers(curve.band.low),
                        high=_numbers(curve.band.high),
                        level=study.level,
                        n=curve.n,
                        n_missing=curve.n_missing,
                        method="mean over images; simultaneous band by max-t bootstrap",
                        notes=curve.notes,
                        items=tuple(kept),
                    )
                )
            estimates += _foretold(study, table, scores, judged[model, concept], rows, attribute)
    return curves, estimates


def _numbers(values: NDArray[np.float64]) -> tuple[float | None, ...]:
    return tuple(round(float(v), 6) if np.isfinite(v) else None for v in values)


def _foretold(
    study: Study,
    table: SpiTable,
    scores: PresenceScores,
    judged: Mapping[str, ImageRow],
    rows: list[TraceRow],
    attribute: str,
) -> Iterator[EstimateRow]:
    """AUC of early SPI for the judge's label, prompt by prompt where there are enough images."""
    by_template: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.key in judged:
            by_template[row.template].append(row.key)
    for template, keys in by_template.items():
        curves, kept = table.curves(attribute, list(dict.fromkeys(keys)), "conditional")
        if len(kept) < FORETELL_FROM:
            continue
        similarities, known = scores.of(attribute, [judged[key] for key in kept])
        early = early_spi(curves)[known]
        shows = similarities[:, 0] > similarities[:, 1]
        estimate = foretelling(early, shows, level=study.level)
        place = {
            "model": rows[0].model,
            "concept": rows[0].concept,
            "attribute": attribute,
            "estimator": template,
            "items": f"{rows[0].model} × {rows[0].concept}",
        }
        yield estimate_row(estimate, place, None)
