"""`tropescope visage`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tropescope.cli.options import Json


def visage(
    annotations: Annotated[
        Path, typer.Option("--annotations", help="CSV: what raters marked in which image.")
    ],
    attributes: Annotated[
        Path, typer.Option("--attributes", help="CSV: Likert ratings, which attributes are visual.")
    ],
    stereotypes: Annotated[
        Path, typer.Option("--stereotypes", help="CSV: SeeGULL, or a file with its columns.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path(
        "runs/visage"
    ),
    captions: Annotated[
        Path | None,
        typer.Option("--captions", help="CSV: image and caption, to compare captions with raters."),
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Score as in the paper's Tables 1 and 2.")
    ] = False,
    json: Json = False,
) -> None:
    """Score annotated images of identities: tendency, offensiveness, agreement, maps.

    Writes identities.csv, attributes.csv and report.html. The released ViSAGe files, saved as CSV,
    and SeeGULL v2 work as they are; the documentation says where to get them.

    Example:

        tropescope visage --annotations image_annotations.csv --attributes visual_attributes.csv
        --stereotypes stereotypes_global_v2.csv --out runs/visage
    """
    from tropescope.visage.analysis import Settings
    from tropescope.visage.summary import summary_data, summary_text
    from tropescope.visage.writing import write_visage

    written = write_visage(
        annotations,
        attributes,
        stereotypes,
        out,
        captions=captions,
        settings=Settings(published=published),
    )
    if json:
        from tropescope.cli.output import print_json

        print_json(summary_data(written))
    else:
        sys.stdout.write(summary_text(written))
