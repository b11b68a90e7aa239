"""`tropescope verify`."""

from __future__ import annotations

import sys

import typer

from tropescope.cli.options import Json, RunArgument


def verify(run: RunArgument, json: Json = False) -> None:
    """Recompute every hash of a run and say what was changed, added or lost.

    Exits with 5 when anything does not match.

    Example:

        tropescope verify runs/my_study
    """
    from tropescope.audit import open_run
    from tropescope.audit.seal import verify as verify_folder
    from tropescope.cli.output import print_json
    from tropescope.engine.progress import TerminalProgress

    problems = verify_folder(open_run(run).folder, TerminalProgress())
    if json:
        print_json([{"artefact": p.artefact, "problem": p.message} for p in problems])
    else:
        for problem in problems:
            sys.stdout.write(f"{problem.artefact}: {problem.message}\n")
        if problems:
            sys.stdout.write(
                "→ delete damaged images and traces, then run the study again: it makes anew "
                "what is missing or changed\n"
            )
        else:
            sys.stdout.write("everything matches its hash\n")
    if problems:
        raise typer.Exit(5)
