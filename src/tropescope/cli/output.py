"""What commands print: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from tropescope.errors import TropescopeError

if TYPE_CHECKING:
    from tropescope.audit import Run


def print_json(data: Any) -> None:
    sys.stdout.write(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def print_error(error: TropescopeError) -> None:
    sys.stderr.write(f"error: {error}\n")


@contextmanager
def interruptible() -> Iterator[None]:
    """Say that nothing is lost when the user stops a long command."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted: finished items are kept; run the same command again\n")
        raise typer.Exit(130) from None


def print_outcome(run: Run, *, as_json: bool) -> int:
    """What a finished run says in a few lines; returns the exit code."""
    results = run.results
    failed = sum(len(items.missing.get("failed", ())) for items in results.item_sets.values())
    if as_json:
        first = results.estimates[0].estimator if results.estimates else ""
        scores = results.select(measure="stereotype_score", estimator=first)
        verdicts = Counter(score.verdict for score in scores)
        print_json(
            {
                "run": str(run.path),
                "report": str(run.report),
                "results": str(run.folder.results),
                "images": sum(len(s.keys) for s in results.item_sets.values()),
                "failed": failed,
                "verdicts": {name: verdicts[name] for name in ("found", "undecided", "excluded")},
            }
        )
    else:
        sys.stdout.write(_in_words(run))
        if failed:
            sys.stdout.write(f"{failed} images failed; run the same command again to retry them\n")
        sys.stdout.write(f"report: {run.report}\n")
    return 6 if failed else 0


def _in_words(run: Run) -> str:
    from tropescope.findings.summary import summary_of

    phrases = {name: concept.phrase for name, concept in run.study.concepts.items()}
    return summary_of(run.results, phrases=phrases).text(most=8).rstrip() + "\n\n"
