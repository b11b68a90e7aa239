"""One source of training batches: scenes, pictures, captions, and pictures spoilt on purpose."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch
import yaml
from captions import CaptionWriter
from drawing import Drawer
from networks import Sizes
from scenes import Asked, SceneSampler
from torch import Tensor
from torch.nn import functional

from tropescope.world.definition import load_world

SETTINGS_FILE = Path(__file__).with_name("settings.yaml")


def load_settings(path: Path = SETTINGS_FILE) -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return settings


def settings_digest(settings: dict[str, Any]) -> str:
    """A hash of what the settings say, not of how the file is written."""
    return hashlib.sha256(yaml.safe_dump(settings, sort_keys=True).encode()).hexdigest()


class Source:
    def __init__(self, settings: dict[str, Any], device: str) -> None:
        self.settings = settings
        self.device = device
        self.world = load_world()
        self.sizes = Sizes(self.world, settings)
        self.sampler = SceneSampler(self.world, device)
        self.drawer = Drawer(self.world, device)
        self.writer = CaptionWriter(self.sampler, self.sizes.length)
        self.empty = self.writer.texts([""])

    @torch.no_grad()
    def scenes(self, kind: str, batch: int) -> tuple[Asked, Tensor]:
        asked = self.sampler.ask(batch, self.settings["captions"][kind])
        return self.sampler.draw(asked)

    @torch.no_grad()
    def prompts_and_pictures(self, batch: int) -> tuple[Tensor, Tensor]:
        """What the generators learn from: prompts, some of them empty, and their pictures."""
        asked, codes = self.scenes("generators", batch)
        ids = self.writer.write(asked, codes)
        dropped = torch.rand(batch, 1, device=self.device) < self.settings["dropout"]
        return torch.where(dropped, self.empty, ids), self.drawer.pictures(codes)

    @torch.no_grad()
    def spoil(self, pictures: Tensor, vae: Any, part: dict[str, Any]) -> Tensor:
        """Some pictures as a generator would draw them: through the autoencoder, soft or noisy."""
        count = len(pictures)
        through = int(count * part["through_vae"])
        blurred = int(count * part.get("blurred", 0))
        noisy = int(count * part.get("noisy", 0))
        pieces = list(pictures.split([through, blurred, noisy, count - through - blurred - noisy]))
        if through:
            latent = vae.encode(pieces[0]).latent_dist.mode()
            amount = torch.rand(through, 1, 1, 1, device=self.device) * 0.25
            latent = latent + amount / vae.config.scaling_factor * torch.randn_like(latent)
            pieces[0] = vae.decode(latent).sample.float().clamp(-1, 1)
        if blurred:
            soft = functional.avg_pool2d(
                functional.pad(pieces[1], (1, 1, 1, 1), mode="replicate"), 3, 1
            )
            share = torch.rand(blurred, 1, 1, 1, device=self.device)
            pieces[1] = pieces[1] + share * (soft - pieces[1])
        if noisy:
            amount = torch.rand(noisy, 1, 1, 1, device=self.device) * 0.12
            pieces[2] = (pieces[2] + amount * torch.randn_like(pieces[2])).clamp(-1, 1)
        return torch.cat(pieces)
