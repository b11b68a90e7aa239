"""What is asked: the study file, its schema, its checks."""

from tropescope.study.definition import Study
from tropescope.study.loading import load_study, load_study_text

__all__ = ["Study", "load_study", "load_study_text"]
