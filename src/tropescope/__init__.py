"""Audit stereotypes and social bias in text-to-image models.

import tropescope

run = tropescope.run("study.yaml")          # make, judge, measure, report; safe to interrupt
for estimate in run.results.select(measure="stereotype_score", verdict="found"):
    print(estimate.concept, estimate.attribute, estimate.value, estimate.low, estimate.high)

run = tropescope.open_run("runs/study")     # a finished run
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tropescope.version import __version__

__all__ = ["Run", "Study", "__version__", "load_study", "open_run", "run"]

if TYPE_CHECKING:
    from tropescope.audit import Run, open_run, run
    from tropescope.study import Study, load_study


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import tropescope` and `tropescope --help` answer at once."""
    if name in ("Run", "open_run", "run"):
        from tropescope import audit

        return getattr(audit, name)
    if name in ("Study", "load_study"):
        from tropescope import study

        return getattr(study, name)
    raise AttributeError(f"module 'tropescope' has no attribute '{name}'")
