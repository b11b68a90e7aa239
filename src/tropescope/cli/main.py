"""`tropescope`: the commands, and how errors become messages and exit codes."""

from __future__ import annotations

import sys

import typer

from tropescope.cli import demo, doctor, plan, report, run, verify, visage
from tropescope.cli.output import print_error
from tropescope.errors import TropescopeError
from tropescope.version import __version__

EXIT_CODES = """Exit codes: 0 done · 1 error · 2 wrong usage · 3 the study or a prompt is wrong ·
4 a model cannot be used · 5 the run folder cannot be used · 6 done, but some images failed (run
again to retry them) · 130 interrupted (run again to continue)."""

app = typer.Typer(
    help="Audit stereotypes and social bias in text-to-image models.\n\n"
    "Give a study (a YAML file that names models, concepts, attributes and reference rates); get a "
    "report that says which stereotypes the models show, how strongly, and how sure that is.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for command in (demo, run, plan, report, verify, visage, doctor):
    app.command()(getattr(command, command.__name__.rpartition(".")[2]))


def _version(value: bool) -> None:
    if value:
        typer.echo(f"tropescope {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    del version


def main() -> None:
    """Entry point. Our own errors are printed without a traceback."""
    try:
        app()
    except TropescopeError as error:
        print_error(error)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
