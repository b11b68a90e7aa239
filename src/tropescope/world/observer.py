"""The perfect observer: reads labels, captions, answers, boxes and masks exactly from the facts.

Told to err, it reads each label wrongly at the given rates, always in the same way for the same
image and label, and its captions and answers follow from what it believes to see.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from tropescope.errors import PromptError, StoreError
from tropescope.world.definition import World, load_world
from tropescope.world.parts import Part, parts_of
from tropescope.world.phrases import COLOURED, object_phrase, phrase_of, with_article
from tropescope.world.questions import (
    Question,
    all_questions,
    appearance_words,
    gender_word,
)
from tropescope.world.scene import Codes, Scene, labels_of
from tropescope.world.understanding import Understanding
from tropescope.world.vocabulary import split_words


class Observer:
    """Looks at facts of the perfect generator (`{"scene": …}`).

    `marks_gender` is the share of captions that say woman or man rather than person.
    """

    def __init__(
        self,
        *,
        sensitivity: float = 1.0,
        specificity: float = 1.0,
        marks_gender: float = 1.0,
        world: World | None = None,
    ) -> None:
        self.world = load_world() if world is None else world
        self.sensitivity = sensitivity
        self.specificity = specificity
        self.marks_gender = marks_gender
        self._understand = Understanding(self.world)
        self._questions = all_questions(self.world)
        self._codes = Codes(self.world)

    def scene(self, facts: Mapping[str, Any]) -> Scene:
        if "scene" not in facts:
            raise StoreError(
                "these facts hold no scene of the reference world",
                fix="the perfect observer can only look at images of the perfect generator",
            )
        return Scene.from_json(facts["scene"])

    def labels(self, facts: Mapping[str, Any], *, key: str = "") -> dict[str, bool]:
        """What the observer sees: attributes, woman or man, objects. `key` names the image."""
        truth = labels_of(self._codes.encode([self.scene(facts)]))[0]
        seen = {name: self._read(name, label, key) for name, label in truth.items()}
        return seen | {"man": not seen["woman"]}

    def _read(self, name: str, label: bool, key: str) -> bool:
        right = self.sensitivity if label else self.specificity
        if right >= 1:
            return label
        return label if _share(f"observer\0{key}\0{name}") < right else not label

    def presence(self, facts: Mapping[str, Any], what: str, *, key: str = "") -> bool:
        """Whether the picture shows an attribute or object, given by name or by a text (d+)."""
        labels = self.labels(facts, key=key)
        if what in labels:
            return labels[what]
        meaning = self._understand(what)
        demands = [(entry.attribute, entry.present) for entry in meaning.wanted]
        demands += [(entry.name, entry.present) for entry in meaning.objects]
        if meaning.gender in ("woman", "man"):
            demands.append((meaning.gender, True))
        if not demands:
            raise PromptError(
                f"{what!r} names nothing that could be seen", fix="name an attribute or an object"
            )
        return all(labels[name] == present for name, present in demands)

    def caption(self, facts: Mapping[str, Any], *, key: str = "") -> str:
        """One true sentence: who, up to three attributes, one object.

        The profession is named where the picture shows its dress or one of its things.
        """
        scene, labels = self.scene(facts), self.labels(facts, key=key)
        worn = [name for name in self.world.attributes if labels[name]]
        worn.sort(key=lambda name: _share(f"caption\0{key}\0{name}"))
        clauses = [self._clause(scene, name) for name in worn[:3]]
        beside = [name for name in self.world.objects if labels[name]]
        if beside:
            clauses.append(object_phrase(beside[0]))
        marked = _share(f"gender\0{key}") < self.marks_gender
        return " ".join(["a photo of", self._subject(scene, labels, marked), *clauses])

    def _subject(self, scene: Scene, labels: Mapping[str, bool], marked: bool) -> str:
        gender = gender_word(labels)
        if scene.profession is not None and self._shows(scene.profession, labels):
            adjective = self.world.genders[gender].adjective if marked else ""
            return with_article(f"{adjective} {scene.profession}".strip())
        return with_article(gender if marked else "person")

    def _shows(self, profession: str, labels: Mapping[str, bool]) -> bool:
        entry = self.world.professions[profession]
        signs = (*entry.attributes, *entry.tools.things)
        return any(labels[name] for name in signs)

    def _clause(self, scene: Scene, attribute: str) -> str:
        colour = None
        if (
            attribute in COLOURED
            and getattr(scene, self.world.attributes[attribute].slot) == attribute
        ):
            slot = self.world.attributes[attribute].slot
            colour = str(getattr(scene, f"{slot}_colour"))
        return phrase_of(self.world, attribute).present(colour)

    def answer(self, facts: Mapping[str, Any], question: str, *, key: str = "") -> str:
        """The answer to one of the world's questions."""
        known = self._questions.get(tuple(split_words(question)))
        if known is None:
            self._understand.vocabulary.check(question)
            raise PromptError(
                f"the question {question!r} is not one the world can answer",
                fix="see tropescope.world.questions.all_questions",
            )
        return self._answer(known, self.labels(facts, key=key), key)

    def _answer(self, question: Question, labels: Mapping[str, bool], key: str) -> str:
        if question.kind == "gender":
            return gender_word(labels)
        if question.kind == "beside":
            beside = [name for name in self.world.objects if labels[name]]
            return beside[0] if beside else "nothing"
        if question.kind == "yes or no":
            return "yes" if labels[question.about] else "no"
        share = _share(f"appearance\0{key}")
        if share < 0.5:
            return gender_word(labels)
        words = appearance_words(labels)
        return words[int((share - 0.5) * 2 * len(words))]

    def parts(self, facts: Mapping[str, Any]) -> list[Part]:
        """Everything visible with its exact box and mask."""
        return parts_of(self.world, self.scene(facts))

    def objects(self, facts: Mapping[str, Any]) -> list[Part]:
        """The things beside the person, with boxes and masks."""
        return [part for part in self.parts(facts) if part.kind == "object"]


def _share(text: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
