"""What commands print: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from tropescope.errors import TropescopeError

if TYPE_CHECKING:
    from tropescope.audit import Run
    from tropescope.findings.results import EstimateRow


def print_json(data: Any) -> None:
    sys.stdout.write(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def print_error(error: TropescopeError) -> None:
    sys.stderr.write(f"error: {error}\n")


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def print_outcome(run: Run, *, as_json: bool) -> int:
    """What a finished run says in a few lines; returns the exit code."""
    results = run.results
    failed = sum(len(items.missing.get("failed", ())) for items in results.item_sets.values())
    scores = results.select(measure="stereotype_score", estimator=results.estimates[0].estimator)
    verdicts = {
        v: [s for s in scores if s.verdict == v] for v in ("found", "undecided", "excluded")
    }
    if as_json:
        print_json(
            {
                "run": str(run.path),
                "report": str(run.report),
                "results": str(run.folder.results),
                "images": sum(len(s.keys) for s in results.item_sets.values()),
                "failed": failed,
                "verdicts": {name: len(rows) for name, rows in verdicts.items()},
            }
        )
    else:
        _print_scores(verdicts)
        if failed:
            sys.stdout.write(f"{failed} images failed; run the same command again to retry them\n")
        sys.stdout.write(f"report: {run.report}\n")
    return 6 if failed else 0


def _print_scores(verdicts: dict[str, list[EstimateRow]]) -> None:
    found = sorted(verdicts["found"], key=lambda row: -(row.value or 0))
    if found:
        sys.stdout.write("More often than in the world:\n")
    for row in found[:12]:
        rate = (row.value or 0) + row.reference.value if row.reference else row.value
        sys.stdout.write(
            f"  {row.model}: {row.attribute} in images of {row.concept}: {percent(rate)} against "
            f"{percent(row.reference.value if row.reference else None)} "
            f"(excess {percent(row.value)}, {percent(row.low)} to {percent(row.high)})\n"
        )
    if found[12:]:
        sys.stdout.write(f"  … and {len(found) - 12} more\n")
    counts = ", ".join(f"{len(rows)} {name}" for name, rows in verdicts.items())
    if any(verdicts.values()):
        sys.stdout.write(f"Questions: {counts}\n")
