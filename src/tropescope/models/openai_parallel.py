"""Answering requests in threads, each outcome handed over as soon as it is known."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue

from tropescope.models.protocol import Outcome, Request


@dataclass(frozen=True, slots=True)
class Stopping:
    """Two ways to end early."""

    no_more_requests: threading.Event = field(default_factory=threading.Event)
    """Something fatal happened; what is already paid for is still brought in."""
    abandoned: threading.Event = field(default_factory=threading.Event)
    """Nobody waits for outcomes any more."""


def answer_in_parallel(
    requests: Sequence[Request],
    answer: Callable[[Request, Stopping], Outcome | None],
    *,
    threads: int,
) -> Iterator[tuple[Request, Outcome]]:
    """Yield outcomes as they come; requests that `answer` gives None for are left out.

    The first exception stops new requests. It is raised after those in flight have come in.
    """
    waiting = deque(requests)
    stopping = Stopping()
    results: SimpleQueue[tuple[Request, Outcome] | BaseException | None] = SimpleQueue()

    def work() -> None:
        try:
            while not stopping.no_more_requests.is_set():
                try:
                    request = waiting.popleft()
                except IndexError:
                    break
                outcome = answer(request, stopping)
                if outcome is not None:
                    results.put((request, outcome))
        except BaseException as error:
            stopping.no_more_requests.set()
            results.put(error)
        finally:
            results.put(None)

    # Daemons, so that an interrupted run ends at once instead of after the last timeout.
    working = min(threads, len(requests))
    for _ in range(working):
        threading.Thread(target=work, daemon=True, name="tropescope-api").start()
    fatal: BaseException | None = None
    try:
        while working:
            result = results.get()
            if result is None:
                working -= 1
            elif isinstance(result, BaseException):
                fatal = fatal or result
            else:
                yield result
    finally:
        stopping.no_more_requests.set()
        stopping.abandoned.set()
    if fatal is not None:
        raise fatal
