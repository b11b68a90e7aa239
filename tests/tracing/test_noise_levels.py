"""Every supported scheduler against its own idea of the finished image; all others refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from traced import EVERYTHING, generate, traced

from tropescope.errors import ModelError
from tropescope.models.tracing import TraceRequest, trace
from tropescope.models.tracing.noise_levels import SUPPORTED, NoiseLevel, read_schedule

pytestmark = pytest.mark.models
Load = Callable[[str], Any]
OPTIONS = {
    "DDIMScheduler": {"clip_sample": False},
    "DDPMScheduler": {"clip_sample": False},
    "PNDMScheduler": {"skip_prk_steps": True},
    "DEISMultistepScheduler": {"algorithm_type": "deis"},
}
CASES = [
    (name, prediction) for name, (_, predictions) in SUPPORTED.items() for prediction in predictions
]


def made(name: str, prediction: str, **more: Any) -> Any:
    import diffusers

    options = {**OPTIONS.get(name, {}), **more}
    if not name.startswith("Flow"):
        options["prediction_type"] = prediction
    if prediction == "flow_prediction" and not name.startswith("Flow"):
        options.setdefault("use_flow_sigmas", True)
    return getattr(diffusers, name)(**options)


def own_forecast(scheduler: Any, output: Any, sample: Any, stepped: Any, t: Any) -> Any:
    """x̂0 as the scheduler itself computes it; PNDM never does."""
    name = type(scheduler).__name__
    if hasattr(stepped, "pred_original_sample"):
        return stepped.pred_original_sample
    if name == "LCMScheduler":
        skip, out = scheduler.get_scalings_for_boundary_condition_discrete(t)
        return (stepped.denoised - skip * sample) / out
    if name in ("DPMSolverMultistepScheduler", "UniPCMultistepScheduler"):
        return scheduler.model_outputs[-1]
    if name == "DEISMultistepScheduler":  # it keeps the noise
        alpha, sigma = scheduler._sigma_to_alpha_sigma_t(scheduler.sigmas[scheduler.step_index - 1])
        return (sample - sigma * scheduler.model_outputs[-1]) / alpha
    if name.startswith("FlowMatch"):
        return sample - t / 1000 * output
    assert name == "PNDMScheduler"
    return None


@pytest.mark.parametrize(("name", "prediction"), CASES)
def test_forecasts_agree_with_the_scheduler(name: str, prediction: str) -> None:
    import torch

    scheduler = made(name, prediction)
    schedule = read_schedule(scheduler)
    scheduler.set_timesteps(6)
    assert schedule.steps() == 6
    stream = torch.Generator().manual_seed(0)
    sample = torch.randn((2, 3, 4, 4), generator=stream) * getattr(scheduler, "init_noise_sigma", 1)
    seen = []
    for t in scheduler.timesteps:
        if hasattr(scheduler, "scale_model_input"):
            scheduler.scale_model_input(sample, t)
        output = torch.randn(sample.shape, generator=stream)
        corrector = schedule.is_corrector()
        level = schedule.level(t)
        foreseen, foreseen_noise = level.foreseen(sample, output)
        scale = float(sample.abs().max() + foreseen.abs().max())
        again = level.alpha * foreseen + level.sigma * foreseen_noise
        torch.testing.assert_close(again, sample, rtol=0, atol=1e-5 * scale)
        velocity = level.velocity(sample, output)
        torch.testing.assert_close(velocity, foreseen_noise - foreseen, rtol=0, atol=1e-5 * scale)
        keywords = {"generator": stream} if name in ("LCMScheduler", "DDPMScheduler") else {}
        stepped = scheduler.step(output, t, sample, **keywords)
        own = own_forecast(scheduler, output, sample, stepped, t)
        if not corrector:
            seen.append(float(t))
            if own is not None:
                torch.testing.assert_close(foreseen, own, rtol=0, atol=1e-4 * scale)
        sample = stepped.prev_sample
    assert len(seen) == 6
    assert all(a > b for a, b in pairwise(seen))


def test_the_forecast_is_the_image_of_a_perfect_model() -> None:
    """Given the exact output for known x0 and ε, every parametrisation returns both."""
    rng = np.random.default_rng(0)
    x0, noise = rng.normal(size=(2, 50))
    for alpha, sigma in ((0.8, 0.6), (1.0, 3.0), (0.7, 0.3)):
        x = alpha * x0 + sigma * noise
        root = (alpha**2 + sigma**2) ** 0.5
        outputs = {
            "epsilon": noise,
            "sample": x0,
            "v_prediction": (alpha * noise - sigma * x0) / root,
        }
        if alpha + sigma == 1:
            outputs["flow_prediction"] = noise - x0
        for prediction, output in outputs.items():
            level = NoiseLevel(alpha, sigma, prediction)  # type: ignore[arg-type]
            found, found_noise = level.foreseen(x, output)
            np.testing.assert_allclose(found, x0, atol=1e-12)
            np.testing.assert_allclose(found_noise, noise, atol=1e-12)
            np.testing.assert_allclose(level.velocity(x, output), noise - x0, atol=1e-12)
            other = output + 0.1
            direct = level.velocity(x, output) - level.velocity(x, other)
            np.testing.assert_allclose(level.difference(output, other), direct, atol=1e-12)


def test_a_step_without_signal_or_noise_is_refused() -> None:
    with pytest.raises(ModelError, match="pure noise"):
        NoiseLevel(0.0, 1.0, "epsilon").coefficients()
    with pytest.raises(ModelError, match="without noise"):
        NoiseLevel(1.0, 0.0, "sample").coefficients()
    assert NoiseLevel(0.0, 1.0, "v_prediction").coefficients() == (0.0, -1.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("name", "family"),
    [("HeunDiscreteScheduler", "sd"), ("PNDMScheduler", "sd"), ("FlowMatchHeunDiscreteScheduler", "sd3"),
     ("EulerAncestralDiscreteScheduler", "sd"), ("DPMSolverMultistepScheduler", "sd")],
)  # fmt: skip
def test_calls_are_mapped_to_steps(
    pipelines: Load, monkeypatch: pytest.MonkeyPatch, name: str, family: str
) -> None:
    import diffusers

    pipeline = pipelines(family)
    options = OPTIONS.get(name, {})
    scheduler = getattr(diffusers, name).from_config(pipeline.scheduler.config, **options)
    monkeypatch.setattr(pipeline, "scheduler", scheduler)
    plain = generate(pipeline, num_inference_steps=4)
    images, result = traced(pipeline, EVERYTHING, num_inference_steps=4)
    assert np.array_equal(plain, images)
    image = result.images[0]
    assert len(image.timesteps) == 4
    assert (np.diff(image.timesteps) < 0).all()
    assert image.spi_guided.shape == (2, 4)
    assert image.latents.shape[0] == 5
    assert result.facts.scheduler == name
    # The last foreseen image is the image: these samplers end on it.
    if name != "PNDMScheduler":
        last = (images[0] * 255).round().astype(int)
        assert np.abs(image.thumbnails[-1].astype(int) - last).max() <= 1


@pytest.mark.parametrize(
    "name", ["KDPM2DiscreteScheduler", "DPMSolverSDEScheduler", "EDMEulerScheduler", "TCDScheduler"]
)
def test_other_schedulers_are_refused(
    pipelines: Load, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    class Other:
        config: dict[str, Any] = {}

    Other.__name__ = name
    pipeline = pipelines("sd")
    monkeypatch.setattr(pipeline, "scheduler", Other())
    with (
        pytest.raises(ModelError, match=f"cannot be traced with {name}"),
        trace(pipeline, TraceRequest()),
    ):
        pass


def test_unusual_settings_are_refused() -> None:
    cases = [
        made("PNDMScheduler", "epsilon", skip_prk_steps=False),
        made("FlowMatchEulerDiscreteScheduler", "", invert_sigmas=True),
        made("EulerAncestralDiscreteScheduler", "sample"),
        made("DPMSolverMultistepScheduler", "v_prediction", use_flow_sigmas=True),
        made("UniPCMultistepScheduler", "flow_prediction", use_flow_sigmas=False),
    ]
    for scheduler in cases:
        with pytest.raises(ModelError, match="cannot be traced"):
            read_schedule(scheduler)
