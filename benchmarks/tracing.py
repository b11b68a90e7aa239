"""What tracing costs: ratios of times measured in one run, and memory against the number of steps.

    python benchmarks/tracing.py                  # all parts, JSON
    python benchmarks/tracing.py spi attention    # some parts
    python benchmarks/tracing.py --size real      # the sizes of the real models, random weights

- spi: a traced run minus a plain one, over the bare cost of the same extra forward passes (the same
  batches, straight through the denoiser). 1.00 would be tracing for nothing.
- attention: a run with word attention over a plain run.
- memory: what a traced run adds to the peak, for few and for many steps.

Times are the least of several rounds in which the variants take turns. On the CPU they are the
seconds that this process computed, on one thread, so that other work on the machine does not count;
on CUDA they are wall time between synchronisations. Sizes: `moderate` on the CPU, `real` where
there is a CUDA device.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PROMPT = "a photo of a kestran person wearing a red hat"


# -- pipelines with random weights -------------------------------------------------------------


def text_model(kind: Any, tokenizer: Any, hidden: int, **changes: Any) -> Any:
    import tiny

    settings = {"hidden_size": hidden, "intermediate_size": 2 * hidden, "projection_dim": hidden,
                "num_attention_heads": hidden // 64, **changes}  # fmt: skip
    return kind(tiny._clip_text_config(tokenizer, **settings))


def unet_pipeline(real: bool) -> Any:
    from diffusers import DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextModel

    import tiny

    tokenizer = tiny.clip_tokenizer(77)
    channels = (320, 640, 1280, 1280) if real else (64, 128, 192)
    levels = len(channels) - 1
    text = 768 if real else 128
    unet = UNet2DConditionModel(
        sample_size=64 if real else 32,
        block_out_channels=channels,
        layers_per_block=2,
        cross_attention_dim=text,
        attention_head_dim=8 if real else 4,
        down_block_types=("CrossAttnDownBlock2D",) * levels + ("DownBlock2D",),
        up_block_types=("UpBlock2D",) + ("CrossAttnUpBlock2D",) * levels,
    )
    return StableDiffusionPipeline(
        vae=tiny._vae(block_out_channels=[8] * 4, down_block_types=["DownEncoderBlock2D"] * 4,
                      up_block_types=["UpDecoderBlock2D"] * 4),
        text_encoder=text_model(CLIPTextModel, tokenizer, text),
        tokenizer=tokenizer,
        unet=unet,
        scheduler=DDIMScheduler(beta_schedule="scaled_linear", clip_sample=False, steps_offset=1),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )  # fmt: skip


def flow_pipeline(real: bool) -> Any:
    from diffusers import (
        FlowMatchEulerDiscreteScheduler,
        SD3Transformer2DModel,
        StableDiffusion3Pipeline,
    )
    from transformers import CLIPTextModelWithProjection

    import tiny

    tokenizer = tiny.clip_tokenizer(77)
    first, second = (768, 1280) if real else (128, 128)
    transformer = SD3Transformer2DModel(
        sample_size=128 if real else 32,
        patch_size=2,
        in_channels=16,
        num_layers=24 if real else 6,
        attention_head_dim=64,
        num_attention_heads=24 if real else 4,
        caption_projection_dim=1536 if real else 256,
        joint_attention_dim=4096 if real else 256,
        pooled_projection_dim=first + second,
        out_channels=16,
        pos_embed_max_size=192,
    )
    return StableDiffusion3Pipeline(
        transformer=transformer,
        scheduler=FlowMatchEulerDiscreteScheduler(shift=3.0),
        vae=tiny._vae(channels=16, block_out_channels=[8] * 4, norm_num_groups=4,
                      down_block_types=["DownEncoderBlock2D"] * 4, shift_factor=0.06,
                      up_block_types=["UpDecoderBlock2D"] * 4, use_quant_conv=False,
                      use_post_quant_conv=False),
        text_encoder=text_model(CLIPTextModelWithProjection, tokenizer, first),
        tokenizer=tokenizer,
        text_encoder_2=text_model(CLIPTextModelWithProjection, tokenizer, second),
        tokenizer_2=tokenizer,
        text_encoder_3=None,
        tokenizer_3=None,
    )  # fmt: skip


def flux_pipeline(real: bool) -> Any:
    """Real width, fewer blocks: the ratio of attention to the rest is that of one block."""
    from diffusers import FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel
    from transformers import CLIPTextModel, T5Config, T5EncoderModel

    import tiny

    tokenizer, second = tiny.clip_tokenizer(77), tiny.t5_tokenizer(512)
    text = 4096 if real else 256
    transformer = FluxTransformer2DModel(
        in_channels=64,
        num_layers=4 if real else 2,
        num_single_layers=8 if real else 2,
        attention_head_dim=128 if real else 64,
        num_attention_heads=24 if real else 4,
        joint_attention_dim=text,
        pooled_projection_dim=768 if real else 128,
        axes_dims_rope=(16, 56, 56) if real else (16, 24, 24),
        guidance_embeds=True,
    )
    t5 = T5Config(vocab_size=len(second), d_model=text, d_kv=64, d_ff=64, num_layers=1, num_heads=4)
    return FluxPipeline(
        transformer=transformer,
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=tiny._vae(channels=16, block_out_channels=[8] * 4, norm_num_groups=4,
                      down_block_types=["DownEncoderBlock2D"] * 4, shift_factor=0.06,
                      up_block_types=["UpDecoderBlock2D"] * 4, use_quant_conv=False,
                      use_post_quant_conv=False),
        text_encoder=text_model(CLIPTextModel, tokenizer, 768 if real else 128),
        tokenizer=tokenizer,
        text_encoder_2=T5EncoderModel(t5),
        tokenizer_2=second,
    )  # fmt: skip


BUILD: dict[str, Callable[[bool], Any]] = {
    "unet": unet_pipeline,
    "flow": flow_pipeline,
    "flux": flux_pipeline,
}


def build(name: str, real: bool) -> Any:
    torch.manual_seed(0)
    with torch.device(DEVICE):
        pipeline = BUILD[name](real)
    for component in pipeline.components.values():
        if isinstance(component, torch.nn.Module):
            component.eval().requires_grad_(False)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline.to(DEVICE, torch.bfloat16 if DEVICE == "cuda" else torch.float32)


def generate(pipeline: Any, side: int, images: int, steps: int) -> None:
    with torch.inference_mode():
        pipeline(
            prompt=[PROMPT] * images,
            num_inference_steps=steps,
            guidance_scale=3.0,
            height=side,
            width=side,
            output_type="latent",
            generator=[torch.Generator("cpu").manual_seed(i) for i in range(images)],
        )


# -- timing ------------------------------------------------------------------------------------


def clock(call: Callable[[], Any]) -> float:
    if DEVICE == "cpu":
        started = time.process_time()
        call()
        return time.process_time() - started
    torch.cuda.synchronize()
    started = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def least(variants: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The least time of each variant; they take turns."""
    for call in variants.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, call in variants.items():
            times[name].append(clock(call))
    return {name: min(some) for name, some in times.items()}


