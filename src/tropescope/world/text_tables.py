"""All phrases of the world as token numbers, padded, so that texts are written by look-up alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropescope.world.definition import World
from tropescope.world.palette import CLOTH
from tropescope.world.phrases import COLOURED, object_phrase, phrase_of, subject
from tropescope.world.questions import (
    APPEARANCE_QUESTION,
    BESIDE_QUESTION,
    GENDER_QUESTION,
    yes_no_question,
)
from tropescope.world.vocabulary import Vocabulary

Tokens = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TextTables:
    """Token numbers, 0 where a phrase is shorter. The last entry of an axis says nothing.

    `openings[template]`, `people[nation, gender]`, `workers[nation, profession, gender]`,
    `clauses[2·attribute + absent, colour]`, `beside[object, how]` (how: 0 "with a …", 1 the
    activity), `places[place]`; `questions[thing]` are the yes-or-no questions about attributes and
    objects, then appearance, gender, beside.
    """

    openings: Tokens
    people: Tokens
    workers: Tokens
    clauses: Tokens
    beside: Tokens
    places: Tokens
    questions: Tokens


def text_tables(world: World) -> TextTables:
    words = Vocabulary(world)

    def table(texts: Sequence[str]) -> Tokens:
        numbers = [words.word_ids(text) for text in texts]
        rows = np.zeros((len(numbers), max(1, *(len(row) for row in numbers))), np.int64)
        for index, row in enumerate(numbers):
            rows[index, : len(row)] = row
        return rows

    def nested(texts: Sequence[Sequence[str]]) -> Tokens:
        flat = table([text for row in texts for text in row])
        return flat.reshape(len(texts), len(texts[0]), -1)

    nations = [*world.nations, None]
    genders = list(world.genders)
    people = nested([[subject(nation=n, gender=g) for g in genders] for n in nations])
    workers = nested(
        [
            [
                subject(nation=n, profession=p, adjective=world.genders[g].adjective)
                for p in world.professions
                for g in genders
            ]
            for n in nations
        ]
    ).reshape(len(nations), len(world.professions), len(genders), -1)
    clauses = []
    for name in world.attributes:
        phrase = phrase_of(world, name)
        coloured = [phrase.present(c if name in COLOURED else None) for c in CLOTH]
        clauses.append([*coloured, phrase.present()])
        clauses.append([phrase.absent()] * (len(CLOTH) + 1))
    clauses.append([""] * (len(CLOTH) + 1))
    things = [[object_phrase(o), entry.activity] for o, entry in world.objects.items()]
    return TextTables(
        openings=table([*(entry.text for entry in world.templates.list), ""]),
        people=people,
        workers=workers,
        clauses=nested(clauses),
        beside=nested([*things, ["", ""]]),
        places=table([*world.places, ""]),
        questions=table(
            [
                *(yes_no_question(world, name) for name in world.attributes),
                *(yes_no_question(world, name) for name in world.objects),
                APPEARANCE_QUESTION,
                GENDER_QUESTION,
                BESIDE_QUESTION,
            ]
        ),
    )
