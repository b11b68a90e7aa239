"""Audit stereotypes and social bias in text-to-image models.

`run("study.yaml")` makes, judges, measures and reports, and is safe to interrupt;
`open_run(folder)` opens what it left. Both give a `Run`, whose `results.select(...)` finds
estimates.
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
