"""`tropescope report`."""

from __future__ import annotations

import sys

from tropescope.cli.options import RunArgument


def report(run: RunArgument) -> None:
    """Write a run's report again and print where it is.

    Example:

        tropescope report runs/my_study
    """
    from tropescope.audit import open_run
    from tropescope.audit.seal import require_unchanged, reseal_report
    from tropescope.report import write_report
    from tropescope.store.lock import folder_lock

    opened = open_run(run)
    with folder_lock(run):
        require_unchanged(opened.folder)
        results = opened.results
        path = write_report(opened.folder, results, opened.study, facts=results.versions)
        reseal_report(opened.folder)
    sys.stdout.write(f"report: {path}\n")
