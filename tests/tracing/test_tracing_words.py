"""Word attention against a plain, slow reference that builds the whole matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from traced import FAMILIES, PROMPTS, close, generate, guided_settings, traced

from tropescope.errors import ModelError, PromptError
from tropescope.models.tracing import TraceRequest, trace
from tropescope.models.tracing import attention as attention_module
from tropescope.models.tracing.words import find_words, token_positions

import tiny

pytestmark = pytest.mark.models
Load = Callable[[str], Any]
ALL = TraceRequest(words="all")


class Matrices:
    """Records softmax(QKᵀ/√d) of every attention call of the denoiser, whole, in call order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, denoiser: Any) -> None:
        import torch

        self.found: list[Any] = []
        inside = []
        original = torch.nn.functional.scaled_dot_product_attention

        def recording(query: Any, key: Any, value: Any, **kwargs: Any) -> Any:
            if inside:
                scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
                self.found.append(torch.softmax(scores, dim=-1).detach())
            return original(query, key, value, **kwargs)

        monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", recording)
        denoiser.register_forward_pre_hook(lambda *_: inside.append(1))
        denoiser.register_forward_hook(lambda *_: inside.clear())


def reference_maps(
    family: str, matrices: list[Any], *, images: int, rows: int, text: int, steps: int
) -> Any:
    """Mean over heads and layers of the resized, clamped mean over steps: (images, text, h, w)."""
    import torch

    layers: list[list[Any]] = []
    per_step = len(matrices) // steps
    for layer in range(per_step):
        calls = [matrices[step * per_step + layer] for step in range(steps)]
        shape = calls[0].shape
        torch.testing.assert_close(calls[0].sum(-1), torch.ones(shape[:-1]))
        if family in ("sd", "sdxl"):
            if shape[-1] != text:
                continue  # self-attention
            parts = [call[-images:] for call in calls]
        elif family == "flux":
            parts = [call[-images:, :, text:, :text] for call in calls]
        else:
            parts = [call[-images:, :, :-text, -text:] for call in calls]
        layers.append(parts)
    maps = []
    for parts in layers:
        mean = torch.stack(parts).mean(0)
        height = rows if mean.shape[2] == rows * rows * 3 // 2 else rows // 2
        width = mean.shape[2] // height
        for head in range(mean.shape[1]):
            flat = mean[:, head].transpose(1, 2).reshape(images, text, height, width)
            resized = torch.nn.functional.interpolate(
                flat, size=(16, 24), mode="bicubic", align_corners=False
            )
            maps.append(resized.clamp(min=0))
    return torch.stack(maps).mean(0).numpy()


