"""`tropescope doctor`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tropescope.cli.options import Json


def doctor(
    study: Annotated[
        str | None, typer.Argument(help="Also check which models of this study are here.")
    ] = None,
    json: Json = False,
) -> None:
    """Say what is installed, which models are on this machine, and what would be downloaded.

    Changes nothing and downloads nothing.

    Examples:

        tropescope doctor

        tropescope doctor my_study.yaml
    """
    from tropescope.audit.diagnosis import diagnose
    from tropescope.cli.output import print_json

    lines = diagnose(study)
    if json:
        print_json([{"what": line.what, "state": line.state, "fix": line.fix} for line in lines])
        return
    width = max(len(line.what) for line in lines)
    for line in lines:
        fix = f"  → {line.fix}" if line.fix else ""
        sys.stdout.write(f"{line.what:<{width}}  {line.state}{fix}\n")
