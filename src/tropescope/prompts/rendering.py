"""A study's prompts: every template with every concept."""

from __future__ import annotations

from dataclasses import dataclass

from tropescope.prompts.articles import correct_article
from tropescope.study.definition import Study


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt. Prompts of the same `pair_group` share their seeds, so their images are pairs."""

    text: str
    concept: str
    template: str
    pair_group: str


def render(template: str, phrase: str, *, articles: str) -> str:
    """A template with a concept's phrase in it; its article corrected unless 'published'.

    >>> render("a photo of a {concept}", "Iranian person", articles="corrected")
    'a photo of an Iranian person'
    """
    before, _, after = template.partition("{concept}")
    if articles == "corrected":
        before = correct_article(before, phrase)
    return before + phrase + after


def prompts_of(study: Study) -> list[Prompt]:
    """All prompts, concept by concept in the study's order.

    The pair group is the template, so images of different concepts (and models) made from one
    template and replicate start from the same noise.
    """
    return [
        Prompt(
            text=render(template, concept.phrase, articles=study.prompts.articles),
            concept=name,
            template=template,
            pair_group=template,
        )
        for name, concept in study.concepts.items()
        for template in study.prompts.templates
    ]
