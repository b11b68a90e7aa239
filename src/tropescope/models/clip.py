"""Image and text embeddings with the CLIP and SigLIP classes of transformers.

Images are prepared with the PIL implementation of the processor, always: with torchvision installed
the default implementation resizes differently, and an installed package must not change a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tropescope.errors import MissingDependency, ModelError
from tropescope.models.entry import OpenContext
from tropescope.models.protocol import BatchTooLarge, PromptProblem
from tropescope.models.tokens import check_tokens
from tropescope.models.torch_device import (
    import_torch,
    is_out_of_memory,
    machine_facts,
    pick_device,
    quiet_libraries,
    torch_dtype,
)
from tropescope.models.weights import (
    Weights,
    explain_hub_error,
    hub,
    locate,
    read_json,
    small_files,
)

_SUPPORTED = ("clip", "siglip")
_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]


class ClipEncoder:
    """One encoder for images and texts; embeddings have unit length and are float32."""

    def __init__(
        self, model_id: str, *, revision: str | None, dtype: str | None, context: OpenContext
    ) -> None:
        self.id = model_id
        self._context = context
        self._dtype = dtype or "float32"
        self._weights = locate(model_id, revision, context)
        self._model: Any = None
        self._device = "cpu"
        self._tokenizer: Any = None
        self._processor: Any = None

    @property
    def weights(self) -> Weights:
        return self._weights

    def identity(self) -> dict[str, Any]:
        return {"encoder": "clip", "weights": self._weights.identity, "dtype": self._dtype}

    def folder(self) -> Path:
        if self._weights.folder is not None:
            return self._weights.folder
        try:
            path = hub().snapshot_download(
                self.id,
                revision=self._weights.commit,
                allow_patterns=_FILES,
                local_files_only=self._context.offline,
            )
        except Exception as error:
            raise explain_hub_error(self.id, error) from error
        return Path(path)

    def _small_files(self) -> Path:
        """The folder with everything but the weights, for checks before any work."""
        return self._weights.folder or small_files(self._weights, self._context)

    def check_kind(self) -> None:
        kind = read_json(self._small_files() / "config.json").get("model_type")
        if kind not in _SUPPORTED:
            raise ModelError(
                f"'{self.id}' is a '{kind}' model; the judge must be one of {_SUPPORTED}",
                fix="name a CLIP or SigLIP model in `judge:`",
            )

    def check_texts(self, texts: Sequence[str]) -> list[PromptProblem]:
        folder = self._small_files()
        config = read_json(folder / "config.json")
        length = config.get("text_config", {}).get("max_position_embeddings", 77)
        return check_tokens(texts, {"its tokenizer": folder}, long_text_limit=int(length))

    def _load(self) -> Any:
        if self._model is not None:
            return self._model
        self.check_kind()
        folder = self.folder()
        import_torch()
        quiet_libraries()
        try:
            from transformers import AutoImageProcessor, AutoModel, AutoTokenizer
        except ImportError:
            raise MissingDependency("transformers", extra="models") from None
        self._device = pick_device(self._context.device)
        try:
            model = AutoModel.from_pretrained(
                folder,
                dtype=torch_dtype(self._dtype, self._device),
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
            )
            self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            self._processor = AutoImageProcessor.from_pretrained(
                folder, local_files_only=True, backend="pil"
            )
            self._model = model.to(self._device).eval()
        except Exception as error:
            raise ModelError(
                f"'{self.id}' could not be loaded: {str(error).strip()[:500]}",
                fix="check that the folder is complete and holds safetensors weights",
            ) from error
        return self._model

    @property
    def logit_scale(self) -> float:
        """The factor by which the model itself multiplies similarities before the softmax."""
        return float(self._load().logit_scale.detach().float().exp().item())

    def prepare(self, images: Sequence[NDArray[np.uint8]]) -> Any:
        """Pixels to the model's input; pure CPU work that can run ahead of the model."""
        self._load()
        pictures = [Image.fromarray(image, "RGB") for image in images]
        return self._processor(images=pictures, return_tensors="pt")["pixel_values"]

    def encode_prepared(self, pixel_values: Any) -> NDArray[np.float32]:
        model = self._load()
        return self._run(
            lambda: model.get_image_features(
                pixel_values=pixel_values.to(self._device, model.dtype)
            )
        )

    def encode_images(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        return self.encode_prepared(self.prepare(images))

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit embeddings of texts. SigLIP was trained on texts padded to full length."""
        model = self._load()
        siglip = model.config.model_type == "siglip"
        length = model.config.text_config.max_position_embeddings
        tokens = self._tokenizer(
            list(texts),
            return_tensors="pt",
            padding="max_length" if siglip else True,
            max_length=length if siglip else None,
            truncation=siglip,
        )
        inputs = {"input_ids": tokens["input_ids"].to(self._device)}
        if not siglip:
            inputs["attention_mask"] = tokens["attention_mask"].to(self._device)
        return self._run(lambda: model.get_text_features(**inputs))

    def _run(self, call: Any) -> NDArray[np.float32]:
        torch = import_torch()
        try:
            with torch.inference_mode():
                output = call()
        except (RuntimeError, MemoryError) as error:
            if is_out_of_memory(error):
                raise BatchTooLarge(str(error).split("\n")[0]) from None
            raise
        features = getattr(output, "pooler_output", output).float()
        if not bool(torch.isfinite(features).all()):
            raise ModelError(
                f"'{self.id}' computed embeddings that are not numbers",
                fix="use `dtype: float32` for the judge",
            )
        unit = torch.nn.functional.normalize(features, dim=-1)
        return np.asarray(unit.cpu().numpy(), dtype=np.float32)

    def facts(self) -> dict[str, Any]:
        import transformers

        known = {"id": self.id, **self._weights.identity, "transformers": transformers.__version__}
        return {**known, **machine_facts(self._device)}

    def close(self) -> None:
        self._model = None
