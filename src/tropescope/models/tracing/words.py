"""Which tokens a word of the prompt is.

A tokenizer may split a word over many tokens, and a model may read the prompt with several
tokenizers; all of them are the word's tokens. A word that occurs twice is two words. Padding and
special tokens are never part of a word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tropescope.errors import ModelError, PromptError

_WORD = re.compile(r"\w+(?:['’\-]\w+)*")
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Word:
    """A word (or asked-for phrase) of a prompt: its n-th occurrence, and where it stands."""

    text: str
    occurrence: int
    span: Span


def find_words(prompt: str, wanted: Sequence[str] | Literal["all"] = "all") -> list[Word]:
    """The words of a prompt in order, or the occurrences of the wanted ones.

    >>> [(w.text, w.occurrence) for w in find_words("a hat on a well-known hat")][-2:]
    [('well-known', 1), ('hat', 2)]
    """
    if wanted == "all":
        spans = [match.span() for match in _WORD.finditer(prompt)]
    else:
        spans = sorted({span for text in wanted for span in _occurrences(prompt, text)})
    seen: Counter[str] = Counter()
    words = []
    for start, end in spans:
        text = prompt[start:end]
        seen[text.lower()] += 1
        words.append(Word(text, seen[text.lower()], (start, end)))
    return words


def _occurrences(prompt: str, text: str) -> list[Span]:
    pieces = [re.escape(piece) for piece in text.split()]
    if not pieces:
        raise PromptError("an empty word cannot be traced")
    pattern = r"(?<!\w)" + r"\s+".join(pieces) + r"(?!\w)"
    spans = [match.span() for match in re.finditer(pattern, prompt, re.IGNORECASE)]
    if not spans:
        raise PromptError(
            f"the word {text!r} is to be traced, but the prompt {prompt!r} does not contain it",
            fix=f"its words are: {', '.join(dict.fromkeys(w.text for w in find_words(prompt)))}",
        )
    return spans


def token_positions(
    words: Sequence[Word], prompt: str, parts: Sequence[tuple[Any, int, int]]
) -> list[tuple[int, ...]]:
    """For each word the positions of its tokens, over all stretches of the model's text."""
    positions: list[set[int]] = [set() for _ in words]
    by_offset: dict[int, list[list[int]]] = {}
    for tokenizer, offset, length in parts:
        spans = _token_spans(tokenizer, prompt, length)
        found = [
            [i for i, span in enumerate(spans) if span is not None and _overlap(span, word.span)]
            for word in words
        ]
        # Two tokenizers that share a stretch must split it alike, or a position means two words.
        if by_offset.setdefault(offset, found) != found:
            raise ModelError(
                "the model's text encoders split the prompt differently, so the attention to one "
                "position is not the attention to one word"
            )
        for tokens, here in zip(positions, found, strict=True):
            tokens.update(offset + i for i in here)
    for word, tokens in zip(words, positions, strict=True):
        if not tokens:
            raise PromptError(
                f"the model never reads the word {word.text!r} of {prompt!r}: the prompt is cut "
                "off before it",
                fix="shorten the prompt",
            )
    return [tuple(sorted(tokens)) for tokens in positions]


def _token_spans(tokenizer: Any, prompt: str, length: int) -> list[Span | None]:
    """Which characters each token stands for; None for special tokens and padding."""
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(
            f"{type(tokenizer).__name__} does not say which characters a token stands for",
            fix="save the pipeline with its fast tokenizers (tokenizer.json)",
        )
    encoded = tokenizer(
        prompt,
        max_length=length,
        truncation=True,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
    )
    pairs = zip(encoded["offset_mapping"], encoded["special_tokens_mask"], strict=True)
    return [None if special else (int(s[0]), int(s[1])) for s, special in pairs]


def _overlap(one: Span, other: Span) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])