def attributes(count: int) -> Any:
    from tropescope.models.tracing import AttributeTexts

    nouns = ["hat", "beard", "person", "doctor"]
    adjectives = ["red", "kestran", "velori", "photo"]
    pairs = [(n, a) for n in nouns for a in adjectives][:count]
    return tuple(AttributeTexts(f"{a} {n}", f"a {a} {n}", f"no {a} {n}") for n, a in pairs)


def bare_calls(pipeline: Any, side: int, images: int, steps: int, count: int) -> Callable[[], Any]:
    """The extra forward passes of a traced run alone: recorded once, then repeated."""
    from tropescope.models.tracing import TraceRequest, trace
    from tropescope.models.tracing.tracer import Tracer

    recorded: list[Any] = []
    original = Tracer._predict

    def recording(self: Any, inputs: Any) -> Any:
        recorded.append(inputs)
        return original(self, inputs)

    Tracer._predict = recording  # type: ignore[method-assign]
    with trace(pipeline, TraceRequest(attributes=attributes(count))):
        generate(pipeline, side, images, steps)
    Tracer._predict = original  # type: ignore[method-assign]
    denoiser = getattr(pipeline, "unet", None) or pipeline.transformer

    def run() -> None:
        with torch.inference_mode():
            for inputs in recorded:
                denoiser(**{**inputs, "return_dict": False})

    return run


