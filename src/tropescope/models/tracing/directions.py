"""SPI while generating: many attributes in one run (OASIS, eqs. 9–11).

At every step each attribute needs two more predictions, for its presence and its absence text. All
of them, for all images, go through the model together in as few calls as memory allows; the texts
are encoded once. The pipeline's own prediction is never part of these batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import MeasureError
from tropescope.models.torch_device import import_torch
from tropescope.models.tracing.batches import FittingBatches
from tropescope.models.tracing.families import Family, TextCondition
from tropescope.models.tracing.request import AttributeTexts
from tropescope.models.tracing.step import Step


class Directions:
    """Per step: cos(v, δA) for the conditional and the guided velocity, and the length of δA."""

    def __init__(
        self,
        pipeline: Any,
        family: Family,
        attributes: tuple[AttributeTexts, ...],
        *,
        extra_batch: int,
        keep_velocities: bool,
    ) -> None:
        self._pipeline = pipeline
        self._family = family
        self._attributes = attributes
        self._batches = FittingBatches(extra_batch)
        self._condition: TextCondition | None = None
        self._values: list[Any] = []
        self._kept: list[NDArray[np.float32]] | None = [] if keep_velocities else None

    def on_step(self, step: Step) -> None:
        torch = import_torch()
        if self._condition is None:
            self._condition = self._encode(step)
        outputs = self._extra_outputs(step)
        present, absent = outputs[0::2], outputs[1::2]
        delta = step.level.difference(present, absent).flatten(2)
        length = _norm(delta)
        rows = []
        for output in (step.conditional, step.guided):
            velocity = step.level.velocity(step.sample, output).flatten(1)
            rows.append(_cosine(velocity, delta, length))
        self._values.append(torch.stack([*rows, length]))
        if self._kept is not None:
            velocities = step.level.velocity(step.sample, outputs)
            self._kept.append(velocities.cpu().numpy())

    def _encode(self, step: Step) -> TextCondition:
        """d+ and d− of all attributes, alternating."""
        texts = [text for a in self._attributes for text in (a.present, a.absent)]
        condition = self._family.encode(self._pipeline, texts, step.inputs)
        for i, attribute in enumerate(self._attributes):
            if condition.same(2 * i, 2 * i + 1):
                raise MeasureError(
                    f"attribute '{attribute.name}': the model reads {attribute.present!r} and "
                    f"{attribute.absent!r} as the same text, so there is no direction between them",
                    fix="put the difference nearer the beginning, and use words the model knows",
                )
        return condition

    def _extra_outputs(self, step: Step) -> Any:
        """The model's output for every text and image: (texts, images, …) in float32."""
        torch = import_torch()
        condition = self._condition
        assert condition is not None
        images = step.images
        count = len(condition.embeds) * images
        made = torch.empty((count, *step.sample.shape[1:]), device=step.sample.device)

        def call(start: int, stop: int) -> None:
            pairs = torch.arange(start, stop, device=step.sample.device)
            inputs = self._family.extra_inputs(
                step.inputs, condition, pairs % images, pairs // images, images
            )
            made[start:stop] = step.predict(inputs)

        self._batches.run(count, call)
        return made.reshape(-1, images, *step.sample.shape[1:])

    def of_image(self, image: int) -> dict[str, NDArray[np.float32]]:
        """SPI of one image as attributes × steps, and the raw velocities where kept."""
        torch = import_torch()
        values = torch.stack(self._values)[:, :, :, image].float().cpu().numpy()
        found = {
            "spi_conditional": values[:, 0].T.copy(),
            "spi_guided": values[:, 1].T.copy(),
            "direction_norm": values[:, 2].T.copy(),
        }
        if self._kept is not None:
            kept = np.stack(self._kept, axis=1)[:, :, image]
            found["velocity_present"] = kept[0::2]
            found["velocity_absent"] = kept[1::2]
        return found


def _precise(tensor: Any) -> Any:
    """Sums over a hundred thousand values are taken in double precision where the device can."""
    return tensor.double() if tensor.device.type in ("cpu", "cuda") else tensor


def _norm(delta: Any) -> Any:
    return _precise(delta).square().sum(-1).sqrt()


def _cosine(velocity: Any, delta: Any, length: Any) -> Any:
    """Eq. 11 for every attribute and image; 0/0, which is NaN, where a direction is zero."""
    product = (_precise(delta) * _precise(velocity)).sum(-1)
    return product / (length * _norm(velocity))
