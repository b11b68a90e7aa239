"""Where a study comes from: a file, a ready study by name, or an object made in Python."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from tropescope.errors import StudyError
from tropescope.study import Study, load_study
from tropescope.study.loading import study_text

_PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class StudySource:
    """A checked study, its text as written, and the folder its relative paths start from."""

    study: Study
    text: str
    folder: Path
    name: str


def ready_studies() -> dict[str, Path]:
    """The studies that come with Tropescope, by name."""
    for folder in (_PACKAGE / "studies", _PACKAGE.parent.parent / "studies"):
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    return {}


def find_study(name: str | Path) -> Path:
    """A path, or the name of a ready study."""
    path = Path(name)
    if path.is_file():
        return path
    ready = ready_studies()
    if str(name) in ready:
        return ready[str(name)]
    near = difflib.get_close_matches(path.stem, ready, n=1)
    hint = f"did you mean the ready study '{near[0]}'? " if near else ""
    known = f"ready studies: {', '.join(ready)}" if ready else "give the path of a .yaml file"
    raise StudyError(f"there is no study file '{name}'", fix=hint + known)


def study_source(study: str | Path | Study) -> StudySource:
    if isinstance(study, Study):
        name = re.sub(r"[^a-z0-9]+", "_", study.study.lower()).strip("_")[:60] or "study"
        return StudySource(study, study_text(study), study._folder or Path.cwd(), name)
    path = find_study(study)
    return StudySource(load_study(path), path.read_text("utf-8"), path.parent, path.stem)
