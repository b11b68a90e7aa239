"""Every prediction as (x̂0, ε̂): which schedulers are understood, and how noisy a step's input is.

A scheduler keeps its sample as x_t = α·x0 + σ·ε. From α, σ and the kind of prediction follow the
foreseen image x̂0 and noise ε̂, and from them one velocity for all families, v = ε̂ − x̂0, the
velocity of a straight flow. "Velocity" differs between parametrisations even in its sign, so the
model's own output is never compared directly.

Supported schedulers, and the space their sample lives in (`SUPPORTED` is the table):

| scheduler                                      | space | predictions               |
|------------------------------------------------|-------|---------------------------|
| DDIM, DDPM, LCM                                | vp    | epsilon, v, sample        |
| PNDM (PLMS; not with Runge-Kutta warm-up)      | vp    | epsilon, v                |
| DPMSolverMultistep, UniPC, DEIS                | vp or flow | epsilon, v, sample, flow |
| EulerDiscrete, EulerAncestral, Heun, LMS       | ve    | epsilon, v, sample        |
| FlowMatchEuler, FlowMatchHeun                  | flow  | flow                      |

vp: α² + σ² = 1. ve: α = 1; such schedulers scale the model's input, which is why the sample is
taken from the scheduler and not from the model's input. flow: α = 1 − σ. Any other scheduler is
refused: wrong numbers would look like right ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tropescope.errors import ModelError

Space = Literal["vp", "ve", "flow"]
Prediction = Literal["epsilon", "v_prediction", "sample", "flow_prediction"]

_DIFFUSION: tuple[Prediction, ...] = ("epsilon", "v_prediction", "sample")

SUPPORTED: dict[str, tuple[Space, tuple[Prediction, ...]]] = {
    "DDIMScheduler": ("vp", _DIFFUSION),
    "DDPMScheduler": ("vp", _DIFFUSION),
    "LCMScheduler": ("vp", _DIFFUSION),
    "PNDMScheduler": ("vp", ("epsilon", "v_prediction")),
    "DPMSolverMultistepScheduler": ("vp", (*_DIFFUSION, "flow_prediction")),
    "UniPCMultistepScheduler": ("vp", (*_DIFFUSION, "flow_prediction")),
    "DEISMultistepScheduler": ("vp", (*_DIFFUSION, "flow_prediction")),
    "EulerDiscreteScheduler": ("ve", _DIFFUSION),
    "EulerAncestralDiscreteScheduler": ("ve", ("epsilon", "v_prediction")),
    "HeunDiscreteScheduler": ("ve", _DIFFUSION),
    "LMSDiscreteScheduler": ("ve", _DIFFUSION),
    "FlowMatchEulerDiscreteScheduler": ("flow", ("flow_prediction",)),
    "FlowMatchHeunDiscreteScheduler": ("flow", ("flow_prediction",)),
}

_SOLVERS = ("DPMSolverMultistepScheduler", "UniPCMultistepScheduler", "DEISMultistepScheduler")
_BY_TIMESTEP = ("DDIMScheduler", "DDPMScheduler", "LCMScheduler", "PNDMScheduler")


@dataclass(frozen=True, slots=True)
class NoiseLevel:
    """How noisy the sample of one step is, and what the model's output means there."""

    alpha: float
    sigma: float
    prediction: Prediction

    def coefficients(self) -> tuple[float, float, float, float]:
        """(a, b, c, d) with x̂0 = a·sample + b·output and ε̂ = c·sample + d·output."""
        alpha, sigma = self.alpha, self.sigma
        if self.prediction == "flow_prediction":
            return 1.0, -sigma, 1.0, 1 - sigma
        if self.prediction == "v_prediction":
            square = alpha**2 + sigma**2
            root = square**0.5
            return alpha / square, -sigma / root, sigma / square, alpha / root
        if self.prediction == "epsilon":
            if alpha < 1e-6:
                raise ModelError(
                    "at the first step the sample is pure noise, so a noise-predicting model "
                    "foresees no image there",
                    fix="use a scheduler without rescale_betas_zero_snr",
                )
            return 1 / alpha, -sigma / alpha, 0.0, 1.0
        if sigma < 1e-6:
            raise ModelError("a step without noise has no predicted noise")
        return 0.0, 1.0, 1 / sigma, -alpha / sigma

    def foreseen(self, sample: Any, output: Any) -> tuple[Any, Any]:
        """(x̂0, ε̂)."""
        a, b, c, d = self.coefficients()
        return a * sample + b * output, c * sample + d * output

    def velocity(self, sample: Any, output: Any) -> Any:
        a, b, c, d = self.coefficients()
        return (c - a) * sample + (d - b) * output

    def difference(self, output: Any, other: Any) -> Any:
        """velocity(x, output) − velocity(x, other): the sample cancels, and its rounding too."""
        _, b, _, d = self.coefficients()
        return (d - b) * (output - other)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A supported scheduler, read without changing it."""

    scheduler: Any
    space: Space
    prediction: Prediction

    @property
    def name(self) -> str:
        return type(self.scheduler).__name__

    def is_corrector(self) -> bool:
        """Whether the coming model call only refines a step whose first call is already traced.

        Heun evaluates every step twice, PLMS its first one; the second evaluation is at another
        point than x_t and belongs to the same step.
        """
        if "Heun" in self.name:
            return not self.scheduler.state_in_first_order
        return self.name == "PNDMScheduler" and self.scheduler.counter == 1

    def steps(self) -> int:
        calls = len(self.scheduler.timesteps)
        if "Heun" in self.name:
            return (calls + 1) // 2
        return max(1, calls - 1) if self.name == "PNDMScheduler" else calls

    def level(self, timestep: Any) -> NoiseLevel:
        """The noise of the sample that is about to be given to `step`."""
        if self.name in _BY_TIMESTEP:
            kept = float(self.scheduler.alphas_cumprod[int(timestep)])
            return NoiseLevel(kept**0.5, (1 - kept) ** 0.5, self.prediction)
        sigma = float(self.scheduler.sigmas[self._index(timestep)])
        if self.space == "flow":
            return NoiseLevel(1 - sigma, sigma, self.prediction)
        if self.space == "ve":
            return NoiseLevel(1.0, sigma, self.prediction)
        alpha = 1 / (sigma**2 + 1) ** 0.5
        return NoiseLevel(alpha, sigma * alpha, self.prediction)

    def _index(self, timestep: Any) -> int:
        """The step index, as `step` itself will initialise it."""
        if self.scheduler.step_index is not None:
            return int(self.scheduler.step_index)
        if self.scheduler.begin_index is not None:
            return int(self.scheduler.begin_index)
        if not isinstance(timestep, int | float):
            timestep = timestep.to(self.scheduler.timesteps.device)
        return int(self.scheduler.index_for_timestep(timestep))


def read_schedule(scheduler: Any) -> Schedule:
    """The schedule, or a clear refusal."""
    name = type(scheduler).__name__
    if name not in SUPPORTED:
        raise ModelError(
            f"velocities cannot be traced with {name}",
            fix=f"use one of: {', '.join(sorted(SUPPORTED))}",
        )
    space, predictions = SUPPORTED[name]
    config = scheduler.config
    if space == "flow":
        if config.get("invert_sigmas"):
            raise ModelError(f"{name} with invert_sigmas cannot be traced")
        return Schedule(scheduler, space, "flow_prediction")
    prediction = config.get("prediction_type", "epsilon")
    if prediction not in predictions:
        raise ModelError(
            f"{name} with prediction_type '{prediction}' cannot be traced",
            fix=f"supported with it: {', '.join(predictions)}",
        )
    if name == "PNDMScheduler" and not config.get("skip_prk_steps"):
        raise ModelError(
            "PNDMScheduler with Runge-Kutta warm-up cannot be traced",
            fix="use another scheduler, such as DDIMScheduler",
        )
    if name in _SOLVERS and config.get("use_flow_sigmas"):
        space = "flow"
    if (space == "flow") != (prediction == "flow_prediction"):
        raise ModelError(
            f"{name} with prediction_type '{prediction}' and "
            f"use_flow_sigmas={space == 'flow'} cannot be traced"
        )
    return Schedule(scheduler, space, prediction)
