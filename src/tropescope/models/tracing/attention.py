"""Attention probabilities without the attention matrix.

A pixel's attention to token j is exp(q·k_j·s − log Σ_i exp(q·k_i·s)), with the sum over *all* keys.
Fused kernels compute that log-sum-exp on their way and hand it out when called directly, so only
the few columns of the wanted words are ever formed. The output that the model goes on with is the
kernel's own: the same kernel that torch would have chosen, checked once per shape against torch's
own call to the bit; where there is none, torch's own call is made and the log-sum-exp computed
beside it.

The tap listens to `torch.nn.functional.scaled_dot_product_attention`, which all default attention
processors of diffusers call, instead of replacing processors by copies of their code: whatever the
processor does around it (norms, rotary embeddings, LoRA) stays as it is. It acts only in the thread
that traces, and only inside layers that were marked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tropescope.errors import ModelError
from tropescope.models.torch_device import import_torch

Receive = Callable[[Any, Any, Any, float], None]
"""Called with query, key, log-sum-exp over all keys, and the scale."""

_verified: dict[tuple[Any, ...], bool] = {}
"""Kernels whose output was compared with torch's own call, by device, kernel, type and shape."""

_FLASH, _EFFICIENT, _CUDNN = 1, 2, 3
_CHUNK = 1 << 24


class _Tap(threading.local):
    receive: Receive | None = None


class _Installation:
    """Torch's own function while the tap is in its place, and how many traces are open."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open = 0
        self.original: Any = None


_tap = _Tap()
_installation = _Installation()


@contextmanager
def attention_tap() -> Iterator[None]:
    """While open, `listen` can be used in this thread; afterwards torch is as it was."""
    functional = import_torch().nn.functional
    with _installation.lock:
        if _installation.open == 0:
            _installation.original = functional.scaled_dot_product_attention
            functional.scaled_dot_product_attention = _tapped
        _installation.open += 1
    try:
        yield
    finally:
        listen(None)
        with _installation.lock:
            _installation.open -= 1
            if _installation.open == 0:
                functional.scaled_dot_product_attention = _installation.original


def listen(receive: Receive | None) -> None:
    """Send this thread's next attention calls to `receive`, until called with None."""
    _tap.receive = receive


def _tapped(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
    receive = _tap.receive
    if receive is None:
        return _installation.original(query, key, value, *args, **kwargs)
    if args or not _is_plain(kwargs):
        raise ModelError(
            "attention with a mask, dropout or grouped heads cannot be traced",
            fix="trace the model with its default settings",
        )
    scale = kwargs.get("scale") or query.shape[-1] ** -0.5
    output, logsumexp = attend(query, key, value, kwargs)
    receive(query, key, logsumexp, scale)
    return output


def _is_plain(kwargs: dict[str, Any]) -> bool:
    return kwargs.get("attn_mask") is None and not (
        kwargs.get("dropout_p") or kwargs.get("is_causal") or kwargs.get("enable_gqa")
    )


def attend(query: Any, key: Any, value: Any, kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """(output, log-sum-exp): the output exactly as torch's own call gives it."""
    torch = import_torch()
    original = _installation.original or torch.nn.functional.scaled_dot_product_attention
    scale = kwargs.get("scale")
    choice = torch._fused_sdp_choice(query, key, value, None, 0.0, False, scale=scale)
    shape = (query.device.type, choice, query.dtype, query.shape, query.stride(), key.shape)
    trusted = _verified.get(shape)
    if trusted is not False:
        fused = _fused(choice, query, key, value, scale)
        if trusted is None:
            plain = original(query, key, value, **kwargs)
            trusted = fused is not None and bool(torch.equal(plain, fused[0]))
            _verified[shape] = trusted
            if not trusted:
                return plain, logsumexp_rows(query, key, scale)
        if trusted:
            output, logsumexp = fused
            return output, logsumexp
    return original(query, key, value, **kwargs), logsumexp_rows(query, key, scale)


def _fused(choice: int, query: Any, key: Any, value: Any, scale: float | None) -> Any:
    """The kernel that torch chose, called so that it also gives its log-sum-exp; None if none."""
    operators = import_torch().ops.aten
    rows = query.shape[-2]
    if query.device.type == "cpu" and choice == _FLASH:
        kernel = operators._scaled_dot_product_flash_attention_for_cpu
        return kernel(query, key, value, 0.0, False, scale=scale)[:2]
    if query.device.type != "cuda" or query.shape[-1] % 8:
        return None
    if choice == _FLASH:
        kernel = operators._scaled_dot_product_flash_attention
        output, logsumexp = kernel(query, key, value, 0.0, False, False, scale=scale)[:2]
    elif choice == _EFFICIENT:
        kernel = operators._scaled_dot_product_efficient_attention
        output, logsumexp = kernel(query, key, value, None, True, 0.0, False, scale=scale)[:2]
    elif choice == _CUDNN:
        kernel = operators._scaled_dot_product_cudnn_attention
        made = kernel(query, key, value, None, True, 0.0, False, False, scale=scale)
        output, logsumexp = made[0], made[1]
        if logsumexp.ndim == query.ndim:
            logsumexp = logsumexp.squeeze(-1)
    else:
        return None
    return output, logsumexp[..., :rows]


def logsumexp_rows(query: Any, key: Any, scale: float | None) -> Any:
    """log Σ exp(q·k·s) over all keys, a few query rows at a time."""
    torch = import_torch()
    scale = scale or query.shape[-1] ** -0.5
    batch, heads, rows, _ = query.shape
    size = max(1, _CHUNK // (batch * heads * key.shape[-2]))
    keys = key.float().transpose(-1, -2)
    parts = [
        torch.logsumexp(query[..., i : i + size, :].float() @ keys * scale, dim=-1)
        for i in range(0, rows, size)
    ]
    return torch.cat(parts, dim=-1)


def probabilities(query: Any, key: Any, logsumexp: Any, scale: float) -> Any:
    """exp(q·k·s − logsumexp) for the given keys only: (batch, heads, rows, keys) in float32."""
    torch = import_torch()
    batch, heads, rows, width = query.shape
    columns = key.shape[-2]
    made = torch.baddbmm(
        logsumexp.float().reshape(batch * heads, rows, 1),
        query.float().reshape(batch * heads, rows, width),
        key.float().reshape(batch * heads, columns, width).transpose(1, 2),
        beta=-1,
        alpha=scale,
    )
    return made.exp_().reshape(batch, heads, rows, columns)
