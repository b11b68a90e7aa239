"""The path of the latents: kept where asked, or compared with a partner's at every step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import MeasureError
from tropescope.models.tracing.request import TraceRequest
from tropescope.models.tracing.step import Step


class LatentPath:
    """Latents before each step and after the last (S + 1), and raw velocities of the prompt.

    A partner is the trace of the paired prompt from the same seed (Stable Diffusion Exposed:
    disparity in the denoising space, per step). Its latents are given, so only one number per step
    is kept of this run.
    """

    def __init__(self, request: TraceRequest) -> None:
        self._dtype = None if request.latents == "none" else np.dtype(request.latents)
        self._partner = request.partner_latents
        self._velocities = request.raw_velocities
        self._latents: list[NDArray[Any]] = []
        self._cosines: list[NDArray[np.float64]] = []
        self._conditional: list[NDArray[np.float32]] = []
        self._guided: list[NDArray[np.float32]] = []

    @classmethod
    def wanted(cls, request: TraceRequest) -> bool:
        return (
            request.latents != "none"
            or request.partner_latents is not None
            or request.raw_velocities
        )

    def on_step(self, step: Step) -> None:
        self.on_latents(step.sample, step.index)
        if self._velocities:
            conditional = step.level.velocity(step.sample, step.conditional)
            guided = step.level.velocity(step.sample, step.guided)
            self._conditional.append(conditional.cpu().numpy())
            self._guided.append(guided.cpu().numpy())

    def on_latents(self, latents: Any, index: int) -> None:
        if self._dtype is None and self._partner is None:
            return
        values = latents.float().cpu().numpy()
        if self._dtype is not None:
            self._latents.append(values.astype(self._dtype))
        if self._partner is not None:
            self._cosines.append(self._compare(values, index))

    def _compare(self, values: NDArray[Any], index: int) -> NDArray[np.float64]:
        assert self._partner is not None
        expected = (len(values), values.shape[1:])
        given = (len(self._partner), self._partner.shape[2:])
        if given != expected or index >= self._partner.shape[1]:
            raise MeasureError(
                f"the partner's latents have the shape {self._partner.shape}, which does not fit "
                f"step {index} of {len(values)} images with latents {values.shape[1:]}",
                fix="trace the paired prompts with the same steps, size and number of images",
            )
        other = self._partner[:, index].reshape(len(values), -1).astype(np.float64)
        mine = values.reshape(len(values), -1).astype(np.float64)
        lengths = np.linalg.norm(mine, axis=1) * np.linalg.norm(other, axis=1)
        products = np.einsum("ij,ij->i", mine, other)
        cosines = np.full(len(mine), np.nan)
        np.divide(products, lengths, out=cosines, where=lengths > 0)
        return cosines

    def of_image(self, image: int) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {}
        if self._latents:
            found["latents"] = np.stack([values[image] for values in self._latents])
        if self._cosines:
            found["partner_cosine"] = np.array([values[image] for values in self._cosines])
        if self._velocities:
            found["velocity_conditional"] = np.stack([v[image] for v in self._conditional])
            found["velocity_guided"] = np.stack([v[image] for v in self._guided])
        return found
