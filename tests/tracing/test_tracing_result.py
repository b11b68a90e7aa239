"""What comes back: foreseen images, paired latents, and the files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from traced import EVERYTHING, FAMILIES, PROMPTS, close, traced

from tropescope.errors import MeasureError
from tropescope.measures.disparity_path import path_similarity
from tropescope.models.tracing import ImageTrace, TraceRequest, trace
from tropescope.models.tracing.result import scale_map

pytestmark = pytest.mark.models
Load = Callable[[str], Any]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_last_foreseen_image_is_the_image(pipelines: Load, family: str) -> None:
    images, result = traced(pipelines(family), TraceRequest(steps_to_show=(0, 1, -1)))
    for image, pixels in zip(result.images, images, strict=True):
        assert image.shown_steps.tolist() == [0, 1, 2]
        assert image.thumbnails.shape == (3, 16, 24, 3)
        assert np.abs(image.thumbnails[-1].astype(int) - (pixels * 255).round()).max() <= 1
        assert (image.thumbnails[0] != image.thumbnails[-1]).any()


def test_thumbnails_are_small(pipelines: Load) -> None:
    _, result = traced(pipelines("sd"), TraceRequest(steps_to_show=(1,), thumbnail_side=12))
    assert result.images[0].thumbnails.shape == (1, 8, 12, 3)


def test_half_precision_autoencoders_are_lifted_and_put_back(
    pipelines: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from tropescope.models.tracing.thumbnails import decode

    pipeline = pipelines("sdxl")
    seen: list[Any] = []
    original = pipeline.vae.decode

    def spying(latents: Any, **kwargs: Any) -> Any:
        seen.append(latents.dtype)
        return original(latents, **kwargs)

    monkeypatch.setattr(pipeline.vae, "decode", spying)
    weights = {n: w.clone() for n, w in pipeline.vae.state_dict().items()}
    pipeline.vae.to(dtype=torch.float16)
    try:
        decode(pipeline, torch.zeros(1, 4, 8, 8), side=64)
        assert seen == [torch.float32]
        assert pipeline.vae.dtype == torch.float16
    finally:
        pipeline.vae.to(dtype=torch.float32)
        pipeline.vae.load_state_dict(weights)


@pytest.mark.parametrize("family", ["sd", "flux"])
def test_paired_latents_are_compared_at_every_step(pipelines: Load, family: str) -> None:
    pipeline = pipelines(family)
    keep = TraceRequest(latents="float32")
    _, neutral = traced(pipeline, keep, prompts=[PROMPTS[0]] * 2, seeds=[1, 2])
    _, other = traced(pipeline, keep, prompts=[PROMPTS[1]] * 2, seeds=[1, 2])
    first = np.stack([image.latents for image in neutral.images])
    second = np.stack([image.latents for image in other.images])
    _, compared = traced(
        pipeline, TraceRequest(partner_latents=first), prompts=[PROMPTS[1]] * 2, seeds=[1, 2]
    )
    expected = path_similarity(first, second)
    close(np.stack([image.partner_cosine for image in compared.images]), expected, 1e-12)
    close(expected[:, 0], 1.0, 1e-12)
    assert (expected[:, -1] < 1 - 1e-7).all()
    assert compared.images[0].latents is None
    with pytest.raises(MeasureError, match="does not fit"):
        traced(pipeline, TraceRequest(partner_latents=first[:, :2]), prompts=[PROMPTS[1]] * 2)


def test_half_precision_latents_are_close_and_half_the_size(pipelines: Load) -> None:
    _, whole = traced(pipelines("sd"), TraceRequest(latents="float32"))
    _, half = traced(pipelines("sd"), TraceRequest(latents="float16"))
    one, other = whole.images[0].latents, half.images[0].latents
    assert one.nbytes == 2 * other.nbytes
    np.testing.assert_allclose(other, one, rtol=1e-3, atol=1e-3)


def test_files_give_back_the_trace_and_are_the_same_every_time(pipelines: Load) -> None:
    _, result = traced(pipelines("sd3"), EVERYTHING)
    _, again = traced(pipelines("sd3"), EVERYTHING)
    image = result.images[1]
    assert image.reduced() == again.images[1].reduced()
    assert image.raw() == again.images[1].raw()
    read = ImageTrace.load(image.reduced(), image.raw())
    for field in fields(ImageTrace):
        one, other = getattr(image, field.name), getattr(read, field.name)
        if isinstance(one, np.ndarray):
            assert np.array_equal(one, other), field.name
        elif field.name != "words":
            assert one == other
    for word, same in zip(image.words, read.words, strict=True):
        assert (word.text, word.occurrence, word.tokens) == (
            same.text,
            same.occurrence,
            same.tokens,
        )
        assert np.array_equal(word.scaled, same.scaled)
        assert (word.low, word.high) == (same.low, same.high)
    small = ImageTrace.load(image.reduced())
    assert small.latents is None
    assert np.array_equal(small.spi_guided, image.spi_guided)


def test_a_trace_of_nothing_still_knows_its_steps(pipelines: Load) -> None:
    _, result = traced(pipelines("flux"), TraceRequest())
    image = result.images[0]
    close(image.alpha + image.sigma, 1.0, 1e-6)
    assert image.raw() is None
    assert ImageTrace.load(image.reduced()).words == ()


def test_a_flat_map_has_no_range() -> None:
    scaled, low, high = scale_map(np.full((3, 4), 0.2, np.float32))
    assert not scaled.any()
    assert low == high


def test_bad_requests_are_refused() -> None:
    with pytest.raises(MeasureError, match="tuple of words"):
        TraceRequest(words="hat")  # type: ignore[arg-type]
    with pytest.raises(MeasureError, match="at least 1"):
        TraceRequest(extra_batch=0)


def test_two_traces_in_two_threads_do_not_hear_each_other(pipelines: Load) -> None:
    import threading

    import torch

    pipeline = pipelines("sd")
    done = threading.Event()
    outside: list[bool] = []

    def elsewhere() -> None:
        query = torch.randn(1, 1, 4, 8)
        mask = torch.zeros(4, 4)
        while not done.is_set():
            torch.nn.functional.scaled_dot_product_attention(query, query, query, attn_mask=mask)
            outside.append(True)

    thread = threading.Thread(target=elsewhere)
    with trace(pipeline, TraceRequest(words="all")) as tracer:
        thread.start()
        from traced import generate

        generate(pipeline)
        done.set()
        thread.join()
    assert outside
    assert len(tracer.result()) == 2
