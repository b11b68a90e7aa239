"""Synthetic runs that were traced, by a model that only pretends, with the project's own writers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from tropescope.engine.progress import NoProgress
from tropescope.features.rows import ImageRow, image_rows
from tropescope.features.traces import write_trace_tables
from tropescope.findings.curves import curves_of
from tropescope.generation.plan import Plan
from tropescope.generation.traces import plan_traces, trace_images
from tropescope.measures.spi import spi_curve
from tropescope.models.protocol import Outcome, Request
from tropescope.models.tracing import ImageTrace, TraceFacts, TraceRequest, WordTrace
from tropescope.models.tracing.result import scale_map

from synthetic_runs import SyntheticRun, make_run, planned_images, study_data


class Pretender:
    """Traces with a given shape: SPI rises or falls by attribute, pictures come out of noise."""

    def __init__(self, run: SyntheticRun, steps: int, guided: bool, other_pixels: bool) -> None:
        self._images = {row.key: row for row in image_rows(run.folder)}
        self._store = run.folder.images
        self._steps, self._guided, self._other = steps, guided, other_pixels

    def steps(self) -> int:
        return self._steps

    def close(self) -> None:
        pass

    def trace(
        self, requests: Sequence[Request], wanted: TraceRequest
    ) -> Iterator[tuple[Request, Outcome, ImageTrace]]:
        for request in requests:
            row = self._images[request.key]
            if row.path is None:
                blank = np.zeros((48, 48, 3), np.uint8)
                yield request, Outcome("filtered"), self._trace(request, wanted, blank)
                continue
            pixels = self._store.read(row.path)
            made = 255 - pixels if self._other and request.seed % 2 else pixels
            yield request, Outcome("generated", pixels=made), self._trace(request, wanted, pixels)

    def _trace(
        self, request: Request, wanted: TraceRequest, pixels: NDArray[np.uint8]
    ) -> ImageTrace:
        rng = np.random.default_rng(int(request.key[:8], 16))
        time = np.linspace(0, 1, self._steps)
        sizes = 0.12 * np.cos(np.arange(len(wanted.attributes)) * 1.3)[:, None]
        shape = np.exp(-(((time - 0.25) / 0.3) ** 2)) - 0.3 * time
        spread = 0.03 * rng.standard_normal((len(sizes), 1))
        spi = sizes * shape + spread + 0.01 * rng.standard_normal((len(sizes), self._steps))
        noise = rng.integers(0, 255, pixels.shape)
        shown = np.array(wanted.steps_to_show, np.int32)
        foreseen = [
            (pixels * min(1, 0.15 + time[s] * 1.1) + noise * max(0, 0.85 - time[s] * 1.1)).clip(0, 255)
            for s in shown
        ]  # fmt: skip
        words = wanted.words if wanted.words != "all" else tuple(request.prompt.split())
        return ImageTrace(
            facts=TraceFacts(
                "Pretended", "flow", "Euler", "latent", "flow", self._guided,
                attributes=tuple(a.name for a in wanted.attributes),
            ),
            timesteps=1000 * (1 - time), alpha=time, sigma=1 - time,
            spi_conditional=spi if len(sizes) else None,
            spi_guided=spi * (1.4 if self._guided else 1) if len(sizes) else None,
            shown_steps=shown if len(shown) else None,
            thumbnails=np.array(foreseen, np.uint8) if len(shown) else None,
            words=tuple(_word(word, i) for i, word in enumerate(words)),
        )  # fmt: skip


def _word(text: str, number: int) -> WordTrace:
    y, x = np.mgrid[0:24, 0:24] / 24
    centre = 0.25 + 0.5 * np.array([np.sin(number), np.cos(number)]) ** 2
    hill = np.exp(-((y - centre[0]) ** 2 + (x - centre[1]) ** 2) / 0.03)
    mean = np.full_like(hill, 0.01) if text == "a" else 0.01 + 0.002 * (number + 1) * hill
    return WordTrace(text, 0, (number + 1,), *scale_map(mean))


def make_traced_run(
    root: Path,
    *,
    steps: int = 12,
    guided: bool = True,
    other_pixels: bool = False,
    trace: dict[str, Any] | None = None,
    rate_of: Callable[[ImageRow, str], float] = lambda row, attribute: 0.5,
    outcome_of: Callable[[Any], tuple[str, str]] = lambda image: ("generated", ""),
    **study: Any,
) -> SyntheticRun:
    settings = {"images_per_prompt": 8, "show_steps": 6, "words": "all", **(trace or {})}
    data = study_data(trace=settings, **study)
    data["models"] = {
        name: {"adapter": "diffusers", "id": "nobody/nothing", "batch_size": entry["batch_size"]}
        for name, entry in data["models"].items()
    }
    data["judge"] = {"kind": "clip", "id": "nobody/nothing"}
    run = make_run(root, data, rate_of=rate_of, outcome_of=outcome_of)
    assert run.study.trace is not None
    model: Any = Pretender(run, steps, guided, other_pixels)
    plan = plan_traces(
        run.study.trace,
        run.study.attributes,
        Plan(tuple(planned_images(run.study))),
        dict.fromkeys(run.study.models, model),
        batch_sizes=dict.fromkeys(run.study.models, 2),
    )
    trace_images(
        plan, dict.fromkeys(run.study.models, model), folder=run.folder, progress=NoProgress()
    )
    write_trace_tables(plan, run.folder)
    # A rough band is band enough for a page.
    with mock.patch("tropescope.findings.curves.spi_curve", partial(spi_curve, resamples=100)):
        curves, foretold = curves_of(run.study, run.folder)
    estimates = (*run.results.estimates, *foretold)
    results = run.results.model_copy(update={"curves": tuple(curves), "estimates": estimates})
    run.folder.results.write_bytes(results.to_json())
    return SyntheticRun(run.folder, results, run.study)
