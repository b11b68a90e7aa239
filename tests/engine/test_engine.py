"""Batches fit into memory, commits keep order and errors, reading ahead changes nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tropescope.engine.background import Committer, read_ahead
from tropescope.engine.memory import GROW_AFTER, BatchLimit, fitting_calls
from tropescope.models.protocol import BatchTooLarge


@given(st.integers(0, 50), st.integers(1, 20), st.integers(1, 12))
def test_every_item_is_done_once_whatever_fits(items: int, batch: int, fits: int) -> None:
    limit = BatchLimit()
    done: list[int] = []
    sizes: list[int] = []

    def call(some: Sequence[int]) -> Sequence[int]:
        if len(some) > fits:
            raise BatchTooLarge("too many")
        sizes.append(len(some))
        return some

    for start in range(0, items, batch):
        planned = range(start, min(start + batch, items))
        for part, result in fitting_calls(
            planned, call, limit, when_one_is_too_many=lambda i, e: [i]
        ):
            assert list(part) == list(result)
            done += result
    assert done == list(range(items))
    assert all(size <= fits for size in sizes)


def test_a_single_item_that_does_not_fit_is_given_up() -> None:
    def call(some: Sequence[str]) -> str:
        if "huge" in some:
            raise BatchTooLarge("cannot allocate")
        return "done"

    results = dict(
        (part[0], result)
        for part, result in fitting_calls(
            ["a", "huge", "b"],
            call,
            BatchLimit(),
            when_one_is_too_many=lambda item, error: f"gave up {item}: {error}",
        )
    )
    assert results == {"a": "done", "huge": "gave up huge: cannot allocate", "b": "done"}


def test_the_batch_grows_back() -> None:
    limit = BatchLimit()
    limit.failed(8)
    assert limit.chunk(8) == 4
    for _ in range(GROW_AFTER):
        limit.succeeded(8)
    assert limit.chunk(8) == 8


def test_commits_keep_their_order_and_run_elsewhere() -> None:
    done: list[tuple[int, str]] = []
    with Committer[int](lambda i: done.append((i, threading.current_thread().name))) as committer:
        for i in range(100):
            committer.submit(i)
    assert [i for i, _ in done] == list(range(100))
    assert {name for _, name in done} == {"committer"}


def test_an_error_while_committing_stops_the_work() -> None:
    done: list[int] = []

    def commit(i: int) -> None:
        if i == 3:
            raise OSError("disk full")
        done.append(i)

    with pytest.raises(OSError, match="disk full"), Committer[int](commit, capacity=1) as committer:
        for i in range(1000):
            committer.submit(i)
    assert done == [0, 1, 2]


def test_what_was_made_before_an_error_is_kept() -> None:
    done: list[int] = []

    def slow(i: int) -> None:
        time.sleep(0.01)
        done.append(i)

    with pytest.raises(RuntimeError), Committer[int](slow) as committer:
        for i in range(5):
            committer.submit(i)
        raise RuntimeError("the model failed")
    assert done == [0, 1, 2, 3, 4]


@given(st.lists(st.integers(), max_size=30), st.integers(1, 5))
def test_reading_ahead_changes_nothing(items: list[int], ahead: int) -> None:
    assert list(read_ahead(items, lambda i: i * 2, ahead=ahead)) == [(i, i * 2) for i in items]


def test_an_error_while_reading_ahead_arrives_and_stopping_early_ends_the_thread() -> None:
    with pytest.raises(ZeroDivisionError):
        list(read_ahead([1, 0], lambda i: 1 // i))
    before = threading.active_count()
    loaded: list[int] = []
    for item, _ in read_ahead(range(1000), loaded.append):
        if item == 3:
            break
    assert threading.active_count() == before
    assert len(loaded) < 20