@pytest.mark.parametrize("guided", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_maps_equal_the_plain_reference(
    pipelines: Load, family: str, guided: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = pipelines(family)
    settings = guided_settings(family, guided)
    denoiser = pipeline.unet if hasattr(pipeline, "unet") else pipeline.transformer
    with monkeypatch.context() as patch:
        hooks = (denoiser._forward_pre_hooks.copy(), denoiser._forward_hooks.copy())
        recorder = Matrices(patch, denoiser)
        generate(pipeline, **settings)
        denoiser._forward_pre_hooks, denoiser._forward_hooks = hooks
    matrices = recorder.found
    if family == "flux" and guided:  # the negative prompt's calls come second
        layers = 2
        matrices = [m for i, m in enumerate(matrices) if i // layers % 2 == 0]
    text = {"sd": 16, "sdxl": 16, "flux": 512}.get(family, 16 + 256)
    expected = reference_maps(
        family, matrices, images=2, rows=4 if family == "flux" else 8, text=text, steps=3
    )
    _, result = traced(pipeline, ALL, **settings)
    for image, maps, prompt in zip(result.images, expected, PROMPTS, strict=True):
        assert [w.text for w in image.words] == prompt.split()
        for word in image.words:
            mean = maps[list(word.tokens)].mean(axis=0)
            assert word.low == pytest.approx(mean.min(), abs=1e-6)
            assert word.high == pytest.approx(mean.max(), abs=1e-6)
            close(word.attention(), mean, 1e-6 + 1e-5 * (word.high - word.low))
            normal = (mean - mean.min()) / (mean.max() - mean.min())
            close(word.normalised(), normal, 1e-3)


def test_probabilities_of_all_keys_sum_to_one() -> None:
    import torch

    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.float32, torch.bfloat16):
        query, key, value = (
            torch.randn((2, 3, n, 8), generator=generator).to(dtype) for n in (40, 21, 21)
        )
        output, logsumexp = attention_module.attend(query, key, value, {})
        plain = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        assert torch.equal(output, plain)
        found = attention_module.probabilities(query, key, logsumexp, 8**-0.5)
        exact = torch.softmax(query.float() @ key.float().transpose(-1, -2) * 8**-0.5, -1)
        tolerance = 1e-6 if dtype == torch.float32 else 2e-3
        torch.testing.assert_close(found, exact, rtol=0, atol=tolerance)
        torch.testing.assert_close(found.sum(-1), torch.ones(2, 3, 40), rtol=0, atol=10 * tolerance)


@pytest.mark.parametrize("family", ["sd", "sd3", "flux"])
def test_without_a_fused_kernel_the_maps_are_the_same(
    pipelines: Load, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = pipelines(family)
    images, fused = traced(pipeline, ALL)
    monkeypatch.setattr(attention_module, "_fused", lambda *_: None)
    monkeypatch.setattr(attention_module, "_verified", {})
    monkeypatch.setattr(attention_module, "_CHUNK", 5000)
    again, plain = traced(pipeline, ALL)
    assert np.array_equal(images, again)
    for one, other in zip(fused.images, plain.images, strict=True):
        for word, same in zip(one.words, other.words, strict=True):
            close(word.attention(), same.attention(), 1e-6)


def test_a_kernel_that_rounds_differently_is_never_used(
    pipelines: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = pipelines("sd")
    plain = generate(pipeline)
    fused = attention_module._fused

    def off(*args: Any) -> Any:
        output, logsumexp = fused(*args)
        return output * (1 + 1e-6), logsumexp

    monkeypatch.setattr(attention_module, "_fused", off)
    monkeypatch.setattr(attention_module, "_verified", {})
    images, _ = traced(pipeline, ALL)
    assert np.array_equal(plain, images)
    assert set(attention_module._verified.values()) == {False}


def test_dual_attention_layers_without_text_are_left_alone(
    pipelines: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from diffusers import SD3Transformer2DModel

    pipeline = pipelines("sd3")
    torch.manual_seed(0)
    transformer = SD3Transformer2DModel.from_config(
        pipeline.transformer.config, dual_attention_layers=(0,), qk_norm="rms_norm"
    ).eval()
    monkeypatch.setattr(pipeline, "transformer", transformer)
    plain = generate(pipeline)
    images, result = traced(pipeline, ALL)
    assert np.array_equal(plain, images)
    assert result.facts.attention_layers == 2
    for word in result.images[0].words:
        assert 0 <= word.low < word.high < 1


def test_patches_larger_than_one_latent_pixel(
    pipelines: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    from diffusers import SD3Transformer2DModel

    pipeline = pipelines("sd3")
    transformer = SD3Transformer2DModel.from_config(
        {**pipeline.transformer.config, "patch_size": 2}
    ).eval()
    monkeypatch.setattr(pipeline, "transformer", transformer)
    _, result = traced(pipeline, TraceRequest(words=("person",)), prompts=[PROMPTS[0]])
    assert result.images[0].words[0].scaled.shape == (16, 24)


def test_other_attention_processors_are_refused(pipelines: Load) -> None:
    from diffusers.models.attention_processor import AttnProcessor

    pipeline = pipelines("sd")
    before = dict(pipeline.unet.attn_processors)
    pipeline.unet.set_attn_processor(AttnProcessor())
    try:
        with pytest.raises(ModelError, match="AttnProcessor"), trace(pipeline, ALL):
            generate(pipeline)
    finally:
        pipeline.unet.set_attn_processor(before)


def test_words_must_be_in_the_prompt_and_prompts_must_be_texts(pipelines: Load) -> None:
    pipeline = pipelines("sd")
    with (
        pytest.raises(PromptError, match="'turban' is to be traced"),
        trace(pipeline, TraceRequest(words=("turban",))),
    ):
        generate(pipeline)
    import torch

    with pytest.raises(ModelError, match="not called with `prompt`"), trace(pipeline, ALL):
        pipeline(prompt_embeds=torch.zeros(1, 16, 32), guidance_scale=1.0, num_inference_steps=1)
    with pytest.raises(ModelError, match="`prompt_2` differs"), trace(pipelines("sdxl"), ALL):
        generate(pipelines("sdxl"), prompt_2=["a hat", "a beard"])
    long = "a photo of a person with a red hat of a doctor with a beard a kestran"
    with (
        pytest.raises(PromptError, match="cut off before it"),
        trace(pipeline, TraceRequest(words=("kestran",))),
    ):
        generate(pipeline, prompts=[long])


def test_words_split_over_many_tokens_and_repeated_words() -> None:
    prompt = "a Xyzzy photo, a xyzzy hat"
    words = find_words(prompt, ("xyzzy", "photo", "xyzzy hat"))
    assert [(w.text, w.occurrence) for w in words] == [
        ("Xyzzy", 1), ("photo", 1), ("xyzzy", 2), ("xyzzy hat", 1),
    ]  # fmt: skip
    tokenizer = tiny.clip_tokenizer(32)
    ids = tokenizer(prompt).input_ids
    tokens = token_positions(words, prompt, [(tokenizer, 0, 32)])
    assert [len(t) for t in tokens] == [5, 1, 5, 6]
    assert tokenizer.convert_ids_to_tokens([ids[i] for i in tokens[0]]) == [
        "x",
        "y",
        "z",
        "z",
        "y</w>",
    ]
    assert tokenizer.convert_ids_to_tokens([ids[i] for i in tokens[1]]) == ["photo</w>"]
    assert set(tokens[0]).isdisjoint(tokens[2])
    assert set(tokens[2]) < set(tokens[3])
    everything = {
        t
        for some in token_positions(find_words(prompt), prompt, [(tokenizer, 0, 32)])
        for t in some
    }
    assert 0 not in everything
    assert max(everything) < len(ids) - 1


def test_t5_tokens_are_found_after_clips() -> None:
    prompt = "a red  hat"
    words = find_words(prompt)
    clip, t5 = tiny.clip_tokenizer(), tiny.t5_tokenizer()
    tokens = token_positions(words, prompt, [(clip, 0, 16), (clip, 0, 16), (t5, 16, 32)])
    pieces = t5.convert_ids_to_tokens(t5(prompt).input_ids)
    assert [pieces[i - 16] for some in tokens for i in some if i >= 16] == ["▁a", "▁red", "▁hat"]


def test_tokenizers_that_split_differently_are_refused() -> None:
    prompt = "a red hat"
    parts = [(tiny.clip_tokenizer(), 0, 16), (tiny.t5_tokenizer(), 0, 16)]
    with pytest.raises(ModelError, match="split the prompt differently"):
        token_positions(find_words(prompt), prompt, parts)


def test_memory_does_not_grow_with_steps(pipelines: Load) -> None:
    pipeline = pipelines("sd")
    kept = []
    for steps in (2, 8):
        with trace(pipeline, ALL) as tracer:
            generate(pipeline, num_inference_steps=steps)
            kept.append({n: s.shape for n, s in tracer._heat._sums.items()})
    assert kept[0] == kept[1]


def test_large_images_are_mapped_on_a_bounded_grid(pipelines: Load) -> None:
    request = TraceRequest(words=("person",), map_side=12)
    _, result = traced(pipelines("sd"), request, prompts=[PROMPTS[0]])
    assert result.images[0].words[0].scaled.shape == (8, 12)
