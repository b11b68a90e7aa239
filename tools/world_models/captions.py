"""Captions as token ids, put together on the device from pre-tokenised pieces.

    opening · subject · up to three attribute clauses · object clause · place

Only words of the world's vocabulary occur, and the clauses are those of `tropescope.world.phrases`.
"""

from __future__ import annotations

import torch
from scenes import DEMANDS, Asked, SceneSampler
from torch import Tensor

from tropescope.world.palette import CLOTH
from tropescope.world.phrases import COLOURED, object_phrase, phrase_of, subject, with_article
from tropescope.world.questions import (
    APPEARANCE_QUESTION,
    APPEARANCE_WORDS,
    BESIDE_QUESTION,
    GENDER_QUESTION,
    yes_no_question,
)
from tropescope.world.scene import COLUMN
from tropescope.world.vocabulary import Vocabulary, split_words

START = 1


class CaptionWriter:
    def __init__(self, sampler: SceneSampler, length: int) -> None:
        self.sampler = sampler
        self.world = world = sampler.world
        self.device = sampler.device
        self.length = length
        self.words = Vocabulary(world)
        self.end = len(self.words)  # after the unknown word, which takes the end's old number
        colours = [None, *CLOTH]
        self.openings = self._rows([t.text for t in world.templates.list] + [""], 4)
        subjects = [
            subject(
                nation=nation,
                profession=profession,
                gender=gender,
                adjective=world.genders[gender].adjective,
            )
            for nation in [*world.nations, None]
            for profession in [*world.professions, None]
            for gender in world.genders
        ]
        self.subjects = self._rows(subjects, 5)
        present, absent, without = [], [], []
        for name in world.attributes:
            phrase = phrase_of(world, name)
            for colour in colours:
                wear = colour if name in COLOURED else None
                present.append(phrase.present(wear))
            absent.append(phrase.absent())
            noun = f"{phrase.article} {phrase.noun}".strip()
            without.append(f"without {noun}")
        self.present = self._rows([*present, ""], 4)
        self.absent = self._rows([*absent, ""], 4)
        self.without = self._rows([*without, ""], 4)
        names = list(world.objects)
        self.object_with = self._rows([*(object_phrase(name) for name in names), ""], 4)
        self.object_active = self._rows([*(world.objects[n].activity for n in names), ""], 4)
        self.object_no = self._rows([*(f"with no {name}" for name in names), ""], 4)
        lacking = [f"without {with_article(name)}" for name in names]
        self.object_without = self._rows([*lacking, ""], 4)
        self.places = self._rows([*world.places, ""], 3)
        self.conjunction = self._rows(["", "and"], 1)
        attributes = list(world.attributes.values())
        slots = {"headwear": 0, "clothing": 1}
        self.colour_slot = torch.tensor(
            [slots.get(entry.slot, 0) for entry in attributes], device=self.device
        )
        self.colours = len(colours)
        self._question_tables()
        self._sign_tables()

    def _rows(self, texts: list[str], width: int) -> Tensor:
        rows = []
        for text in texts:
            ids = [self.words.ids[word] for word in split_words(text)]
            if len(ids) > width:
                raise ValueError(f"{text!r} has more than {width} words")
            rows.append(ids + [0] * (width - len(ids)))
        return torch.tensor(rows, device=self.device)

    def ids(self, text: str) -> list[int]:
        """One text as the tokenizer would give it, padded."""
        ids = [START, *(self.words.ids[word] for word in split_words(text)), self.end]
        return ids + [0] * (self.length - len(ids))

    def texts(self, texts: list[str]) -> Tensor:
        return torch.tensor([self.ids(text) for text in texts], device=self.device)

    def joined(self, pieces: list[Tensor]) -> Tensor:
        """Start, all words in order without the gaps, end, padding."""
        row = torch.cat(pieces, 1)
        batch = len(row)
        word = row > 0
        place = torch.where(word, word.cumsum(1).clamp_max(self.length - 1), self.length)
        out = torch.zeros(batch, self.length + 1, dtype=torch.long, device=self.device)
        out.scatter_(1, place, row)
        out[:, 0] = START
        last = (word.sum(1) + 1).clamp_max(self.length - 1)
        out.scatter_(1, last[:, None], self.end)
        return out[:, : self.length].contiguous()

    # -- captions that state what was asked --------------------------------------------------------

    def write(self, asked: Asked, codes: Tensor, *, flip: Tensor | None = None) -> Tensor:
        """The prompt itself. `flip[b]` names one demand whose presence is turned round."""
        batch = len(codes)
        rand = torch.rand(batch, 4 + 2 * DEMANDS, device=self.device)
        world = self.world
        who = asked.nation * (len(world.professions) + 1) + asked.profession
        pieces = [self.openings[asked.template]]
        pieces.append(self.subjects[who * len(world.genders) + asked.gender])
        for k in range(DEMANDS):
            demand = asked.attributes[:, k]
            if flip is not None:
                turned = torch.where(demand < 2 * len(world.attributes), demand ^ 1, demand)
                demand = torch.where(flip == k, turned, demand)
            if k:
                said = demand < 2 * len(world.attributes)
                pieces.append(self.conjunction[((rand[:, 2 * k] < 0.15) & said).long()])
            pieces.append(self._clause(demand, codes, rand[:, 2 * k + 1]))
        pieces.append(self._object_clause(asked.objects, rand[:, -1]))
        pieces.append(self.places[asked.place])
        return self.joined(pieces)

    def _clause(self, demand: Tensor, codes: Tensor, number: Tensor) -> Tensor:
        attribute, gone = demand // 2, demand % 2
        count = len(self.world.attributes)
        is_present = (attribute < count) & (gone == 0)
        is_absent = (attribute < count) & (gone == 1)
        said = self.present[self._present_row(attribute, is_present, codes, number < 0.35)]
        no = self.absent[torch.where(is_absent & (number < 0.75), attribute, count)]
        lacking = self.without[torch.where(is_absent & (number >= 0.75), attribute, count)]
        return said + no + lacking  # at most one of them is not empty

    def _present_row(
        self, attribute: Tensor, used: Tensor, codes: Tensor, coloured: Tensor
    ) -> Tensor:
        count = len(self.world.attributes)
        safe = attribute.clamp_max(count - 1)
        head, dress = codes[:, COLUMN["headwear_colour"]], codes[:, COLUMN["clothing_colour"]]
        colour = torch.where(self.colour_slot[safe] == 0, head, dress) + 1
        row = safe * self.colours + torch.where(coloured, colour, 0)
        return torch.where(used, row, count * self.colours)

    def _object_clause(self, thing: Tensor, number: Tensor) -> Tensor:
        name, gone = thing // 2, thing % 2
        count = len(self.world.objects)
        there = (name < count) & (gone == 0)
        away = (name < count) & (gone == 1)
        first, second = number < 0.5, number >= 0.5
        return (
            self.object_with[torch.where(there & first, name, count)]
            + self.object_active[torch.where(there & second, name, count)]
            + self.object_no[torch.where(away & first, name, count)]
            + self.object_without[torch.where(away & second, name, count)]
        )

    # -- captions that state what is seen ----------------------------------------------------------

    def _sign_tables(self) -> None:
        """Which attributes and objects show a profession."""
        world = self.world
        signs = torch.zeros(len(world.professions) + 1, len(world.attributes))
        tools = torch.zeros(len(world.professions) + 1, len(world.objects))
        for p, entry in enumerate(world.professions.values()):
            for name in entry.attributes:
                signs[p, list(world.attributes).index(name)] = 1
            for name in entry.tools.things:
                tools[p, list(world.objects).index(name)] = 1
        self.signs, self.tools = signs.to(self.device), tools.to(self.device)
        self.photo = self._rows(["a photo of"], 3)

    def describe(self, codes: Tensor) -> Tensor:
        """As the perfect observer's captions: who, up to three things worn or shown, one object."""
        world, sampler = self.world, self.sampler
        batch = len(codes)
        labels, things = sampler.labels(codes), sampler.object_labels(codes)
        job = codes[:, COLUMN["profession"]]
        job = torch.where(job < 0, len(world.professions), job)
        evident = (self.signs[job] * labels).sum(1) + (self.tools[job] * things).sum(1) > 0
        job = torch.where(evident, job, len(world.professions))
        nobody = len(world.nations) * (len(world.professions) + 1)
        who = (nobody + job) * len(world.genders) + codes[:, COLUMN["appearance"]]
        scores = torch.rand(labels.shape, device=self.device) * labels
        best, order = scores.topk(DEMANDS, dim=1)
        everything = torch.ones(batch, dtype=torch.bool, device=self.device)
        pieces = [self.photo.expand(batch, -1), self.subjects[who]]
        for k in range(DEMANDS):
            row = self._present_row(order[:, k], best[:, k] > 0, codes, everything)
            pieces.append(self.present[row])
        first = torch.where(things.any(1), things.int().argmax(1), len(world.objects))
        pieces.append(self.object_with[first])
        return self.joined(pieces)

    # -- questions and answers ---------------------------------------------------------------------

    def _question_tables(self) -> None:
        world = self.world
        about = [*world.attributes, *world.objects]
        texts = [yes_no_question(world, name) for name in about]
        texts += [GENDER_QUESTION, BESIDE_QUESTION, APPEARANCE_QUESTION]
        self.question_texts = texts
        self.questions = torch.stack([self.texts([text])[0] for text in texts])[:, :12]
        word = self.words.ids
        self.yes, self.no = word["yes"], word["no"]
        self.gender_words = torch.tensor([word["woman"], word["man"]], device=self.device)
        beside = [*(word[name] for name in world.objects), word["nothing"]]
        self.beside_words = torch.tensor(beside, device=self.device)
        ids = [word[name] for name, _, _ in APPEARANCE_WORDS]
        self.appearance_ids = torch.tensor(ids, device=self.device)
        attributes = list(world.attributes)
        columns = [attributes.index(label) for _, label, _ in APPEARANCE_WORDS]
        self.appearance_columns = torch.tensor(columns, device=self.device)
        states = [state for _, _, state in APPEARANCE_WORDS]
        self.appearance_states = torch.tensor(states, device=self.device)

    def ask_questions(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Random questions and one true answer each: question ids, answer word ids.

        Half of the yes-or-no questions are about something that is there.
        """
        sampler, batch = self.sampler, len(codes)
        labels = torch.cat([sampler.labels(codes), sampler.object_labels(codes)], 1)
        count = labels.shape[1]
        rand = torch.rand(batch, 4, device=self.device)
        there = torch.rand(labels.shape, device=self.device)
        wanted = torch.where(rand[:, :1] < 0.5, labels, ~labels)
        about = (there * wanted).argmax(1)
        answer = torch.where(labels.gather(1, about[:, None])[:, 0], self.yes, self.no)

        gender = self.gender_words[codes[:, COLUMN["appearance"]]]
        things = sampler.object_labels(codes)
        first = torch.where(things.any(1), things.int().argmax(1), things.shape[1])
        true = sampler.labels(codes)[:, self.appearance_columns] == self.appearance_states
        one = (torch.rand(true.shape, device=self.device) * true).argmax(1)
        appearance = torch.where(rand[:, 1] < 0.5, gender, self.appearance_ids[one])
        for offset, share, value in (
            (0, 0.08, gender),
            (1, 0.12, self.beside_words[first]),
            (2, 0.12, appearance),
        ):
            chosen = (rand[:, 2] >= (0, 0.08, 0.20)[offset]) & (
                rand[:, 2] < (0, 0.08, 0.20)[offset] + share
            )
            about = torch.where(chosen, count + offset, about)
            answer = torch.where(chosen, value, answer)
        return self.questions[about], answer
