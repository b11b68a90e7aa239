"""The autoencoder of both generators: 64×64 pictures as 16×16 latents."""

from __future__ import annotations

from typing import Any

import torch
from data import Source
from loop import train
from networks import build_vae
from torch import Tensor


def train_vae(source: Source, *, scale: float) -> tuple[dict[str, Any], dict[str, Any]]:
    part = source.settings["vae"]
    torch.manual_seed(part["seed"])
    vae = build_vae(source.sizes, part).to(source.device)

    def step() -> Tensor:
        _, codes = source.scenes("judges", part["batch"])
        x = source.drawer.pictures(codes)
        latents = vae.encode(x).latent_dist
        y = vae.decode(latents.sample()).sample.float()
        off = y - x
        loss = off.abs().mean() + off.square().mean()
        edges = (off[..., 1:] - off[..., :-1]).abs().mean()
        edges = edges + (off[..., 1:, :] - off[..., :-1, :]).abs().mean()
        return loss + part["gradient"] * edges + part["kl"] * latents.kl().float().mean()

    facts = train("vae", [vae], [step], part, device=source.device, scale=scale)
    facts.update(_even_out(source, vae))
    return {"vae": vae}, facts


@torch.no_grad()
def _even_out(source: Source, vae: Any) -> dict[str, float]:
    """Give all latent channels one mean and one spread, folded into the 1×1 convolutions.

    A channel that the autoencoder does not use (its own noise exceeds what it says about the
    picture) is set to zero: scaled up, its noise would drown the others.
    """
    vae.eval()
    batches, noise = [], []
    for _ in range(8 if source.device.startswith("cuda") else 1):
        _, codes = source.scenes("generators", 512)
        latents = vae.encode(source.drawer.pictures(codes)).latent_dist
        batches.append(latents.mode())
        noise.append(latents.std.mean((0, 2, 3)))
    z = torch.cat(batches).transpose(0, 1).flatten(1)
    mean, spread = z.mean(1), z.std(1)
    used = spread > torch.stack(noise).mean(0)
    common_mean, common = float(z[used].mean()), float(spread[used].square().mean().sqrt())
    factor = common / spread
    channels = len(mean)
    quant, post = vae.quant_conv, vae.post_quant_conv
    post.bias += post.weight[:, :, 0, 0] @ (mean - common_mean / factor)
    post.weight /= factor[None, :, None, None]
    quant.weight[:channels] *= factor[:, None, None, None]
    quant.bias[:channels] = (quant.bias[:channels] - mean) * factor + common_mean
    quant.bias[channels:] += 2 * factor.log()
    empty = (~used).nonzero()[:, 0]
    for half in (empty, empty + channels):
        quant.weight[half] = 0
    quant.bias[empty] = common_mean
    quant.bias[empty + channels] = -30.0
    post.bias += post.weight[:, empty, 0, 0].sum(1) * common_mean
    post.weight[:, empty] = 0
    vae.register_to_config(scaling_factor=1 / common, shift_factor=common_mean)
    _, codes = source.scenes("generators", 512)
    x = source.drawer.pictures(codes)
    y = vae.decode(vae.encode(x).latent_dist.mode()).sample
    error = float((y - x).abs().mean() / 2)
    return {
        "scaling_factor": 1 / common,
        "shift_factor": common_mean,
        "used_channels": int(used.sum()),
        "mean_error": error,
    }
