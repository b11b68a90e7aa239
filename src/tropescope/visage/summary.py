"""What the command says when it is done."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tropescope.findings.wording import level_words, points, points_range
from tropescope.visage.views import display, strongest, theta_words
from tropescope.visage.writing import Written


def summary_data(written: Written) -> dict[str, Any]:
    """The outcome as data."""
    analysis = written.analysis
    verdicts = Counter(row.verdict for row in analysis.scored)
    ratio = analysis.pooled.ratio
    alpha = analysis.agreement.alpha
    return {
        "report": str(written.report),
        "identities": str(written.identities),
        "attributes": str(written.attributes),
        "convention": "published" if analysis.settings.published else "default",
        "scored": len(analysis.scored),
        "verdicts": {name: verdicts[name] for name in ("found", "undecided", "excluded")},
        "theta_undefined": analysis.pooled.undefined,
        "pooled_ratio": [ratio.value, ratio.low, ratio.high],
        "krippendorff_alpha": [alpha.value, alpha.low, alpha.high],
        "claims": dict(Counter(claim.outcome for claim in written.claims)),
    }


def summary_text(written: Written) -> str:
    analysis = written.analysis
    verdicts = Counter(row.verdict for row in analysis.scored)
    lines = []
    ratio = analysis.pooled.ratio
    if ratio.value is not None:
        interval = (
            f" ({level_words(ratio.level)} interval {ratio.low:.1f} to {ratio.high:.1f})"
            if ratio.low is not None and ratio.high is not None
            else ""
        )
        lines.append(
            f"Over {len(analysis.scored)} identities, stereotypes are marked {ratio.value:.1f} "
            f"times as often as random attributes{interval}."
        )
    lines.append(
        f"More than random: {verdicts['found']} identities, less: {verdicts['excluded']}, "
        f"undecided: {verdicts['undecided']}; θ not defined for {analysis.pooled.undefined}."
    )
    for row in [row for row in strongest(analysis) if row.verdict == "found"][:5]:
        difference = row.tendency.difference
        lines.append(
            f"  {display(row.identity)}: {points(difference.value)} points "
            f"({points_range(difference.low, difference.high)}), "
            f"θ {theta_words(row.tendency.theta)}"
        )
    for note in analysis.notes:
        lines.append(f"note: {note}")
    if written.claims:
        counts = Counter(claim.outcome for claim in written.claims)
        lines.append(
            "claims of the paper: " + ", ".join(f"{n} {name}" for name, n in counts.items())
        )
    lines.append(f"report: {written.report}")
    return "\n".join(lines) + "\n"
