"""Templates to HTML: everything from outside is escaped, and cannot hide or break anything.

The content security policy allows exactly the style sheet and the script of the page, by hash, and
images inside it. Nothing can be loaded or sent, and no other script can run.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tropescope.findings import wording
from tropescope.report.chart import CLASSES

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

#: A sign for each kind of answer, so that none is told by colour alone.
SIGNS = {
    "found": "▲",
    "less": "▼",
    "undecided": "?",
    "excluded": "○",
    "no reference": "·",
    "not defined": "∅",
}
LABELS = {
    "found": "more than the world",
    "less": "less than the world",
    "undecided": "undecided",
    "excluded": "excess excluded",
    "no reference": "no reference",
    "not defined": "not defined",
}


def clean(value: Any) -> Any:
    """Text without characters that HTML cannot hold; everything else unchanged."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return _UNPRINTABLE.sub("\ufffd", value)
    return value


def short(text: object, length: int = 80) -> str:
    """Text cut to a length that cannot break a layout."""
    whole = str(clean(str(text)))
    return whole if len(whole) <= length else whole[: length - 1].rstrip() + "…"


@cache
def environment() -> Environment:
    env = Environment(
        loader=PackageLoader("tropescope.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=clean,
    )
    env.filters["short"] = short
    for name in ("percent", "percent_range", "points", "points_range", "score", "score_range"):
        env.globals[name] = getattr(wording, name)
    env.globals.update(
        probability=wording.probability,
        places_for=wording.places_for,
        level_words=wording.level_words,
        counted=wording.counted,
        signs=SIGNS,
        labels=LABELS,
        classes=CLASSES,
    )
    return env


def render(template: str, **values: object) -> Markup:
    return Markup(environment().get_template(template).render(**values))  # noqa: S704


@cache
def asset(name: str) -> Markup:
    """A file of ours that stands in the page as it is."""
    text = resources.files("tropescope.report").joinpath("assets", name).read_text("utf-8")
    if "</" in text:
        raise AssertionError(f"{name} would end its own element")
    return Markup(text)  # noqa: S704


def content_security_policy() -> str:
    def source(name: str) -> str:
        digest = hashlib.sha256(asset(name).encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"

    return (
        f"default-src 'none'; img-src data:; style-src {source('report.css')}; "
        f"script-src {source('report.js')}; base-uri 'none'; form-action 'none'"
    )
