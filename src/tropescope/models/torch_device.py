"""Devices, number formats and memory errors of torch, in one place."""

from __future__ import annotations

import importlib
import os
from functools import cache
from typing import Any

from tropescope.errors import MissingDependency, ModelError


def import_torch() -> Any:
    # Threads that spin while they wait make a busy machine many times slower, and win little.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import torch
    except ImportError:
        raise MissingDependency("torch", extra="models") from None
    return torch


@cache
def quiet_libraries() -> None:
    """Keep the libraries' own bars and advice off the user's terminal; errors still come."""
    for name in ("transformers", "diffusers"):
        try:
            logging = importlib.import_module(f"{name}.utils.logging")
        except ImportError:
            continue
        logging.set_verbosity_error()
        logging.disable_progress_bar()


def pick_device(wanted: str) -> str:
    """'auto' is CUDA where there is one, else the CPU."""
    torch = import_torch()
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(wanted).type
    except RuntimeError:
        kind = "unknown"
    here = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if not here.get(kind, False):
        raise ModelError(
            f"there is no device '{wanted}' here",
            fix=f"use --device auto, or one of: {', '.join(k for k, v in here.items() if v)}",
        )
    return wanted


def torch_dtype(name: str, device: str) -> Any:
    torch = import_torch()
    if name == "float16" and device == "cpu":
        raise ModelError(
            "float16 cannot be used on the CPU", fix="set `dtype: float32` in the study"
        )
    return getattr(torch, name)


def is_out_of_memory(error: BaseException) -> bool:
    torch = import_torch()
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and (
        "out of memory" in text or "can't allocate memory" in text
    )


def machine_facts(device: str) -> dict[str, Any]:
    torch = import_torch()
    facts: dict[str, Any] = {
        "torch": torch.__version__,
        "device": device,
        "threads": torch.get_num_threads(),
        "attention_backends": {
            "flash": torch.backends.cuda.flash_sdp_enabled(),
            "memory_efficient": torch.backends.cuda.mem_efficient_sdp_enabled(),
            "math": torch.backends.cuda.math_sdp_enabled(),
        },
    }
    if device.startswith("cuda"):
        facts["device_name"] = torch.cuda.get_device_name(device)
        facts["tf32"] = torch.backends.cuda.matmul.allow_tf32
    return facts
