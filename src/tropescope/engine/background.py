"""Work that runs beside the model: committing results, reading ahead.

Encoding, hashing and syncing files release Python's lock, so doing them on a second thread hides
them behind the model's own time. Queues are short: memory does not grow with the number of items.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Committer(Generic[Item]):
    """Hands items, in order, to `commit` on another thread; re-raises its first error.

    Leaving the context waits for all submitted items, also when the block failed: what the model
    made before an error is kept.
    """

    _END = object()

    def __init__(self, commit: Callable[[Item], None], *, capacity: int = 16) -> None:
        self._commit = commit
        self._queue: queue.Queue[object] = queue.Queue(maxsize=capacity)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="committer", daemon=True)

    def _work(self) -> None:
        while (item := self._queue.get()) is not self._END:
            if self._error is None:
                try:
                    self._commit(item)  # type: ignore[arg-type]
                except BaseException as error:
                    self._error = error

    def submit(self, item: Item) -> None:
        if self._error is not None:
            raise self._error
        self._queue.put(item)

    def __enter__(self) -> Committer[Item]:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._queue.put(self._END)
        self._thread.join()
        if self._error is not None and kind is None:
            raise self._error


def read_ahead(
    items: Iterable[Item], load: Callable[[Item], Result], *, ahead: int = 2
) -> Iterator[tuple[Item, Result]]:
    """Load the next items on another thread while the caller works on the current one."""
    results: queue.Queue[tuple[Item, Result] | BaseException | None] = queue.Queue(maxsize=ahead)
    stopped = threading.Event()

    def put(value: tuple[Item, Result] | BaseException | None) -> None:
        while not stopped.is_set():
            try:
                results.put(value, timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put((item, load(item)))
                if stopped.is_set():
                    return
            put(None)
        except BaseException as error:
            put(error)

    thread = threading.Thread(target=work, name="reader", daemon=True)
    thread.start()
    try:
        while (value := results.get()) is not None:
            if isinstance(value, BaseException):
                raise value
            yield value
    finally:
        stopped.set()
        thread.join()
