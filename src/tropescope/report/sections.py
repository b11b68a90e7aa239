"""The part of the report about one concept: chart, numbers, pictures.

A study may have hundreds of concepts and the file a limited size. Every concept keeps its numbers
as long as there is room; charts go to the concepts with the strongest answers first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from tropescope.findings.answers import Answer
from tropescope.findings.results import Results
from tropescope.report.chart import Group, rate_chart
from tropescope.report.pictures import Gallery
from tropescope.report.references import References
from tropescope.report.rendering import render, short
from tropescope.study.definition import Study

Detail = Literal["full", "numbers", "none"]

#: With at most this many concepts all stand open.
_OPEN_CONCEPTS = 6
_OPEN_ROWS = 12


@dataclass(frozen=True)
class Sample:
    """How many images of one model stand behind a concept."""

    model: str
    usable: int
    missing: int


@dataclass(frozen=True)
class ConceptView:
    anchor: str
    name: str
    phrase: str
    answers: tuple[Answer, ...]
    """By the main estimator, attribute by attribute, models side by side."""
    rows: tuple[Answer, ...]
    """By all estimators."""
    samples: tuple[Sample, ...]

    @property
    def kinds(self) -> Counter[str]:
        return Counter(answer.kind for answer in self.answers)

    @property
    def strength(self) -> float:
        return max((answer.strength for answer in self.answers), default=-2.0)

    @property
    def groups(self) -> list[Group]:
        grouped: dict[str, list[Answer]] = {}
        for answer in self.answers:
            grouped.setdefault(answer.attribute, []).append(answer)
        return [
            Group(lanes[0].reference, lanes[0].zeta, tuple(lanes)) for lanes in grouped.values()
        ]


@dataclass(frozen=True)
class Columns:
    """Which columns the tables of this run need."""

    model: bool
    estimator: bool
    score: bool
    parity_gap: bool
    truth: bool


def columns_of(answers: Sequence[Answer]) -> Columns:
    return Columns(
        model=len({answer.model for answer in answers}) > 1,
        estimator=len({answer.rate.estimator for answer in answers}) > 1,
        score=any(answer.score is not None for answer in answers),
        parity_gap=any(answer.parity_gap is not None for answer in answers),
        truth=any(answer.rate.truth is not None for answer in answers),
    )


def concept_views(
    results: Results, study: Study, answers: Sequence[Answer], *, main: str
) -> list[ConceptView]:
    models = {name: i for i, name in enumerate(dict.fromkeys(a.model for a in answers))}
    attributes = {name: i for i, name in enumerate(dict.fromkeys(a.attribute for a in answers))}
    grouped: dict[str, list[Answer]] = {}
    for answer in answers:
        grouped.setdefault(answer.concept, []).append(answer)
    views = []
    for i, (name, members) in enumerate(grouped.items()):
        ordered = sorted(members, key=lambda a: (attributes[a.attribute], models[a.model]))
        concept = study.concepts.get(name)
        views.append(
            ConceptView(
                anchor=f"c{i + 1}",
                name=name,
                phrase=name if concept is None else concept.phrase,
                answers=tuple(a for a in ordered if a.rate.estimator == main),
                rows=tuple(ordered),
                samples=_samples(results, name),
            )
        )
    return views


def _samples(results: Results, concept: str) -> tuple[Sample, ...]:
    return tuple(
        Sample(cell.model, len(cell.keys), sum(map(len, cell.missing.values())))
        for cell in results.item_sets.values()
        if cell.concept == concept
    )


class SectionWriter:
    """Renders concepts of one run."""

    def __init__(
        self, views: Sequence[ConceptView], columns: Columns, references: References
    ) -> None:
        self._columns = columns
        self._references = references
        self._open = len(views) <= _OPEN_CONCEPTS
        self._anchors = {view.name: view.anchor for view in views}

    def section(
        self,
        view: ConceptView,
        detail: Detail,
        *,
        galleries: Sequence[Gallery] = (),
        names: Mapping[str, str] | None = None,
        open_galleries: frozenset[int] = frozenset(),
    ) -> Markup:
        if detail == "none":
            return Markup("")
        chart = None
        if detail == "full":
            chart = rate_chart(
                view.groups,
                title=f"Rates in images of {short(view.phrase)}",
                description="Dots are rates with their intervals, diamonds references; "
                "the table below has all numbers.",
            )
        pictures = [
            self.gallery(gallery, names or {}, is_open=id(gallery) in open_galleries)
            for gallery in galleries
        ]
        return render(
            "concept.html.j2",
            view=view,
            chart=chart,
            columns=self._columns,
            references=self._references,
            is_open=self._open,
            numbers_open=chart is None or len(view.rows) <= _OPEN_ROWS,
            pictures=pictures,
        )

    def gallery(
        self, gallery: Gallery, names: Mapping[str, str], *, is_open: bool = False
    ) -> Markup:
        return render(
            "gallery.html.j2",
            gallery=gallery,
            answer=gallery.answer,
            names=names,
            is_open=is_open,
            several_models=self._columns.model,
        )


def details_that_fit(
    views: Sequence[ConceptView], writer: SectionWriter, *, room: int
) -> dict[str, Detail]:
    """How much of each concept to show in `room` bytes; strongest answers first."""
    ordered = sorted(views, key=lambda view: -view.strength)
    chosen: dict[str, Detail] = {}
    numbers: dict[str, int] = {}
    used = 0
    for view in ordered:
        size = len(writer.section(view, "numbers").encode())
        chosen[view.name] = "numbers" if used + size <= room else "none"
        if chosen[view.name] == "numbers":
            used += size
            numbers[view.name] = size
    for view in ordered:
        if chosen[view.name] == "numbers":
            more = len(writer.section(view, "full").encode()) - numbers[view.name]
            if used + more <= room:
                used += more
                chosen[view.name] = "full"
    return chosen
