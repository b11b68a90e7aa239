"""Whether a text fits a model's tokenizers, known before any weights are loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tropescope.errors import MissingDependency, ModelError
from tropescope.models.protocol import PromptProblem
from tropescope.models.torch_device import quiet_libraries


def load_tokenizer(folder: Path) -> Any:
    quiet_libraries()
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise MissingDependency("transformers", extra="models") from None
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise ModelError(
            f"the tokenizer in {folder.name} could not be loaded: {str(error)[:300]}",
            fix="check that the folder is complete",
        ) from error


def check_tokens(
    texts: Sequence[str], tokenizers: Mapping[str, Path], *, long_text_limit: int
) -> list[PromptProblem]:
    """Texts that are cut off or contain words a tokenizer does not know.

    Longer than the longest encoder can read: an error, for the model never sees the end. Longer
    than a shorter one only: a warning. `long_text_limit` is the length that the model gives to
    encoders other than CLIP's, whatever their tokenizer would allow.
    """
    problems: list[PromptProblem] = []
    loaded = [(name, load_tokenizer(folder)) for name, folder in tokenizers.items()]
    if not loaded:
        return problems
    limits = {name: token_limit(t, long_text_limit) for name, t in loaded}
    longest = max(limits.values())
    for text in texts:
        needed = {name: len(tokenizer(text, verbose=False).input_ids) for name, tokenizer in loaded}
        cut = [name for name in needed if needed[name] > limits[name]]
        best = max(needed, key=lambda name: limits[name])
        if needed[best] > longest:
            message = f"needs {needed[best]} tokens, the longest text encoder reads {longest}"
            problems.append(PromptProblem(text, "error", message))
        elif cut:
            shown = ", ".join(f"{name} reads {limits[name]} of {needed[name]}" for name in cut)
            message = f"cut off for some text encoders ({shown} tokens)"
            problems.append(PromptProblem(text, "warning", message))
        for name, tokenizer in loaded:
            unknown = unknown_words(tokenizer, text)
            if unknown:
                message = f"{name} does not know {', '.join(map(repr, unknown))}"
                problems.append(PromptProblem(text, "error", message))
    return problems


def token_limit(tokenizer: Any, long_text_limit: int) -> int:
    """CLIP's and SigLIP's tokenizers name their own short limit; for others the model decides."""
    limit = int(min(tokenizer.model_max_length, 10**9))
    return limit if limit <= 128 else min(limit, long_text_limit)


def unknown_words(tokenizer: Any, text: str) -> list[str]:
    """The words of a text that become the unknown token."""
    unknown = tokenizer.unk_token_id
    if unknown is None:
        return []
    if unknown not in tokenizer(text, add_special_tokens=False).input_ids:
        return []
    return [
        word
        for word in dict.fromkeys(text.split())
        if unknown in tokenizer(word, add_special_tokens=False).input_ids
    ] or [text]
