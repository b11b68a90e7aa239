"""The whole way from a study to a report, and back into a finished run."""

from tropescope.audit.pipeline import run
from tropescope.audit.run_view import Run, open_run

__all__ = ["Run", "open_run", "run"]
