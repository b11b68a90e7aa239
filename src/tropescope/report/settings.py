"""Everything needed to make the run again, as lines of a name and a value."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from tropescope.findings.results import Results
from tropescope.report.rendering import short
from tropescope.store.folder import RunFolder
from tropescope.study.definition import Study

#: A study file longer than this is cut in the report; the run folder has it whole.
MOST_STUDY_TEXT = 400_000
_MOST_LINES = 120

Lines = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Settings:
    models: tuple[tuple[str, Lines], ...]
    judge: Lines
    facts: Lines
    measures: tuple[tuple[str, int], ...]
    study_text: str
    study_cut: bool
    study_sha256: str


def settings_of(
    folder: RunFolder, results: Results, study: Study, facts: Mapping[str, Any]
) -> Settings:
    if folder.study.exists():
        text = folder.study.read_text("utf-8", errors="replace")
    else:
        text = yaml.safe_dump(study.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    return Settings(
        models=tuple((name, lines(identity)) for name, identity in results.models.items()),
        judge=lines(results.judge),
        facts=lines(facts),
        measures=tuple(
            sorted(
                {(row.measure, row.version) for row in results.estimates}
                | {(row.measure, row.version) for row in results.curves}
            )
        ),
        study_text=text[:MOST_STUDY_TEXT],
        study_cut=len(text) > MOST_STUDY_TEXT,
        study_sha256=hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
    )


def lines(data: Mapping[str, Any]) -> Lines:
    """Nested plain data as flat lines, long values cut."""
    found: list[tuple[str, str]] = []
    for name, value in _flat(data, ""):
        if len(found) == _MOST_LINES:
            return (*found, ("…", "cut here; results.json has all"))
        found.append((short(name, 120), short(value, 400)))
    return tuple(found)


def _flat(data: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(data, Mapping) and data:
        for key, value in data.items():
            yield from _flat(value, f"{name} › {key}" if name else str(key))
    elif isinstance(data, Sequence) and not isinstance(data, str) and data:
        if all(not isinstance(item, Mapping | list | tuple) for item in data):
            yield name, ", ".join(map(_scalar, data))
        else:
            for i, item in enumerate(data, 1):
                yield from _flat(item, f"{name} › {i}")
    else:
        yield name, _scalar(data)


def _scalar(value: Any) -> str:
    if value is None or (isinstance(value, Mapping | Sequence) and not value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
