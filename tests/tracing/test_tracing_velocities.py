"""Velocities against hand-written sampling loops; images and pipelines unchanged by tracing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from traced import EVERYTHING, FAMILIES, PROMPTS, close, generate, guided_settings, state, traced

from tropescope.errors import ModelError
from tropescope.models.tracing import TraceRequest, trace

pytestmark = pytest.mark.models
Load = Callable[[str], Any]
RAW = TraceRequest(latents="float32", raw_velocities=True)


@pytest.mark.parametrize("guided", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_images_are_the_same_to_the_bit_and_the_pipeline_is_restored(
    pipelines: Load, family: str, guided: bool
) -> None:
    pipeline = pipelines(family)
    settings = guided_settings(family, guided)
    plain = generate(pipeline, **settings)
    before = state(pipeline)
    images, result = traced(pipeline, EVERYTHING, **settings)
    assert np.array_equal(plain, images)
    assert state(pipeline) == before
    assert np.array_equal(plain, generate(pipeline, **settings))
    assert result.facts.guided == guided
    assert len(result) == 2


@pytest.mark.parametrize("family", ["sd", "sd3", "flux"])
@pytest.mark.parametrize("where", ["step", "layer"])
def test_the_pipeline_is_restored_after_an_error(
    pipelines: Load, family: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = pipelines(family)
    before = state(pipeline)

    def fail(*args: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError

    settings: dict[str, Any] = {}
    if where == "step":
        settings["callback_on_step_end"] = fail
    else:
        denoiser = pipeline.unet if family == "sd" else pipeline.transformer
        layer = next(m for n, m in denoiser.named_modules() if n.endswith(("attn2", "attn")))
        monkeypatch.setattr(layer.processor.__class__, "__call__", fail)
    with pytest.raises(ZeroDivisionError), trace(pipeline, EVERYTHING) as tracer:
        generate(pipeline, **settings)
    monkeypatch.undo()
    assert state(pipeline) == before
    with pytest.raises(ModelError, match="no result"):
        tracer.result()


def noise(shape: tuple[int, ...]) -> Any:
    import torch

    return torch.cat(
        [
            torch.randn((1, *shape), generator=torch.Generator().manual_seed(i))
            for i in range(len(PROMPTS))
        ]
    )


def unet_loop(pipeline: Any, encoded: Any, negative: Any, added: Any) -> tuple[Any, ...]:
    """Sampling by hand, the conditional and unconditional predictions in calls of their own."""
    import torch

    scheduler = pipeline.scheduler
    scheduler.set_timesteps(3)
    x = noise((4, 8, 12)) * scheduler.init_noise_sigma
    latents, conditional, guided = [x], [], []
    with torch.no_grad():
        for i, t in enumerate(scheduler.timesteps):
            scaled = scheduler.scale_model_input(x, t)
            c = pipeline.unet(scaled, t, encoded, added_cond_kwargs=added[0]).sample
            u = pipeline.unet(scaled, t, negative, added_cond_kwargs=added[1]).sample
            g = u + 3.0 * (c - u)
            if hasattr(scheduler, "sigmas"):
                alpha, sigma = 1.0, scheduler.sigmas[i]
            else:
                kept = scheduler.alphas_cumprod[t]
                alpha, sigma = kept.sqrt(), (1 - kept).sqrt()
            for noise_, found in ((c, conditional), (g, guided)):
                found.append(noise_ - (x - sigma * noise_) / alpha)
            x = scheduler.step(g, t, x, return_dict=False)[0]
            latents.append(x)
    return latents, conditional, guided


def compare(pipeline: Any, by_hand: tuple[Any, ...], **settings: Any) -> None:
    _, result = traced(pipeline, RAW, **settings)
    names = ("latents", "velocity_conditional", "velocity_guided")
    for name, expected in zip(names, by_hand, strict=True):
        values = np.stack([tensor.numpy() for tensor in expected], axis=1)
        for image, wanted in zip(result.images, values, strict=True):
            close(getattr(image, name), wanted, 2e-5 * float(np.abs(wanted).max()))


def test_stable_diffusion_against_a_loop_by_hand(pipelines: Load) -> None:
    pipeline = pipelines("sd")
    encoded = pipeline.encode_prompt(PROMPTS, "cpu", 1, True)
    compare(pipeline, unet_loop(pipeline, *encoded, (None, None)))


def test_stable_diffusion_xl_against_a_loop_by_hand(pipelines: Load) -> None:
    import torch

    pipeline = pipelines("sdxl")
    encoded, negative, pooled, negative_pooled = pipeline.encode_prompt(PROMPTS)
    ids = torch.tensor([[16.0, 24, 0, 0, 16, 24]]).repeat(2, 1)
    added = [{"text_embeds": p, "time_ids": ids} for p in (pooled, negative_pooled)]
    compare(pipeline, unet_loop(pipeline, encoded, negative, added))


@pytest.mark.parametrize("family", ["sd3", "sd3-without-t5"])
def test_stable_diffusion_3_against_a_loop_by_hand(pipelines: Load, family: str) -> None:
    import torch

    pipeline = pipelines(family)
    encoded, negative, pooled, negative_pooled = pipeline.encode_prompt(
        PROMPTS, None, None, max_sequence_length=256
    )
    pipeline.scheduler.set_timesteps(3)
    x = noise((4, 8, 12))
    latents, conditional, guided = [x], [], []
    with torch.no_grad():
        for i, t in enumerate(pipeline.scheduler.timesteps):
            c = pipeline.transformer(x, encoded, pooled, t.expand(2)).sample
            u = pipeline.transformer(x, negative, negative_pooled, t.expand(2)).sample
            g = u + 3.0 * (c - u)
            sigma, following = pipeline.scheduler.sigmas[i : i + 2]
            for flow, found in ((c, conditional), (g, guided)):
                foreseen, foreseen_noise = x - sigma * flow, x + (1 - sigma) * flow
                found.append(foreseen_noise - foreseen)
            x = x + (following - sigma) * g
            latents.append(x)
    compare(pipeline, (latents, conditional, guided))


@pytest.mark.parametrize("guided", [True, False])
def test_flux_against_a_loop_by_hand(pipelines: Load, guided: bool) -> None:
    import torch

    pipeline = pipelines("flux")
    settings = guided_settings("flux", guided)
    encoded, pooled, ids = pipeline.encode_prompt(PROMPTS)
    negative, negative_pooled, _ = pipeline.encode_prompt(["a beard", "a hat"])
    rows, columns = torch.meshgrid(torch.arange(4), torch.arange(6), indexing="ij")
    places = torch.stack([torch.zeros_like(rows), rows, columns], -1).reshape(-1, 3).float()
    grid = noise((1, 8, 12))
    x = grid.reshape(2, 1, 4, 2, 6, 2).permute(0, 2, 4, 1, 3, 5).reshape(2, 24, 4)
    sigmas = [*np.linspace(1, 1 / 3, 3), 0.0]
    shared = {"txt_ids": ids, "img_ids": places}
    latents, found = [x], ([], [])
    with torch.no_grad():
        for sigma, following in pairwise(sigmas):
            t = torch.full((2,), sigma)
            c = pipeline.transformer(x, encoded, pooled, t, **shared).sample
            g = c
            if guided:
                u = pipeline.transformer(x, negative, negative_pooled, t, **shared).sample
                g = u + 3.0 * (c - u)
            for flow, kept in zip((c, g), found, strict=True):
                kept.append(flow)
            x = x + (following - sigma) * g
            latents.append(x)
    compare(pipeline, (latents, *found), **settings)


def test_layer_skipping_guidance_only_enters_the_guided_velocity(pipelines: Load) -> None:
    pipeline = pipelines("sd3")
    settings = {"skip_guidance_layers": [0], "num_inference_steps": 4,
                "skip_layer_guidance_start": 0.0, "skip_layer_guidance_stop": 1.0}  # fmt: skip
    plain = generate(pipeline, **settings)
    images, result = traced(pipeline, EVERYTHING, **settings)
    _, without = traced(pipeline, EVERYTHING, num_inference_steps=4)
    assert np.array_equal(plain, images)
    # The first step is not skipped, the second starts from the same latent.
    one, other = result.images[0], without.images[0]
    close(one.velocity_conditional[1], other.velocity_conditional[1])
    assert np.abs(one.velocity_guided[1] - other.velocity_guided[1]).max() > 1e-4


def test_a_batch_of_three_equals_three_single_images(pipelines: Load) -> None:
    prompts = [PROMPTS[0], PROMPTS[1], "a portrait of a velori doctor"]
    for family in ("sd", "sd3", "flux"):
        _, together = traced(pipelines(family), EVERYTHING, prompts=prompts, seeds=[3, 4, 5])
        for i, prompt in enumerate(prompts):
            _, alone = traced(pipelines(family), EVERYTHING, prompts=[prompt], seeds=[3 + i])
            one, other = together.images[i], alone.images[0]
            # Without noise-to-signal amplification: a model's rounding, scaled by 1/alpha.
            scale = float(np.abs(other.velocity_guided).max())
            close(one.velocity_guided, other.velocity_guided, 1e-5 * scale)
            close(one.spi_guided, other.spi_guided, 1e-3)
            assert [w.text for w in one.words] == [w.text for w in other.words]
            for word, same in zip(one.words, other.words, strict=True):
                close(word.attention(), same.attention(), 1e-6 + 2e-5 * (word.high - word.low))
            assert np.abs(one.thumbnails.astype(int) - other.thumbnails).max() <= 1


def test_several_images_per_prompt_follow_the_order_of_the_images(pipelines: Load) -> None:
    import torch

    pipeline = pipelines("sd")
    with trace(pipeline, EVERYTHING) as tracer:
        pipeline(
            PROMPTS, num_images_per_prompt=2, num_inference_steps=2, height=16, width=16,
            generator=[torch.Generator().manual_seed(i) for i in range(4)],
        )  # fmt: skip
    result = tracer.result()
    assert [trace_.words[0].text for trace_ in result.images] == ["a"] * 4
    assert [len(trace_.words) for trace_ in result.images] == [6, 6, 7, 7]


def test_a_trace_covers_one_call(pipelines: Load) -> None:
    pipeline = pipelines("sd")
    with pytest.raises(ModelError, match="one call"), trace(pipeline, RAW):
        generate(pipeline)
        generate(pipeline)
    with trace(pipeline, RAW) as tracer:
        pass
    with pytest.raises(ModelError, match="no result"):
        tracer.result()
