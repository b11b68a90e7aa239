"""report.html of an analysis: one file, offline, under a strict content security policy."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from tropescope.report.chart import SYMBOLS
from tropescope.report.rendering import asset, environment
from tropescope.version import __version__
from tropescope.visage import views
from tropescope.visage.analysis import Analysis
from tropescope.visage.captioned import Captioned
from tropescope.visage.charts import bar_chart
from tropescope.visage.claims import PRINTED_CONSENSUS, Claim
from tropescope.visage.inputs import Inputs
from tropescope.visage.map_views import map_views
from tropescope.visage.maps import shapes
from tropescope.visage.outline import CREDIT
from tropescope.visage.raters import likert_agreement

_LABELS = ("Strongly disagree", "Disagree", "Unsure", "Agree", "Strongly agree")


def report_html(
    inputs: Inputs,
    analysis: Analysis,
    claims: tuple[Claim, ...],
    captioned: Captioned | None = None,
    *,
    files: dict[str, str],
) -> bytes:
    """The page as bytes; the same inputs give the same bytes. `files` names what was read."""
    style = Markup(str(asset("report.css")) + "\n" + own_style())  # noqa: S704 - files of ours
    ordered = views.strongest(analysis)
    top = ordered[: views.most_in_overview()]
    numbers = {row.identity: number for number, row in enumerate(analysis.identities, start=1)}
    consensus = inputs.likert.consensus()
    page = (
        _environment()
        .get_template("visage.html.j2")
        .render(
            inputs=inputs,
            analysis=analysis,
            claims=claims,
            captioned=captioned,
            files=files,
            maps=map_views(analysis),
            shapes=shapes(),
            regions=views.region_views(analysis),
            top=top,
            top_chart=views.overview_chart(top),
            below=[row for row in ordered if row.verdict == "excluded"],
            anchors={name: views.anchor(number) for name, number in numbers.items()},
            panels={row.identity: views.panel(row) for row in analysis.identities},
            consensus=list(zip(_LABELS, consensus, PRINTED_CONSENSUS, strict=True)),
            consensus_chart=bar_chart(
                consensus,
                PRINTED_CONSENSUS if inputs.released else None,
                title="Share of attributes on which at least two raters agree, by label",
            ),
            likert=likert_agreement(inputs.likert, level=analysis.settings.level),
            views=views,
            symbols=SYMBOLS,
            css=style,
            script=asset("report.js"),
            policy=_policy(style),
            credit=CREDIT,
            version=__version__,
        )
    )
    return page.encode("utf-8")


@cache
def own_style() -> str:
    text = resources.files("tropescope.visage").joinpath("assets", "visage.css").read_text("utf-8")
    if "</" in text:
        raise AssertionError("visage.css would end its own element")
    return text


@cache
def _environment() -> Environment:
    """The main report's environment, which finds our templates too."""
    return environment().overlay(
        loader=ChoiceLoader(
            [
                PackageLoader("tropescope.visage", "templates"),
                PackageLoader("tropescope.report", "templates"),
            ]
        )
    )


def _policy(style: str) -> str:
    def source(text: str) -> str:
        digest = hashlib.sha256(text.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"

    return (
        f"default-src 'none'; img-src data:; style-src {source(style)}; "
        f"script-src {source(asset('report.js'))}; base-uri 'none'; form-action 'none'"
    )
