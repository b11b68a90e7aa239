"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StudyArgument = Annotated[
    str, typer.Argument(help="A study file (.yaml), or the name of a ready study.")
]
RunArgument = Annotated[Path, typer.Argument(help="The folder of a run.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder of the run; runs/NAME-OF-THE-STUDY by default."),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="A small trial: about so many images per model."),
]
Offline = Annotated[bool, typer.Option("--offline", help="Never download or send anything.")]
Device = Annotated[
    str, typer.Option("--device", help="auto, cpu, cuda, cuda:1, …: where models run.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
