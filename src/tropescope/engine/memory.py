"""Fitting batches into memory: halve when it runs out, grow back when it lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tropescope.models.protocol import BatchTooLarge

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Successful calls at a reduced size after which twice the size is tried again.
GROW_AFTER = 8


class BatchLimit:
    """How many items go into one call. Starts without a limit; remembers what did not fit."""

    def __init__(self) -> None:
        self._limit: int | None = None
        self._streak = 0
        self.halvings = 0

    def chunk(self, wanted: int) -> int:
        return wanted if self._limit is None else min(wanted, self._limit)

    def failed(self, size: int) -> None:
        self._limit = max(1, size // 2)
        self._streak = 0
        self.halvings += 1

    def succeeded(self, planned: int) -> None:
        if self._limit is None:
            return
        self._streak += 1
        if self._streak >= GROW_AFTER:
            self._streak = 0
            self._limit *= 2
            if self._limit >= planned:
                self._limit = None


def fitting_calls(
    items: Sequence[Item],
    call: Callable[[Sequence[Item]], Result],
    limit: BatchLimit,
    *,
    when_one_is_too_many: Callable[[Item, BatchTooLarge], Result],
) -> Iterator[tuple[Sequence[Item], Result]]:
    """Call with all items if they fit, else with as many as do; the same items in any case."""
    start = 0
    while start < len(items):
        size = limit.chunk(len(items) - start)
        part = items[start : start + size]
        try:
            result = call(part)
        except BatchTooLarge as error:
            if size == 1:
                yield part, when_one_is_too_many(part[0], error)
                start += 1
            else:
                limit.failed(size)
            continue
        limit.succeeded(len(items))
        yield part, result
        start += size
