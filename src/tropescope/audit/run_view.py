"""A finished run, opened for reading."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tropescope.audit.seal import Problem, verify
from tropescope.engine.progress import NoProgress
from tropescope.findings.results import Results, read_results
from tropescope.store.folder import RunFolder
from tropescope.store.tables import read_table
from tropescope.study import Study, load_study


@dataclass(frozen=True, slots=True)
class Run:
    """What a run holds. Tables are pyarrow tables; `to_pandas()` works where pandas is there."""

    folder: RunFolder

    @property
    def path(self) -> Path:
        return self.folder.root

    @property
    def study(self) -> Study:
        return load_study(self.folder.study)

    @property
    def results(self) -> Results:
        return read_results(self.folder.results)

    @property
    def report(self) -> Path:
        return self.folder.report

    def images(self) -> Any:
        """One row per planned image, with its outcome."""
        return read_table(self.folder.table("images"))

    def presence(self) -> Any:
        """One row per usable image and attribute, with its two similarities."""
        return read_table(self.folder.table("presence"))

    def verify(self) -> list[Problem]:
        """Every artefact that does not match its hash."""
        return verify(self.folder, NoProgress())


def open_run(path: str | Path) -> Run:
    """Open a run folder; an error says what is wrong with it."""
    folder = RunFolder(Path(path))
    folder.require()
    return Run(folder)
