"""The three files of an analysis, read together so that their names agree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tropescope.annotations.likert import LikertRatings, read_likert
from tropescope.annotations.marks import ImageMarks, read_marks
from tropescope.annotations.stereotypes import Stereotypes, read_stereotypes


@dataclass(frozen=True)
class Inputs:
    marks: ImageMarks
    likert: LikertRatings
    stereotypes: Stereotypes

    @property
    def released(self) -> bool:
        """Whether these are the files the authors of ViSAGe released, so that claims apply."""
        marks = self.marks
        return (
            len(marks.image) == 120_170
            and len(marks.images) == 2_025
            and len(marks.identities) == 135
            and self.likert.rows == 1_994
            and len(self.stereotypes.identity) == 6_781
        )

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.marks.notes, *self.likert.notes, *self.stereotypes.notes)


def read_inputs(annotations: Path, attributes: Path, stereotypes: Path) -> Inputs:
    """Read the annotations, the Likert ratings of attributes, and the stereotypes."""
    likert = read_likert(attributes)
    pairs = read_stereotypes(stereotypes, attributes=likert.names)
    marks = read_marks(annotations, identities=pairs.names, attributes=likert.names)
    return Inputs(marks, likert, pairs)
