"""The training loop: a fixed number of steps, an average of the weights, one CUDA graph a step.

On a CUDA device the whole step (scenes, pictures, captions, forward, backward, update, average) is
captured once and replayed, so that Python costs nothing per step. Elsewhere it simply runs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

Step = Callable[[], Tensor]


class Average:
    """An exponential average of the weights, which is what is kept."""

    def __init__(self, modules: Sequence[nn.Module], keep: float) -> None:
        self.parameters = [p for module in modules for p in module.parameters()]
        self.values = [p.detach().clone() for p in self.parameters]
        self.weight = 1 - keep

    @torch.no_grad()
    def update(self) -> None:
        torch._foreach_lerp_(self.values, [p.detach() for p in self.parameters], self.weight)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange weights and averages in place."""
        for parameter, value in zip(self.parameters, self.values, strict=True):
            held = parameter.clone()
            parameter.copy_(value)
            value.copy_(held)

    @torch.no_grad()
    def put(self) -> None:
        for parameter, value in zip(self.parameters, self.values, strict=True):
            parameter.copy_(value)


def train(
    name: str,
    modules: Sequence[nn.Module],
    steps: Sequence[Step],
    part: dict[str, Any],
    *,
    device: str,
    scale: float = 1.0,
    which: Callable[[int], int] = lambda index: 0,
    keep: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Train in place and leave the averaged weights. `which` says which step comes next.

    The learning rate falls over `steps`; training ends after `stop` of them, if that is given.
    `keep` is called with the averaged weights in place at 50 and 75 % of the way, so that an
    interrupted training leaves something to look at.
    """
    count = max(2, round(part["steps"] * scale))
    parameters = [p for module in modules for p in module.parameters() if p.requires_grad]
    cuda = device.startswith("cuda")
    rate = torch.tensor(0.0, device=device)
    optimizer = torch.optim.AdamW(
        parameters,
        lr=rate if cuda else 0.0,
        betas=(0.9, 0.98),
        weight_decay=part.get("decay", 0.01),
        fused=cuda,
        capturable=cuda,
    )
    average = Average(modules, min(part["average"], 1 - 1 / max(10.0, count / 10)))
    recent = torch.zeros((), device=device)

    def once(step: Step) -> None:
        with torch.autocast(
            device.split(":", maxsplit=1)[0], torch.bfloat16, enabled=cuda, cache_enabled=False
        ):
            loss = step()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()
        average.update()
        recent.lerp_(loss.detach().float(), 0.02)

    started = time.monotonic()
    run = _graphs(once, steps, optimizer) if cuda else None
    began = time.monotonic()
    warm = max(1, min(300, count // 10))
    stop = min(count, max(2, round(part.get("stop", part["steps"]) * scale)))
    for index in range(stop):
        value = part["rate"] * min(1.0, (index + 1) / warm)
        value *= 0.5 * (1 + math.cos(math.pi * max(0, index - warm) / max(1, count - warm)))
        if run is not None:
            rate.fill_(value)
            run[which(index)]()
        else:
            for group in optimizer.param_groups:
                group["lr"] = value
            optimizer.zero_grad(set_to_none=True)
            once(steps[which(index)])
        if keep is not None and index in (stop // 2, stop * 3 // 4):
            average.swap()
            keep()
            average.swap()
        if index % max(1, count // 40) == 0 or index == stop - 1:
            spent = time.monotonic() - began
            print(
                f"{name} step {index + 1}/{count} loss {recent.item():.4f} {spent:.0f} s",
                flush=True,
            )
    average.put()
    seconds = time.monotonic() - began
    return {
        "steps": stop,
        "loss": round(recent.item(), 5),
        "preparing_seconds": round(began - started, 1),
        "seconds": round(seconds, 1),
    }


def _graphs(
    once: Callable[[Step], None], steps: Sequence[Step], optimizer: torch.optim.Optimizer
) -> list[Callable[[], None]]:
    """Each step as a replayable graph; steps that cannot be captured run as they are."""
    runs: list[Callable[[], None]] = []
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for step in steps:
            for _ in range(3):
                optimizer.zero_grad(set_to_none=True)
                once(step)
    torch.cuda.current_stream().wait_stream(stream)
    for step in steps:
        optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                once(step)
            runs.append(graph.replay)
        except Exception as error:
            print(f"no graph, running step by step: {str(error)[:300]}", flush=True)
            torch.cuda.synchronize()

            def plain(step: Step = step) -> None:
                optimizer.zero_grad(set_to_none=True)
                once(step)

            runs.append(plain)
    return runs
