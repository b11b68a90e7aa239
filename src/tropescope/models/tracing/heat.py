"""Word attention, gathered while generating (Stable Diffusion Exposed, appendix; DAAM).

The published map of a word: per head and layer the attention over the steps, resized bicubically
to the image, negative overshoot clamped at 0, then the mean over heads, layers and the word's
tokens. Resizing is linear, so the sum over the steps may come first, as it does in DAAM's code:
per image one running sum for each head, layer and wanted token at the layer's own small
resolution. Memory does not grow with the number of steps; resizing happens once, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import ModelError
from tropescope.models.torch_device import import_torch
from tropescope.models.tracing.attention import attention_tap, listen, probabilities
from tropescope.models.tracing.families import Family, Inputs
from tropescope.models.tracing.result import WordTrace, scale_map
from tropescope.models.tracing.words import Word, find_words, token_positions

#: Pixels resized at once: what fits a processor's cache, and what keeps a GPU busy.
_CHUNK = {False: 1 << 16, True: 1 << 26}


class WordHeat:
    """Running sums of attention to the wanted words of every image."""

    def __init__(
        self,
        pipeline: Any,
        family: Family,
        words: Sequence[str] | Literal["all"],
        *,
        map_side: int,
    ) -> None:
        self._pipeline = pipeline
        self._family = family
        self._wanted = words
        self._side = map_side
        self._prompts: list[str] = []
        self._words: list[list[Word]] = []
        self._tokens: list[list[tuple[int, ...]]] = []
        self._columns: Any = None
        self._sums: dict[str, Any] = {}
        self._text_length = 0
        self._images = 0
        self._size = (0, 0)
        self._layer: str | None = None
        self._heard = False
        self._maps: NDArray[np.float32] = np.zeros(0, np.float32)
        self.steps = 0

    @property
    def knows_prompts(self) -> bool:
        return bool(self._prompts)

    @property
    def layers(self) -> int:
        return len(self._sums)

    # -- before and around calls ---------------------------------------------------------------

    def attach(self, stack: ExitStack) -> None:
        """Hooks that say which layer is at work; the tap hears its attention."""
        stack.enter_context(attention_tap())
        layers = self._family.attention_layers(self._family.denoiser(self._pipeline))
        if not layers:
            raise ModelError("this model has no layer in which the image looks at the text")
        for name, module in layers.items():
            enter, leave = self._marks(name)
            stack.callback(module.register_forward_pre_hook(enter).remove)
            stack.callback(module.register_forward_hook(leave, always_call=True).remove)

    def _marks(self, name: str) -> tuple[Any, Any]:
        def enter(module: Any, args: Any) -> None:
            if self._images:
                self._layer, self._heard = name, False
                listen(self._receive)

        def leave(module: Any, args: Any, output: Any) -> None:
            listen(None)
            # `output` is None when the layer failed; its own error is then on its way.
            if self._images and not self._heard and output is not None:
                raise ModelError(
                    f"{type(module.processor).__name__} computes attention in a way that cannot be "
                    "traced",
                    fix="use the model's default attention processors",
                )

        return enter, leave

    def read_prompts(self, prompts: Sequence[str], images_per_prompt: int) -> None:
        self._prompts = [p for p in prompts for _ in range(images_per_prompt)]
        self._words = [find_words(prompt, self._wanted) for prompt in self._prompts]

    def begin_call(self, inputs: Inputs, images: int) -> None:
        """The pipeline is about to call its denoiser for `images` prompts (and their negatives)."""
        self._text_length = int(inputs["encoder_hidden_states"].shape[1])
        if self._columns is None:
            self._begin(inputs, images)
        self._images = images

    def end_call(self) -> None:
        self._images = 0

    def _begin(self, inputs: Inputs, images: int) -> None:
        torch = import_torch()
        if len(self._prompts) != images:
            raise ModelError(
                "the words of the prompts are not known: the pipeline was not called with `prompt`",
                fix="call it with texts instead of embeddings",
            )
        self._size = self._family.latent_size(inputs)
        parts = self._family.text_parts(self._pipeline, self._text_length)
        known: dict[str, list[tuple[int, ...]]] = {}
        for prompt, words in zip(self._prompts, self._words, strict=True):
            if prompt not in known:
                known[prompt] = token_positions(words, prompt, parts)
        self._tokens = [known[prompt] for prompt in self._prompts]
        columns = [sorted({t for tokens in word for t in tokens}) for word in self._tokens]
        widest = max(map(len, columns))
        padded = [row + [0] * (widest - len(row)) for row in columns]
        device = inputs["encoder_hidden_states"].device
        self._columns = torch.tensor(padded, device=device)

    # -- during calls --------------------------------------------------------------------------

    def _receive(self, query: Any, key: Any, logsumexp: Any, scale: float) -> None:
        """Add the attention of image tokens to the wanted tokens; the conditional half is last."""
        layer, images, text = self._layer, self._images, self._text_length
        assert layer is not None
        if self._heard:
            raise ModelError(f"the layer {layer} computes attention more than once")
        self._heard = True
        query, key, logsumexp = query[-images:], key[-images:], logsumexp[-images:]
        if self._family.joint_attention:
            pixels = slice(text, None) if self._family.text_first else slice(None, -text)
            query, logsumexp = query[:, :, pixels], logsumexp[:, :, pixels]
            first = 0 if self._family.text_first else key.shape[2] - text
        else:
            first = 0
            if key.shape[2] != text:
                raise ModelError(f"the layer {layer} looks at something other than the text")
        rows = (first + self._columns)[:, None, :, None]
        wanted = key.gather(2, rows.expand(-1, key.shape[1], -1, key.shape[3]))
        found = probabilities(query, wanted, logsumexp, scale)
        if layer in self._sums:
            self._sums[layer] += found
        else:
            self._sums[layer] = found

    # -- afterwards ----------------------------------------------------------------------------

    def finish(self) -> None:
        """From sums to one map per image and wanted token, on the common grid."""
        torch = import_torch()
        if self._columns is None:
            return
        factor = int(self._pipeline.vae_scale_factor)
        height, width = self._size[0] * factor, self._size[1] * factor
        scale = min(1.0, self._side / max(height, width))
        grid = (max(1, round(height * scale)), max(1, round(width * scale)))
        denoiser = self._family.denoiser(self._pipeline)
        total = torch.zeros((*self._columns.shape, *grid), device=self._columns.device)
        maps = 0
        with torch.inference_mode():
            for name in list(self._sums):
                sums = self._sums[name] / self.steps
                shape = self._family.token_grid(self._size, sums.shape[2], denoiser)
                total = total + resized(sums, shape, grid)
                maps += sums.shape[1]
                self._sums[name] = None
            self._maps = (total / maps).cpu().numpy()

    def of_image(self, image: int) -> tuple[WordTrace, ...]:
        columns = self._columns[image].tolist()
        made = []
        for word, tokens in zip(self._words[image], self._tokens[image], strict=True):
            mean = self._maps[image, [columns.index(t) for t in tokens]].mean(axis=0)
            made.append(WordTrace(word.text, word.occurrence, tokens, *scale_map(mean)))
        return tuple(made)


def resized(sums: Any, shape: tuple[int, int], grid: tuple[int, int]) -> Any:
    """Sum over heads of the clamped, bicubically resized maps: (images, tokens, *grid)."""
    torch = import_torch()
    images, heads, _, tokens = sums.shape
    maps = sums.permute(1, 0, 3, 2).reshape(heads, images * tokens, *shape)
    down, across = (_bicubic(old, new, sums) for old, new in zip(shape, grid, strict=True))
    total = torch.zeros((images * tokens, *grid), device=sums.device)
    size = max(1, _CHUNK[sums.device.type == "cuda"] // (grid[0] * grid[1]))
    for head in maps:
        for start in range(0, len(head), size):
            part = down @ (head[start : start + size] @ across.T)
            total[start : start + size] += part.clamp_(min=0)
    return total.reshape(images, tokens, *grid)


def _bicubic(old: int, new: int, like: Any) -> Any:
    """Bicubic resizing of one axis as a matrix (new × old), in torch's own coefficients.

    The resizing is separable; as two products it is several times faster than `interpolate`.
    """
    torch = import_torch()
    unit = torch.eye(old, device=like.device)[None, None]
    size = (new, old)
    return torch.nn.functional.interpolate(unit, size=size, mode="bicubic", align_corners=False)[
        0, 0
    ]
