"""Predisposition: the finished image that a step foresees (OASIS, §4.6).

x̂0 at the chosen steps, from the prediction that the sampler used, decoded by the model's own
autoencoder. For a flow this is x_t − σ·v, the paper's x̂_T; for other models the x̂0 of
`noise_levels`. Decoding waits until the pipeline's call is over: nothing of its state or random
numbers is touched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import ModelError
from tropescope.models.torch_device import import_torch
from tropescope.models.tracing.batches import FittingBatches
from tropescope.models.tracing.step import Step


class Foreseen:
    """Collects x̂0 at the chosen steps, then decodes."""

    def __init__(self, steps: tuple[int, ...], side: int) -> None:
        self._asked = steps
        self._side = side
        self._wanted: set[int] = set()
        self._latents: dict[int, Any] = {}
        self._images: NDArray[np.uint8] | None = None

    def begin(self, total: int) -> None:
        for step in self._asked:
            if not -total <= step < total:
                raise ModelError(
                    f"step {step} is to be shown, but this run has {total} steps",
                    fix=f"choose steps between 0 and {total - 1}",
                )
        self._wanted = {step % total for step in self._asked}

    def on_step(self, step: Step) -> None:
        if step.index in self._wanted:
            self._latents[step.index] = step.level.foreseen(step.sample, step.guided)[0]

    def finish(self, pipeline: Any, family: Any, size: tuple[int, int]) -> None:
        torch = import_torch()
        if not self._latents:
            return
        latents = [family.to_grid(self._latents[s], size) for s in sorted(self._latents)]
        stacked = torch.cat(latents)
        self._images = decode(pipeline, stacked, side=self._side)
        self._latents = dict.fromkeys(self._latents)

    def of_image(self, image: int) -> dict[str, NDArray[Any]]:
        if self._images is None:
            return {}
        steps = np.array(sorted(self._latents), dtype=np.int32)
        per_step = self._images.reshape(len(steps), -1, *self._images.shape[1:])
        return {"shown_steps": steps, "thumbnails": per_step[:, image].copy()}


def decode(pipeline: Any, latents: Any, *, side: int) -> NDArray[np.uint8]:
    """Latents to small RGB pictures whose longer side is at most `side`."""
    torch = import_torch()
    vae = pipeline.vae
    # Some autoencoders overflow in half precision; the pipelines, too, lift them for decoding.
    lifted = vae.dtype == torch.float16 and vae.config.get("force_upcast")
    made: list[NDArray[np.uint8]] = []

    def call(start: int, stop: int) -> None:
        scaled = _unscaled(latents[start:stop], vae.config).to(vae.device, vae.dtype)
        pixels = vae.decode(scaled, return_dict=False)[0].float()
        pixels = _small((pixels / 2 + 0.5).clamp(0, 1), side)
        bytes_ = (pixels * 255).round().to(torch.uint8)
        made.append(bytes_.permute(0, 2, 3, 1).cpu().numpy())

    try:
        if lifted:
            vae.to(dtype=torch.float32)
        with torch.inference_mode():
            FittingBatches(16).run(len(latents), call)
    finally:
        if lifted:
            vae.to(dtype=torch.float16)
    return np.concatenate(made)


def _unscaled(latents: Any, config: Any) -> Any:
    torch = import_torch()
    mean, std = config.get("latents_mean"), config.get("latents_std")
    if mean is not None and std is not None:
        shape = (1, -1, 1, 1)
        mean = torch.tensor(mean, device=latents.device).view(shape)
        std = torch.tensor(std, device=latents.device).view(shape)
        return latents * std / config["scaling_factor"] + mean
    return latents / config["scaling_factor"] + (config.get("shift_factor") or 0.0)


def _small(pixels: Any, side: int) -> Any:
    torch = import_torch()
    height, width = pixels.shape[-2:]
    scale = min(1.0, side / max(height, width))
    if scale == 1.0:
        return pixels
    size = (max(1, round(height * scale)), max(1, round(width * scale)))
    interpolate = torch.nn.functional.interpolate
    return interpolate(pixels, size=size, mode="bilinear", antialias=True).clamp(0, 1)
