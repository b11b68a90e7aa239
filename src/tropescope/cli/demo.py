"""`tropescope demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tropescope.cli.options import Json

DEMO_STUDY = "demo"


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder of the run.")] = Path("runs/demo"),
    json: Json = False,
) -> None:
    """Audit the reference world, in which the truth is known, and print where the report is.

    Needs no download and no account: the nations are fictional and the pictures are drawn.

    Example:

        tropescope demo
    """
    from tropescope.audit import run as run_study
    from tropescope.cli.output import interruptible, print_outcome
    from tropescope.engine.progress import TerminalProgress

    with interruptible():
        finished = run_study(DEMO_STUDY, out=out, offline=True, progress=TerminalProgress())
    code = print_outcome(finished, as_json=json)
    if code:
        raise typer.Exit(code)
