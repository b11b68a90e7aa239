"""`tropescope run`."""

from __future__ import annotations

import typer

from tropescope.cli.options import Device, Json, Limit, Offline, Out, StudyArgument


def run(
    study: StudyArgument,
    out: Out = None,
    limit: Limit = None,
    offline: Offline = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Run a study: make the images, judge them, measure, write the report.

    The same command continues an interrupted run and does nothing on a finished one.

    Examples:

        tropescope run my_study.yaml

        tropescope run my_study.yaml --limit 8      # a quick trial before the real thing

        tropescope run world_national --out runs/world
    """
    from tropescope.audit import run as run_study
    from tropescope.cli.output import interruptible, print_outcome
    from tropescope.engine.progress import TerminalProgress

    with interruptible():
        finished = run_study(
            study,
            out=out,
            limit=limit,
            offline=offline,
            device=device,
            progress=TerminalProgress(),
        )
    code = print_outcome(finished, as_json=json)
    if code:
        raise typer.Exit(code)
