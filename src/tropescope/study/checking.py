"""Rules of a study that span several of its parts."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator

from tropescope.study.definition import Study

Place = tuple[str | int, ...]


def check(study: Study) -> list[tuple[Place, str]]:
    """All problems, each with the place in the study it belongs to."""
    return [
        *_attributes_exist(study),
        *_concepts_differ(study),
        *_references_fit(study),
        *_references_cover(study),
        *_estimand_possible(study),
        *_traces_possible(study),
        *_labels_possible(study),
    ]


def _unknown(kind: str, name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"unknown {kind} '{name}'" + (f", did you mean '{near[0]}'?" if near else "")


def _attributes_exist(study: Study) -> Iterator[tuple[Place, str]]:
    for name, concept in study.concepts.items():
        if len(set(concept.attributes or ())) < len(concept.attributes or ()):
            yield ("concepts", name, "attributes"), "an attribute stands twice in the list"
        for i, attribute in enumerate(concept.attributes or ()):
            if attribute not in study.attributes:
                place = ("concepts", name, "attributes", i)
                yield place, _unknown("attribute", attribute, study.attributes)


def _concepts_differ(study: Study) -> Iterator[tuple[Place, str]]:
    seen: dict[str, str] = {}
    for name, concept in study.concepts.items():
        phrase = " ".join(concept.phrase.casefold().split())
        if phrase in seen:
            yield (
                ("concepts", name),
                f"concepts '{seen[phrase]}' and '{name}' have the same phrase '{concept.phrase}'; "
                "remove one of them",
            )
        seen.setdefault(phrase, name)


def _references_fit(study: Study) -> Iterator[tuple[Place, str]]:
    seen: set[tuple[str, str]] = set()
    for i, reference in enumerate(study.references):
        place = ("references", i)
        if reference.concept != "*" and reference.concept not in study.concepts:
            yield (*place, "concept"), _unknown("concept", reference.concept, study.concepts)
        if reference.attribute not in study.attributes:
            yield (
                (*place, "attribute"),
                _unknown("attribute", reference.attribute, study.attributes),
            )
        pair = (reference.concept, reference.attribute)
        if pair in seen:
            yield place, f"a second reference for {pair[0]} × {pair[1]}; remove one of them"
        seen.add(pair)


def _references_cover(study: Study) -> Iterator[tuple[Place, str]]:
    if "stereotype_score" not in study.measures:
        return
    missing = [
        f"{concept} × {attribute}"
        for concept, attribute in study.pairs()
        if attribute in study.attributes and study.reference(concept, attribute) is None
    ]
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if missing[5:] else "")
        yield (
            ("references",),
            f"the stereotype score needs a reference rate for every pair; missing: {shown}. Add a "
            "reference (kind: assumed if nobody knows), limit the concept's `attributes:`, or use "
            "`measures: [attribute_rate]`",
        )


def _estimand_possible(study: Study) -> Iterator[tuple[Place, str]]:
    if study.prompts.estimand == "sample" and len(study.prompts.templates) < 2:
        yield (
            ("prompts", "estimand"),
            "one template cannot stand for a sample of ways to ask; use `estimand: fixed` or add "
            "templates",
        )


def _labels_possible(study: Study) -> Iterator[tuple[Place, str]]:
    """Models that paint from noise bring no labels; whole folders of them would be missing."""
    if study.judge.kind != "labels":
        return
    for name, entry in study.models.items():
        if entry.adapter in ("diffusers", "openai"):
            yield (
                ("judge",),
                f"images of '{name}' come without labels; use `judge: {{kind: clip, id: …}}`",
            )


def _traces_possible(study: Study) -> Iterator[tuple[Place, str]]:
    if study.trace is None:
        return
    for i, attribute in enumerate(study.trace.attributes or ()):
        if attribute not in study.attributes:
            place = ("trace", "attributes", i)
            yield place, _unknown("attribute", attribute, study.attributes)
    if all(entry.adapter != "diffusers" for entry in study.models.values()):
        yield ("trace",), "no model of this study can be traced; only diffusers models can"
