"""What this machine has, and what a study would still need."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tropescope.audit.source import ready_studies, study_source
from tropescope.audit.versions import PACKAGES, installed
from tropescope.errors import ModelError, OfflineError, TropescopeError
from tropescope.models.entry import OpenContext, installed_adapters
from tropescope.models.fingerprints import FileFingerprints
from tropescope.models.weights import is_cached, locate
from tropescope.study.definition import ClipJudge
from tropescope.version import __version__


@dataclass(frozen=True, slots=True)
class Line:
    what: str
    state: str
    fix: str = ""


def diagnose(study: str | None) -> list[Line]:
    """Facts about the installation, then about a study's models if one is given."""
    lines = [Line("tropescope", __version__), *_packages(), *_device()]
    free = shutil.disk_usage(Path.cwd()).free
    lines.append(Line("free disk space here", f"{free / 1e9:.0f} GB"))
    lines.append(Line("adapters", ", ".join(sorted(installed_adapters()))))
    lines.append(Line("ready studies", ", ".join(ready_studies()) or "none"))
    if study is not None:
        lines += _study_models(study)
    return lines


def _packages() -> Iterator[Line]:
    for extra, packages in PACKAGES.items():
        for package in packages:
            number = installed(package)
            if number is None:
                yield Line(package, "not installed", f"pip install 'tropescope[{extra}]'")
            else:
                yield Line(package, number)


def _device() -> Iterator[Line]:
    try:
        import torch
    except ImportError:
        return
    if torch.cuda.is_available():
        yield Line("device", f"CUDA: {torch.cuda.get_device_name(0)}")
    else:
        yield Line("device", f"CPU, {torch.get_num_threads()} threads")


def _study_models(name: str) -> Iterator[Line]:
    source = study_source(name)
    context = OpenContext(FileFingerprints(), source.folder, offline=True)
    wanted = {
        f"model {label}": (getattr(entry, "id", None), getattr(entry, "revision", None))
        for label, entry in source.study.models.items()
        if entry.adapter == "diffusers"
    }
    for label, entry in source.study.models.items():
        if entry.adapter != "diffusers":
            yield Line(f"model {label}", f"adapter {entry.adapter}: nothing to download")
    judge = source.study.judge
    if isinstance(judge, ClipJudge):
        wanted["judge"] = (judge.id, judge.revision)
    else:
        yield Line("judge", "known labels: nothing to download")
    for label, (model_id, revision) in wanted.items():
        yield _state(label, str(model_id), revision, context)


def _state(label: str, model_id: str, revision: str | None, context: OpenContext) -> Line:
    missing = Line(
        label, f"{model_id}: not on this machine", "a run without --offline downloads it"
    )
    try:
        weights = locate(model_id, revision, context)
    except OfflineError:
        return missing
    except TropescopeError as error:
        fix = error.fix if isinstance(error, ModelError) else ""
        return Line(label, f"{model_id}: {error.message}", fix)
    if weights.folder is None and not is_cached(weights):
        return missing
    place = "local folder" if weights.folder else "in the local cache"
    return Line(label, f"{model_id}: {place}, {weights.commit[:12]}")
