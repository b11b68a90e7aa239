"""What the paper says, what its released data say, and our verdict, claim by claim.

Only for the released files. Numbers are computed here from the analysis, never copied, except the
paper's own. Tables use the `published` convention, because the claims were made with it; the
default is given beside it where it differs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tropescope.statistics.estimate import Estimate
from tropescope.visage.analysis import Analysis
from tropescope.visage.inputs import Inputs
from tropescope.visage.rankings import ranks, region_contrast

Outcome = Literal["reproduced", "partly", "not reproduced", "cannot be checked"]

PRINTED_CONSENSUS = (0.0752, 0.2026, 0.0020, 0.2216, 0.2041)
MOST_OFFENSIVE = ("Jordanian", "Uruguayan", "Gabonese", "Laos", "Albanian")
LEAST_OFFENSIVE = ("Australian", "Swedes", "Danish", "Norwegian", "Nepalese")
_COUNTS = {
    "Australian": 63,
    "Mexican": 46,
    "Indian": 34,
    "New Zealand": 31,
    "Ethiopian": 27,
    "Japanese": 20,
}


@dataclass(frozen=True, slots=True)
class Claim:
    """`paper` is the claim in short with its section, `ours` what the data give."""

    paper: str
    where: str
    ours: str
    outcome: Outcome


def claims_of(inputs: Inputs, published: Analysis, default: Analysis) -> tuple[Claim, ...]:
    """All checkable claims of the paper, and those that the released files cannot check."""
    return (
        *_attributes(inputs, published),
        *_task(inputs),
        *_tendency(published, default),
        *_likely(published),
        *_offensiveness(published),
        Claim(
            "Attributes found by captions were marked by annotators 44.69 % of the time",
            "§4.2",
            "Captions were not released; `tropescope.measures.salience` computes it for new ones.",
            "cannot be checked",
        ),
        Claim(
            "For 121 of 135 identities the default is nearer to the stereotypical images, "
            "and similarities are higher for the global south",
            "§5, Tables 3–5",
            "Images and embeddings were not released. Mean Sim and the sign of the pull follow "
            "from the printed S values in the rows of Tables 3 and 4.",
            "cannot be checked",
        ),
    )


def _attributes(inputs: Inputs, analysis: Analysis) -> tuple[Claim, ...]:
    likert = inputs.likert
    shares = likert.consensus()
    gap = max(abs(a - b) for a, b in zip(shares, PRINTED_CONSENSUS, strict=True))
    counts = {name: analysis[name].listed_stereotypes for name in _COUNTS}
    single = [row.identity for row in analysis.identities if row.listed_stereotypes == 1]
    named = ("Omani", "Ukrainian", "Swiss", "Canadian", "Mongolian")
    of_named = {name: analysis[name].listed_stereotypes for name in named}
    others = [f"{name} {count}" for name, count in of_named.items() if count != 1]
    return (
        Claim(
            "1,994 unique attributes were rated",
            "§3.1",
            f"The file has {likert.rows:,} rows and {len(likert.attributes):,} different "
            "attributes: one stands twice, and one attribute of SeeGULL is absent.",
            "partly",
        ),
        Claim(
            "385 attributes are visual: every rater at least agrees",
            "§3.1",
            f"{len(likert.visual())} attributes by that rule.",
            "not reproduced",
        ),
        Claim(
            "At least two of three raters gave the same label to 20.41 % (strongly agree), "
            "22.16 %, 20.26 %, 7.52 % and 0.2 % of attributes",
            "App. 7.1.1",
            "From strongly agree to strongly disagree and unsure: "
            + ", ".join(f"{100 * shares[n]:.2f} %" for n in (4, 3, 1, 0, 2))
            + f"; the largest gap is {100 * gap:.2f} points.",
            "reproduced" if gap <= 0.0015 else "not reproduced",
        ),
        Claim(
            "Most visual stereotypes: Australian 63, Mexican 46, Indian 34, New Zealand 31, "
            "Ethiopian 27, Japanese 20",
            "§3.1",
            ", ".join(f"{name} {count}" for name, count in counts.items()) + ".",
            "reproduced" if counts == _COUNTS else "not reproduced",
        ),
        Claim(
            "Around 30 identities have a single visual stereotype, among them Omani, Ukrainian, "
            "Swiss, Canadian and Mongolian",
            "§3.1",
            f"{len(single)} identities"
            + (f"; of those named, {', '.join(others)}." if others else ", all five among them."),
            "partly" if others else "reproduced",
        ),
    )


def _task(inputs: Inputs) -> tuple[Claim, ...]:
    marks = inputs.marks
    real = marks.attribute != (-1 if marks.none_option is None else marks.none_option)
    pairs = Counter((marks.image[real] * len(marks.attributes) + marks.attribute[real]).tolist())
    three = sum(count == 3 for count in pairs.values()) / len(pairs)
    least, most = min(pairs.values()), max(pairs.values())
    return (
        Claim(
            "15 images of each of 135 identities: 2,025 images",
            "§3.2",
            f"{len(marks.images):,} images of {len(marks.identities)} identities.",
            "reproduced" if len(marks.images) == 2025 else "not reproduced",
        ),
        Claim(
            "40,057 image-attribute pairs",
            "§3.2",
            f"{len(pairs):,} different pairs. The printed number is a third of all "
            f"{len(marks.image):,} ratings, “none of the above” among them: pairs counted as if "
            "each rating belonged to a set of three.",
            "not reproduced",
        ),
        Claim(
            "Three annotators for each image-attribute pair",
            "§3.2",
            f"{100 * three:.0f} % of the pairs have three ratings; the number ranges from {least} "
            f"to {most}. Worker names are names of tasks, so raters cannot be told apart.",
            "partly",
        ),
        Claim(
            "Five attributes at a time with “none of the above”",
            "§3.2",
            _at_a_time(inputs),
            "partly",
        ),
    )


def _at_a_time(inputs: Inputs) -> str:
    """How many attributes stand before each “none of the above”, in the order of the file."""
    marks = inputs.marks
    if marks.none_option is None:
        return "The file has no such option."
    places = np.flatnonzero(marks.attribute == marks.none_option)
    numbers = np.diff(np.concatenate(([-1], places))) - 1
    usual = int(np.bincount(numbers).argmax())
    share = float((numbers == usual).mean())
    return (
        f"{usual} attributes and “none of the above” in {100 * share:.0f} % of the sets: five "
        "options, not five attributes."
    )


def _tendency(published: Analysis, default: Analysis) -> tuple[Claim, ...]:
    undefined = {row.identity for row in published.scored if row.tendency.theta.value is None}
    named = ("Togolese", "Zimbabwean", "Swedes", "Danish")
    upper = [published[name].tendency.random.high or 0.0 for name in named]
    nigerian = published["Nigerian"].tendency.theta
    plain = default["Nigerian"].tendency.theta
    found = sum(row.verdict == "found" for row in default.scored)
    less = sum(row.verdict == "excluded" for row in default.scored)
    ratio, other = published.pooled.ratio, default.pooled.ratio
    return (
        Claim(
            "On average, stereotypical attributes are thrice as likely as random ones",
            "§4.1",
            f"{_ratio(ratio)} as published, {_ratio(other)} by default (ratio of the means over "
            f"{len(published.scored)} identities). The median θ is "
            f"{published.pooled.median_theta:.1f}. The difference is above 0 for {found} of "
            f"{len(default.scored)} identities, below 0 for {less}, undecided for the rest.",
            "reproduced" if (ratio.low or 0) <= 3 <= (ratio.high or 0) else "not reproduced",
        ),
        Claim(
            "θ for all 135 identities",
            "§4.1, Tables 1–2",
            f"θ can be given for {len(published.scored) - len(undefined)}; for {len(undefined)} no "
            "random attribute was marked, and 30 have a single stereotype, which the paper "
            "leaves out.",
            "partly",
        ),
        Claim(
            "Images of Togolese, Zimbabwean, Swedes and Danish show only stereotypical attributes "
            "(θ infinite)",
            "§4.1",
            "No random attribute was marked, in "
            f"{min(published[name].tendency.random.n for name in named)} ratings or more each; "
            f"likelihoods up to {100 * max(upper):.0f} % remain possible, so θ is not defined.",
            "partly" if set(named) <= undefined else "not reproduced",
        ),
        Claim(
            "Nigerians are 27 times more likely to be shown with stereotypes",
            "§4.1",
            f"{_ratio(nigerian)} as published, {_ratio(plain)} by default: the random marks "
            "are so few that the ratio says little.",
            "reproduced",
        ),
    )


def _likely(analysis: Analysis) -> tuple[Claim, ...]:
    poor = next(row for row in analysis["Bangladeshi"].attributes if row.attribute == "poor")
    sudanese = [row.attribute for row in analysis["Sudanese"].attributes if row.marked][:4]
    wanted = {"dark", "thin", "skinny", "underweight"}
    share = poor.likelihood
    low, high = 100 * (share.low or 0), 100 * (share.high or 0)
    return (
        Claim(
            "“poor” has a likelihood of about .5 for Bangladeshi",
            "§4.1",
            f"{share.value or 0:.2f} ({low:.0f} to {high:.0f} %).",
            "reproduced" if abs((share.value or 0) - 0.5) <= 0.055 else "not reproduced",
        ),
        Claim(
            "The four most likely attributes of Sudanese are words for dark skin and thinness",
            "§4.1",
            f"{len(wanted & set(sudanese))} of the four words named are our four most likely.",
            "reproduced" if wanted == set(sudanese) else "partly",
        ),
    )


def _offensiveness(analysis: Analysis) -> tuple[Claim, ...]:
    readings = [
        ("as printed", [(row, row.offensiveness.as_printed) for row in analysis.scored]),
        (
            "of the stereotypes",
            [(row, row.offensiveness.of_stereotypes) for row in analysis.scored],
        ),
    ]
    words, hits = [], []
    for name, scores in readings:
        rank = ranks([(row.identity, score) for row, score in scores])
        total = len(rank)
        top = sum(rank.get(identity, 1e9) <= 5 for identity in MOST_OFFENSIVE)
        bottom = sum(rank.get(identity, 0) > total - 5 for identity in LEAST_OFFENSIVE)
        hits.append(top + bottom)
        places = [str(rank.get(identity, "–")) for identity in (*MOST_OFFENSIVE, *LEAST_OFFENSIVE)]
        words.append(
            f"{name}: ranks {', '.join(places[:5])} and {', '.join(places[5:])} of {total}"
        )
    contrasts = [region_contrast(analysis.scored, reading) for reading in ("printed", "listed")]
    above = [estimate.low is not None and estimate.low > 0 for estimate in contrasts]
    return (
        Claim(
            "Most offensive: Jordanian, Uruguayan, Gabonese, Laotian, Albanian; least: "
            "Australian, Swedes, Danish, Norwegian, Nepalese",
            "§4.1, Fig. 8",
            "; ".join(words) + ". Neither reading gives this ranking.",
            "reproduced" if max(hits) == 10 else "not reproduced",
        ),
        Claim(
            "Depictions are more offensive for Africa, South America and South-East Asia",
            "§4.1",
            "Those regions against all others, on SeeGULL's scale up to 4: "
            + "; ".join(
                f"{name} {_signed(estimate)}"
                for (name, _), estimate in zip(readings, contrasts, strict=True)
            )
            + ".",
            "reproduced" if all(above) else "partly" if any(above) else "not reproduced",
        ),
    )


def _ratio(estimate: Estimate) -> str:
    if estimate.value is None:
        return "not defined"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.1f}"
    return f"{estimate.value:.1f} ({estimate.low:.1f} to {estimate.high:.1f})"


def _signed(estimate: Estimate) -> str:
    numbers = [estimate.value, estimate.low, estimate.high]
    if any(number is None for number in numbers):
        return "not defined"
    value, low, high = (f"{number:+.2f}".replace("-", "−") for number in numbers)
    return f"{value} ({low} to {high})"
