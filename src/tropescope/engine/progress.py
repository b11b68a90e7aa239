"""Progress on the terminal: how far, how fast, how long still. Silent where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress


class StageProgress(Protocol):
    def advance(self, count: int = 1) -> None: ...


class Progress(Protocol):
    def note(self, text: str) -> None: ...

    def stage(self, name: str, total: int) -> AbstractContextManager[StageProgress]: ...


class _Silent:
    def advance(self, count: int = 1) -> None:
        del count


class NoProgress:
    """For library use and tests."""

    def note(self, text: str) -> None:
        del text

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[StageProgress]:
        del name, total
        yield _Silent()


class _RichStage:
    def __init__(self, bar: RichProgress, total: int) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=total, rate="")
        self._done = 0

    def advance(self, count: int = 1) -> None:
        self._done += count
        elapsed = self._bar.tasks[0].elapsed or 0.0
        rate = f"{self._done / elapsed:.1f}/s" if elapsed > 0.2 else ""
        self._bar.update(self._task, advance=count, rate=rate)


class TerminalProgress:
    """Bars on stderr when it is a terminal; one line per stage when it is not."""

    def __init__(self) -> None:
        self.console = Console(file=sys.stderr, highlight=False)

    def note(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[StageProgress]:
        if not self.console.is_terminal:
            self.note(f"{name}: {total}")
            yield _Silent()
            return
        bar = RichProgress(
            TextColumn(name.replace("{", "{{").replace("}", "}}"), markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
        )
        with bar:
            yield _RichStage(bar, total)