def spi(name: str, pipeline: Any, side: int, images: int, rounds: int) -> dict[str, Any]:
    from tropescope.models.tracing import TraceRequest, trace

    found: dict[str, Any] = {}
    for count in (1, 4, 16):
        steps = {1: 8, 4: 4, 16: 2}[count] if DEVICE == "cuda" else {1: 4, 4: 2, 16: 1}[count]
        request = TraceRequest(attributes=attributes(count))

        def traced(request: Any = request, steps: int = steps) -> None:
            with trace(pipeline, request) as tracer:
                generate(pipeline, side, images, steps)
            tracer.result()

        times = least(
            {
                "plain": lambda steps=steps: generate(pipeline, side, images, steps),
                "traced": traced,
                "bare": bare_calls(pipeline, side, images, steps, count),
            },
            rounds,
        )
        found[f"K={count}"] = {
            "ratio": round((times["traced"] - times["plain"]) / times["bare"], 3),
            "ratio_of_whole": round(times["traced"] / (times["plain"] + times["bare"]), 3),
            **{f"{variant}_s": round(seconds, 3) for variant, seconds in times.items()},
        }
    return found


def attention(name: str, pipeline: Any, side: int, images: int, rounds: int) -> dict[str, Any]:
    from tropescope.models.tracing import TraceRequest, trace

    def traced(words: Any) -> Callable[[], None]:
        def run() -> None:
            with trace(pipeline, TraceRequest(words=words)) as tracer:
                generate(pipeline, side, images, 8)
            tracer.result()

        return run

    times = least(
        {
            "plain": lambda: generate(pipeline, side, images, 8),
            "two_words": traced(("hat", "person")),
            "all_words": traced("all"),
        },
        rounds,
    )
    return {
        "ratio_two_words": round(times["two_words"] / times["plain"], 3),
        "ratio_all_words": round(times["all_words"] / times["plain"], 3),
        "plain_s": round(times["plain"], 3),
    }


# -- memory ------------------------------------------------------------------------------------


def peak(name: str, real: bool, steps: int, traced: bool) -> float:
    """Peak in MiB of one run: of the device where there is one, else of this process."""
    from tropescope.models.tracing import TraceRequest, trace

    pipeline = build(name, real)
    side, images = SIDES[real][name], 2
    request = TraceRequest(attributes=attributes(2), words=("hat", "person"), extra_batch=2)
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
    if traced:
        with trace(pipeline, request):
            generate(pipeline, side, images, steps)
    else:
        generate(pipeline, side, images, steps)
    if DEVICE == "cuda":
        return float(torch.cuda.max_memory_allocated()) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory(name: str, real: bool) -> dict[str, Any]:
    found = {}
    for steps in (3, 15):
        peaks = {}
        for traced in (False, True):
            command = [sys.executable, __file__, "peak", "--model", name, "--steps", str(steps)]
            command += ["--size", "real" if real else "moderate"] + ["--traced"] * traced
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peaks[traced] = float(done.stdout)
        found[f"{steps}_steps_added_mib_per_image"] = round((peaks[True] - peaks[False]) / 2, 1)
    return found


SIDES = {
    True: {"unet": 512, "flow": 1024, "flux": 1024},
    False: {"unet": 128, "flow": 128, "flux": 128},
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=["spi", "attention", "memory"])
    parser.add_argument("--size", choices=["moderate", "real"])
    parser.add_argument("--model", choices=list(BUILD), action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--traced", action="store_true")
    options = parser.parse_args()
    real = (options.size or ("real" if DEVICE == "cuda" else "moderate")) == "real"
    if DEVICE == "cpu":
        torch.set_num_threads(1)
    if options.parts == ["peak"]:
        print(peak(options.model[0], real, options.steps, options.traced))
        return
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "size": "real" if real else "moderate",
        "images": options.images,
    }
    for name in options.model or list(BUILD):
        pipeline = build(name, real)
        denoiser = getattr(pipeline, "unet", None) or pipeline.transformer
        here: dict[str, Any] = {"parameters_m": round(denoiser.num_parameters() / 1e6, 1)}
        side = SIDES[real][name]
        if "spi" in options.parts:
            here["spi"] = spi(name, pipeline, side, options.images, options.rounds)
        if "attention" in options.parts:
            here["attention"] = attention(name, pipeline, side, options.images, options.rounds)
        del pipeline, denoiser
        if DEVICE == "cuda":
            torch.cuda.empty_cache()
        if "memory" in options.parts:
            here["memory"] = memory(name, real)
        found[name] = here
        print(json.dumps({name: here}), file=sys.stderr, flush=True)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
