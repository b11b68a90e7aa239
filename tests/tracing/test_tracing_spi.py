"""SPI from a traced run against SPI recomputed by hand from what the run recorded."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from traced import (
    BEARD,
    EVERYTHING,
    FAMILIES,
    HAT,
    PROMPTS,
    close,
    generate,
    guided_settings,
    traced,
)

from tropescope.errors import MeasureError, ModelError
from tropescope.measures.spi import spi
from tropescope.models.tracing import AttributeTexts, TraceRequest, trace

pytestmark = pytest.mark.models
Load = Callable[[str], Any]
SPI = TraceRequest(attributes=(HAT, BEARD), latents="float32", raw_velocities=True)


@pytest.fixture(scope="module")
def louder(pipelines: Load) -> Load:
    """Pipelines whose text matters more: random weights hardly listen, and a direction of length
    1e-3 is only known to 1e-4 in float32."""
    import torch

    loud: dict[str, Any] = {}
    parts = ("context_embedder", "attn2.to_", "text_embedder", "add_embedding")

    def load(family: str) -> Any:
        if family not in loud:
            loud[family] = copy.deepcopy(pipelines(family))
            denoiser = getattr(loud[family], "unet", None) or loud[family].transformer
            with torch.no_grad():
                for name, weight in denoiser.named_parameters():
                    if any(part in name for part in parts):
                        weight.mul_(16 if family.startswith("sdxl") else 4)
        return loud[family]

    return load


def velocity_by_hand(pipeline: Any, image: Any, step: int, text: str, noisy: Any) -> Any:
    """v(x_t, t, text) from the recorded latent: the model called directly, one image, one text."""
    import torch

    t = torch.tensor(image.timesteps[step])
    alpha, sigma = float(image.alpha[step]), float(image.sigma[step])
    x = torch.from_numpy(noisy)[None]
    name = image.facts.family
    with torch.no_grad():
        if name == "sd":
            encoded = pipeline.encode_prompt([text], "cpu", 1, False)[0]
            output = pipeline.unet(x, t, encoded).sample
        elif name == "sdxl":
            encoded, _, pooled, _ = pipeline.encode_prompt(
                [text], do_classifier_free_guidance=False
            )
            added = {"text_embeds": pooled, "time_ids": torch.tensor([[16.0, 24, 0, 0, 16, 24]])}
            scaled = x / (sigma**2 + 1) ** 0.5
            output = pipeline.unet(scaled, t, encoded, added_cond_kwargs=added).sample
        elif name == "sd3":
            encoded, _, pooled, _ = pipeline.encode_prompt(
                [text], None, None, do_classifier_free_guidance=False
            )
            output = pipeline.transformer(x, encoded, pooled, t[None].float()).sample
        else:
            encoded, pooled, ids = pipeline.encode_prompt([text])
            rows, columns = torch.meshgrid(torch.arange(4), torch.arange(6), indexing="ij")
            places = torch.stack([torch.zeros_like(rows), rows, columns], -1).reshape(-1, 3).float()
            output = pipeline.transformer(
                x, encoded, pooled, t[None].float() / 1000, img_ids=places, txt_ids=ids
            ).sample
    if name in ("sd3", "flux"):
        return output[0].numpy()
    return (output - (x - sigma * output) / alpha)[0].numpy()


@pytest.mark.parametrize("family", FAMILIES)
def test_spi_equals_spi_recomputed_from_the_recorded_latents(louder: Load, family: str) -> None:
    pipeline = louder(family)
    _, result = traced(pipeline, SPI, **guided_settings(family, True))
    for prompt, image in zip(PROMPTS, result.images, strict=True):
        for step in range(3):
            noisy = image.latents[step]
            own = velocity_by_hand(pipeline, image, step, prompt, noisy)
            scale = float(np.abs(own).max())
            close(image.velocity_conditional[step], own, 1e-5 * scale)
            for k, attribute in enumerate((HAT, BEARD)):
                present = velocity_by_hand(pipeline, image, step, attribute.present, noisy)
                absent = velocity_by_hand(pipeline, image, step, attribute.absent, noisy)
                expected = spi(own[None], (present - absent)[None])[0]
                close(image.spi_conditional[k, step], expected)
                guided = image.velocity_guided[step]
                close(image.spi_guided[k, step], spi(guided[None], (present - absent)[None])[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_spi_is_the_pure_function_of_the_recorded_velocities(louder: Load, family: str) -> None:
    _, result = traced(louder(family), SPI)
    for image in result.images:
        for k in range(2):
            delta = image.velocity_present[k] - image.velocity_absent[k]
            close(image.spi_conditional[k], spi(image.velocity_conditional, delta))
            close(image.spi_guided[k], spi(image.velocity_guided, delta))
            swapped = image.velocity_absent[k] - image.velocity_present[k]
            assert (spi(image.velocity_guided, swapped) == -spi(image.velocity_guided, delta)).all()
            lengths = np.linalg.norm(delta.reshape(3, -1), axis=1)
            np.testing.assert_allclose(image.direction_norm[k], lengths, rtol=1e-4)


@pytest.mark.parametrize("family", ["sd", "sdxl", "sd3", "flux"])
def test_without_guidance_both_velocities_are_one(pipelines: Load, family: str) -> None:
    _, result = traced(pipelines(family), SPI, **guided_settings(family, False))
    assert not result.facts.guided
    for image in result.images:
        assert np.array_equal(image.spi_conditional, image.spi_guided)


def test_the_size_of_extra_batches_does_not_matter(louder: Load) -> None:
    pipeline = louder("sd3")
    _, whole = traced(pipeline, SPI)
    _, single = traced(pipeline, replace(SPI, extra_batch=1))
    _, odd = traced(pipeline, replace(SPI, extra_batch=3))
    for one, other, third in zip(whole.images, single.images, odd.images, strict=True):
        close(one.spi_guided, other.spi_guided)
        close(one.spi_guided, third.spi_guided)


def test_extra_predictions_are_halved_until_they_fit(
    louder: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    pipeline = louder("sd")
    _, whole = traced(pipeline, SPI)
    sizes: list[int] = []
    forward = pipeline.unet.forward

    def small(sample: Any, *args: Any, **kwargs: Any) -> Any:
        sizes.append(len(sample))
        if len(sample) > 4:
            raise torch.OutOfMemoryError("out of memory")
        return forward(sample, *args, **kwargs)

    monkeypatch.setattr(pipeline.unet, "forward", small)
    _, halved = traced(pipeline, SPI)
    assert sizes == [4, 8, 4, 4, 4, 4, 4, 4, 4, 4]
    for one, other in zip(whole.images, halved.images, strict=True):
        close(one.spi_guided, other.spi_guided)

    def never(sample: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs["encoder_hidden_states"].shape[0] != 4 or sizes[-1:] == [0]:
            raise torch.OutOfMemoryError("out of memory")
        sizes.append(0)
        return forward(sample, *args, **kwargs)

    monkeypatch.setattr(pipeline.unet, "forward", never)
    with pytest.raises(torch.OutOfMemoryError), trace(pipeline, replace(SPI, extra_batch=3)):
        generate(pipeline)


def test_flux_with_a_guidance_embedding(pipelines: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from diffusers import FluxTransformer2DModel

    pipeline = pipelines("flux")
    torch.manual_seed(0)
    transformer = FluxTransformer2DModel.from_config(
        pipeline.transformer.config, guidance_embeds=True
    ).eval()
    monkeypatch.setattr(pipeline, "transformer", transformer)
    plain = generate(pipeline)
    images, result = traced(pipeline, SPI)
    assert np.array_equal(plain, images)
    assert np.isfinite(result.images[0].spi_conditional).all()


def test_texts_without_a_difference_are_refused(pipelines: Load) -> None:
    with pytest.raises(MeasureError, match="no direction"):
        AttributeTexts("hat", "a red hat", " a  red hat")
    long = "a photo of a person with a red hat of a doctor with a beard "
    cut = AttributeTexts("end", long + "a kestran", long + "a velori")
    pipeline = pipelines("sd")
    with (
        pytest.raises(MeasureError, match=r"reads .* as the same text"),
        trace(pipeline, TraceRequest(attributes=(cut,))),
    ):
        generate(pipeline)
    with pytest.raises(MeasureError, match="same name"):
        TraceRequest(attributes=(HAT, HAT))


def test_a_model_without_a_text_condition_is_refused(pipelines: Load) -> None:
    from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel

    unet = UNet2DModel(
        sample_size=8, block_out_channels=(8, 8), norm_num_groups=4,
        down_block_types=("DownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    unconditional = DDPMPipeline(unet, DDPMScheduler())
    with pytest.raises(ModelError, match="no text condition"), trace(unconditional, SPI):
        pass


def test_a_denoiser_that_caches_between_steps_is_refused(
    pipelines: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = pipelines("flux")
    monkeypatch.setattr(pipeline.transformer, "_cache_config", object())
    with pytest.raises(ModelError, match="reuses results"), trace(pipeline, SPI):
        pass


def test_steps_to_show_must_exist(pipelines: Load) -> None:
    pipeline = pipelines("sd")
    with (
        pytest.raises(ModelError, match="this run has 3 steps"),
        trace(pipeline, TraceRequest(steps_to_show=(3,))),
    ):
        generate(pipeline)


def test_many_parts_at_once_change_nothing_of_one(pipelines: Load) -> None:
    pipeline = pipelines("sd3")
    _, everything = traced(pipeline, EVERYTHING)
    _, alone = traced(pipeline, TraceRequest(attributes=(HAT, BEARD)))
    assert np.array_equal(everything.images[1].spi_guided, alone.images[1].spi_guided)
    assert alone.images[0].latents is None
    assert alone.images[0].words == ()
