"""From results and a run folder to report.html."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from tropescope.findings.answers import Answer, answers_of, by_strength, main_estimator
from tropescope.findings.results import Results
from tropescope.findings.summary import summary_of
from tropescope.report.chart import SYMBOLS
from tropescope.report.inside import inside_of
from tropescope.report.missing import OUTCOMES, missing_of
from tropescope.report.overview import overviews
from tropescope.report.pictures import Evidence, Gallery
from tropescope.report.references import references_of
from tropescope.report.rendering import asset, content_security_policy, render
from tropescope.report.sections import (
    ConceptView,
    SectionWriter,
    columns_of,
    concept_views,
    details_that_fit,
)
from tropescope.report.settings import settings_of
from tropescope.report.thumbnails import choose
from tropescope.store.atomic import write_if_changed
from tropescope.store.folder import RunFolder
from tropescope.study.definition import Study

#: A report is never larger than this many bytes.
LIMIT = 5_000_000
#: Of the whole, what numbers and charts may take before pictures get their share.
_TEXT_SHARE = 0.78
_SPARE = 1_000
_OPEN_GALLERIES = 3


def write_report(
    folder: RunFolder, results: Results, study: Study, *, facts: Mapping[str, Any]
) -> Path:
    """Write report.html into the run folder, unless it is there with the same bytes.

    `facts` are further settings to print, such as versions; they must not contain times.
    """
    content = report_html(folder, results, study, facts=facts)
    write_if_changed(folder.report, content)
    return folder.report


def report_html(
    folder: RunFolder,
    results: Results,
    study: Study,
    *,
    facts: Mapping[str, Any],
    limit: int = LIMIT,
) -> bytes:
    """The report as bytes, at most `limit` of them."""
    every = answers_of(results)
    main = main_estimator(results)
    answers = [answer for answer in every if answer.rate.estimator == main]
    views = concept_views(results, study, every, main=main)
    references = references_of(answers)
    writer = SectionWriter(views, columns_of(every), references)
    phrases = {name: concept.phrase for name, concept in study.concepts.items()}
    evidence = Evidence(folder, results)
    strongest = [view.name for view in sorted(views, key=lambda view: -view.strength)]
    values: dict[str, object] = {
        "study": study,
        "results": results,
        "summary": summary_of(results, phrases=phrases),
        "phrases": phrases,
        "anchors": {view.name: view.anchor for view in views},
        "answers": answers,
        "models": list(dict.fromkeys(answer.model for answer in answers)),
        "overviews": overviews(answers, strongest=strongest),
        "references": references,
        "missing": missing_of(folder, results, answers),
        "outcomes": OUTCOMES,
        "settings": settings_of(folder, results, study, facts),
        "columns": columns_of(every),
        "main_estimator": main,
        "css": asset("report.css"),
        "script": asset("report.js"),
        "policy": content_security_policy(),
        "symbols": SYMBOLS,
        "inside": inside_of(folder, results, evidence, phrases=phrases, limit=limit),
    }
    shell = _page(values, (), Markup(""), {})
    details = details_that_fit(views, writer, room=int(limit * _TEXT_SHARE) - len(shell))
    text = sum(len(writer.section(view, details[view.name]).encode()) for view in views)
    ordered = fair_order(views, answers, shown={n for n, d in details.items() if d != "none"})

    def galleries_at(each: int) -> list[Gallery]:
        offered = (evidence.gallery(answer, each=each) for answer in ordered)
        return [gallery for gallery in offered if gallery.pictures]

    shown = choose(
        galleries_at,
        folder.images,
        room=limit - len(shell) - text - _SPARE - 200 * len(views),
        markup_of=lambda gallery, names: writer.gallery(gallery, names, is_open=True),
    )
    by_concept: dict[str, list[Gallery]] = defaultdict(list)
    for gallery in shown.galleries:
        by_concept[gallery.answer.concept].append(gallery)
    unfolded = frozenset(id(gallery) for gallery in shown.galleries[:_OPEN_GALLERIES])
    sections = [
        writer.section(
            view,
            details[view.name],
            galleries=_in_reading_order(view, by_concept[view.name]),
            names=shown.sprite.names,
            open_galleries=unfolded,
        )
        for view in views
    ]
    cut = {
        "concepts": sum(detail == "none" for detail in details.values()),
        "charts": sum(detail == "numbers" for detail in details.values()),
        "galleries": shown.left_out,
    }
    content = _page(values, sections, shown.sprite.markup, cut)
    if len(content) > limit:
        raise AssertionError(f"a report of {len(content):,} bytes; the limit is {limit:,}")
    return content


def fair_order(
    views: Sequence[ConceptView], answers: Sequence[Answer], *, shown: set[str]
) -> list[Answer]:
    """Answers in the order in which they get pictures.

    First the strongest one of every concept and model, then every second strongest, and so on, so
    that no concept is without pictures while another has many.
    """
    rounds: dict[int, list[Answer]] = defaultdict(list)
    seen: dict[tuple[str, str], int] = defaultdict(int)
    for answer in by_strength(answer for answer in answers if answer.concept in shown):
        place = (answer.model, answer.concept)
        rounds[seen[place]].append(answer)
        seen[place] += 1
    return [answer for number in sorted(rounds) for answer in rounds[number]]


def _in_reading_order(view: ConceptView, galleries: Sequence[Gallery]) -> list[Gallery]:
    position = {id(answer.rate): i for i, answer in enumerate(view.answers)}
    return sorted(galleries, key=lambda gallery: position[id(gallery.answer.rate)])


def _page(
    values: Mapping[str, object],
    sections: Sequence[Markup],
    sprite: Markup,
    cut: Mapping[str, int],
) -> bytes:
    page = render("page.html.j2", **values, sections=sections, sprite=sprite, cut=cut)
    return page.encode("utf-8")
