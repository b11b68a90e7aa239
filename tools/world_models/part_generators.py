"""The two text-to-image models, each trained together with its own text encoders.

Both see exactly what their pipeline's `encode_prompt` returns for the caption, and the empty prompt
for one caption in ten, as the pipelines encode it for guidance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from data import Source
from loop import train
from networks import build_flow, build_unet
from torch import Tensor
from torch.nn import functional

Keep = Callable[[dict[str, Any]], None]


def noise_schedule() -> Any:
    """Zero signal at the last step, velocities predicted, steps counted from the end."""
    from diffusers import DDIMScheduler

    return DDIMScheduler(
        num_train_timesteps=1000,
        beta_schedule="scaled_linear",
        beta_start=0.00085,
        beta_end=0.012,
        prediction_type="v_prediction",
        timestep_spacing="trailing",
        rescale_betas_zero_snr=True,
        clip_sample=False,
        set_alpha_to_one=True,
    )


def maybe_compiled(module: Any, part: dict[str, Any], device: str) -> Any:
    if part.get("compile") and device.startswith("cuda"):
        return torch.compile(module, dynamic=False)
    return module


def train_unet(
    source: Source, vae: Any, *, scale: float, keep: Keep
) -> tuple[dict[str, Any], dict[str, Any]]:
    part = source.settings["unet"]
    torch.manual_seed(part["seed"])
    models = build_unet(source.sizes, part, vae.config.latent_channels)
    models = {name: model.to(source.device) for name, model in models.items()}
    if source.device.startswith("cuda"):
        models["unet"].to(memory_format=torch.channels_last)
    unet, text = maybe_compiled(models["unet"], part, source.device), models["text_encoder"]
    kept = noise_schedule().alphas_cumprod.to(source.device)
    signal, noise_share = kept.sqrt(), (1 - kept).sqrt()

    def step() -> Tensor:
        ids, x = source.prompts_and_pictures(part["batch"])
        with torch.no_grad():
            z = vae.encode(x).latent_dist.sample().float() * vae.config.scaling_factor
        t = torch.randint(len(kept), (len(z),), device=source.device)
        a, s = signal[t][:, None, None, None], noise_share[t][:, None, None, None]
        noise = torch.randn_like(z)
        states = text(ids).last_hidden_state
        guess = unet(a * z + s * noise, t, states).sample
        return functional.mse_loss(guess.float(), a * noise - s * z)

    facts = train(
        "unet",
        list(models.values()),
        [step],
        part,
        device=source.device,
        scale=scale,
        keep=lambda: keep(models),
    )
    return models, facts


def flow_condition(one: Any, two: Any, ids: Tensor, zero_rows: int) -> tuple[Tensor, Tensor]:
    """What StableDiffusion3Pipeline.encode_prompt returns without a third encoder."""
    first = one(ids, output_hidden_states=True)
    second = two(ids, output_hidden_states=True)
    states = torch.cat([first.hidden_states[-2], second.hidden_states[-2]], -1)
    if zero_rows:
        states = functional.pad(states, (0, 0, 0, zero_rows))
    return states, torch.cat([first.text_embeds, second.text_embeds], -1)


def train_flow(
    source: Source, vae: Any, *, scale: float, keep: Keep
) -> tuple[dict[str, Any], dict[str, Any]]:
    part = source.settings["flow"]
    torch.manual_seed(part["seed"])
    models = build_flow(source.sizes, part, vae.config.latent_channels)
    models = {name: model.to(source.device) for name, model in models.items()}
    compiled = maybe_compiled(models["transformer"], part, source.device)
    one, two = models["text_encoder"], models["text_encoder_2"]
    factor, shift = vae.config.scaling_factor, vae.config.shift_factor

    def step_with(transformer: Any, batch: int, zero_rows: int) -> Tensor:
        ids, x = source.prompts_and_pictures(batch)
        with torch.no_grad():
            z = (vae.encode(x).latent_dist.sample().float() - shift) * factor
        even = torch.rand(batch, device=source.device)
        middle = torch.sigmoid(torch.randn(batch, device=source.device) + 0.3)
        t = torch.where(torch.arange(batch, device=source.device) % 2 == 0, even, middle)
        noise = torch.randn_like(z)
        mixed = torch.lerp(z, noise, t[:, None, None, None])
        states, pooled = flow_condition(one, two, ids, zero_rows)
        guess = transformer(
            hidden_states=mixed,
            timestep=t * 1000,
            encoder_hidden_states=states,
            pooled_projections=pooled,
        ).sample
        return functional.mse_loss(guess.float(), noise - z)

    def plain() -> Tensor:
        return step_with(compiled, part["batch"], 0)

    def padded() -> Tensor:
        return step_with(models["transformer"], max(1, part["batch"] // 4), part["zero_rows"])

    facts = train(
        "flow",
        list(models.values()),
        [plain, padded],
        part,
        device=source.device,
        scale=scale,
        which=lambda index: int(index % part["every"] == part["every"] - 1),
        keep=lambda: keep(models),
    )
    return models, facts
