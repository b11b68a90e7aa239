"""Prompts, captions and questions as token numbers, thousands at once, without Python per text.

Two ways to pair texts with pictures. *Prompt first*: draw a prompt, then a person for it
(`draw_prompts`, `write_prompts`): a generator trained so learns exactly P(picture | prompt).
*Picture first*: describe what is there (`describe`) or ask about it (`ask`): for judges, captioners
and question answerers; presence and absence of each attribute are named equally often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tropescope.world.definition import World
from tropescope.world.meaning import Meaning
from tropescope.world.palette import CLOTH
from tropescope.world.questions import APPEARANCE_WORDS
from tropescope.world.sampling import draw_scenes
from tropescope.world.sampling_torch import PromptBatch, TorchSampler
from tropescope.world.scene import COLUMN
from tropescope.world.tables import tables_of
from tropescope.world.text_tables import text_tables
from tropescope.world.visibility import attribute_is_seen
from tropescope.world.vocabulary import Vocabulary

Tensor = Any
"""torch.Tensor; torch is an optional dependency and has no types where it is missing."""


@dataclass(frozen=True, kw_only=True)
class PromptMix:
    """How often prompts name each thing."""

    nation: float = 0.6
    profession: float = 0.25
    gender: tuple[float, float, float, float] = (0.2, 0.2, 0.5, 0.1)
    """woman, man, person, non-binary person."""
    place: float = 0.25
    template: float = 0.9
    demands: tuple[float, ...] = (0.4, 0.35, 0.2, 0.05)
    """Chances of naming 0, 1, 2, 3 attributes."""
    object: float = 0.2
    colour: float = 0.3


class TorchTexts:
    """Writes texts about scenes on a device. `length` is that of all token rows."""

    def __init__(self, sampler: TorchSampler, *, length: int = 32) -> None:
        world = sampler.world
        self.world: World = world
        self.sampler = sampler
        self.device = sampler.device
        self.length = length
        self.vocabulary = Vocabulary(world)
        tables = text_tables(world)
        self.openings = self._long(tables.openings)
        self.people = self._long(tables.people)
        self.workers = self._long(tables.workers)
        self.clauses = self._long(tables.clauses)
        self.beside = self._long(tables.beside)
        self.places = self._long(tables.places)
        self.questions = self._long(tables.questions)
        self.colour_column = self._colour_columns()
        self.label_tables = self._label_tables()
        self.rarity = self._rarity()

    def draw_prompts(
        self, count: int, *, generator: Any = None, mix: PromptMix | None = None
    ) -> PromptBatch:
        """Random prompts. Attributes that cannot be shown together are not asked for together."""
        chances = PromptMix() if mix is None else mix
        world = self.world

        def some(share: float, number: int) -> Tensor:
            picked = torch.randint(number, (count,), device=self.device, generator=generator)
            named = self._uniform((count,), generator) < share
            return torch.where(named, picked, -1)

        gender = self._pick(chances.gender, count, generator)
        amount = self._pick(chances.demands, count, generator)
        most = len(chances.demands) - 1
        order = self._uniform((count, len(world.attributes)), generator).argsort(-1)[:, :most]
        state = torch.randint(2, order.shape, device=self.device, generator=generator)
        wanted = torch.arange(most, device=self.device)[None, :] < amount[:, None]
        demands = torch.where(wanted, 2 * order + state, -1)
        return PromptBatch(
            nation=some(chances.nation, len(world.nations)),
            profession=some(chances.profession, len(world.professions)),
            gender=gender,
            place=some(chances.place, len(world.places)),
            template=some(chances.template, len(world.templates.list)),
            demands=self._possible(demands),
            object=some(chances.object, len(world.objects)),
        )

    def write_prompts(
        self, prompts: PromptBatch, codes: Tensor, *, generator: Any = None, colour: float = 0.3
    ) -> Tensor:
        """The prompts as tokens. A named colour is the one that was drawn: the same condition."""
        person = self.people[prompts.nation, prompts.gender]
        worker = self.workers[prompts.nation, prompts.profession, prompts.gender]
        works = (prompts.profession >= 0)[:, None]
        width = max(person.shape[1], worker.shape[1])
        who = torch.where(works, _widened(worker, width), _widened(person, width))
        clauses = self._clauses(prompts.demands, codes, colour, generator)
        how = torch.randint(2, (len(prompts),), device=self.device, generator=generator)
        return self._assembled(
            [
                self.openings[prompts.template],
                who,
                *clauses,
                self.beside[prompts.object, how],
                self.places[prompts.place],
            ]
        )

    def labels(self, codes: Tensor) -> Tensor:
        """[scene, attribute]: what each picture shows."""
        return torch.stack(
            [table[tuple(codes[:, c] for c in columns)] for columns, table in self.label_tables], 1
        )

    def describe(
        self, codes: Tensor, *, clauses: int = 2, generator: Any = None, colour: float = 0.3
    ) -> Tensor:
        """Captions: gender word, some attributes present or absent, perhaps an object.

        An attribute is chosen with a weight of one over how common its state is, so that rare
        presences are named as often as common absences.
        """
        count = codes.shape[0]
        absent = (~self.labels(codes)).long()
        weight = self.rarity[torch.arange(absent.shape[1], device=self.device)[None, :], absent]
        noise = -(-self._uniform(weight.shape, generator).clamp_min(1e-12).log()).log()
        chosen = (weight + noise).topk(clauses, dim=-1).indices
        demands = 2 * chosen + absent.gather(1, chosen)
        opening = torch.randint(
            self.openings.shape[0], (count,), device=self.device, generator=generator
        )
        nobody = torch.full((count,), -1, device=self.device)
        side = self._uniform((count,), generator) < 0.5
        thing = torch.where(side, codes[:, COLUMN["left"]], codes[:, COLUMN["right"]])
        thing = torch.where(self._uniform((count,), generator) < 0.5, thing, -1)
        how = torch.zeros_like(thing)
        return self._assembled(
            [
                self.openings[opening],
                self.people[nobody, codes[:, COLUMN["appearance"]]],
                *self._clauses(demands, codes, colour, generator),
                self.beside[thing, how],
            ]
        )

    def ask(self, codes: Tensor, *, generator: Any = None) -> tuple[Tensor, Tensor]:
        """Questions as tokens and one-word answers as numbers, yes and no equally often."""
        count, ids = codes.shape[0], self.vocabulary.ids
        attributes, objects = len(self.world.attributes), len(self.world.objects)
        shown = torch.cat([self.labels(codes), self._beside(codes)], 1)
        yes = self._uniform((count,), generator) < 0.5
        fitting = (shown == yes[:, None]).double() + 1e-9
        thing = torch.multinomial(fitting, 1, generator=generator)[:, 0]
        kind = self._pick((0.6, 0.2, 0.1, 0.1), count, generator)
        question = torch.where(kind == 0, thing, attributes + objects + kind - 1)
        said = shown.gather(1, thing[:, None])[:, 0]
        names = torch.tensor(
            [*(ids[name] for name in self.world.objects), ids["nothing"]], device=self.device
        )
        beside = self._beside(codes).long()
        first = torch.where(beside.any(1), beside.argmax(1), objects)
        genders = torch.tensor([ids["woman"], ids["man"]], device=self.device)
        gender = genders[codes[:, COLUMN["appearance"]]]
        answers = torch.stack(
            [
                torch.where(said, ids["yes"], ids["no"]),
                self._appearance(codes, gender, generator),
                gender,
                names[first],
            ]
        )
        rows = torch.arange(count, device=self.device)
        return self._assembled([self.questions[question]]), answers[kind, rows]

    def _appearance(self, codes: Tensor, gender: Tensor, generator: Any) -> Tensor:
        labels, names = self.labels(codes), list(self.world.attributes)
        true = torch.stack(
            [labels[:, names.index(label)] == state for _, label, state in APPEARANCE_WORDS], 1
        )
        words = torch.tensor([self.vocabulary.ids[w] for w, _, _ in APPEARANCE_WORDS])
        pick = torch.multinomial(true.double(), 1, generator=generator)[:, 0]
        word = words.to(self.device)[pick]
        return torch.where(self._uniform(gender.shape, generator) < 0.5, gender, word)

    def _beside(self, codes: Tensor) -> Tensor:
        objects = torch.arange(len(self.world.objects), device=self.device)[None, :]
        left, right = codes[:, COLUMN["left"], None], codes[:, COLUMN["right"], None]
        return (left == objects) | (right == objects)

    def _clauses(
        self, demands: Tensor, codes: Tensor, share: float, generator: Any
    ) -> list[Tensor]:
        """Token rows of each demand, some with the colour that the scene has."""
        attribute = torch.div(demands, 2, rounding_mode="floor")
        drawn = torch.gather(codes, 1, self.colour_column[attribute])
        named = self._uniform(demands.shape, generator) < share
        colour = torch.where(named & (demands >= 0), drawn, len(CLOTH))
        return list(self.clauses[demands, colour].unbind(1))

    def _assembled(self, segments: list[Tensor]) -> Tensor:
        """Start, all segments without their padding, end; too long a text is cut before its end."""
        words = torch.cat(segments, 1)
        order = (words == 0).long().argsort(dim=1, stable=True)
        packed = _widened(words.gather(1, order), self.length - 2)[:, : self.length - 2]
        count = (packed > 0).sum(1)
        tokens = torch.zeros((len(words), self.length), dtype=torch.long, device=self.device)
        tokens[:, 0] = 1
        tokens[:, 1:-1] = packed
        tokens.scatter_(1, (count + 1)[:, None], len(self.vocabulary) - 1)
        return tokens

    def _possible(self, demands: Tensor) -> Tensor:
        """Only the first demand where all of them together allow no drawing."""
        sampler = self.sampler
        possible = sampler.allowed_head[demands].all(1).flatten(1).any(1)
        for table in sampler.allowed.values():
            possible = possible & table[demands].all(1).any(1)
        alone = demands.clone()
        alone[:, 1:] = -1
        return torch.where(possible[:, None], demands, alone)

    def _colour_columns(self) -> Tensor:
        """For each attribute the column with its colour (any column where it has none)."""
        columns = [
            COLUMN["headwear_colour" if entry.slot == "headwear" else "clothing_colour"]
            for entry in self.world.attributes.values()
        ]
        return torch.tensor([*columns, COLUMN["clothing_colour"]], device=self.device)

    def _label_tables(self) -> list[tuple[tuple[int, ...], Tensor]]:
        """For each attribute the columns that decide it and the answer for their codes."""
        tables = []
        for name, entry in self.world.attributes.items():
            if entry.slot in ("headwear", "hair", "hair_colour"):
                columns = tuple(COLUMN[slot] for slot in ("headwear", "hair", "hair_colour"))
                table = torch.as_tensor(attribute_is_seen(self.world, name))
            else:
                categories = self.world.categories(entry.slot)
                columns = (COLUMN[entry.slot],)
                table = torch.arange(len(categories)) == categories.index(name)
            tables.append((columns, table.to(self.device)))
        return tables

    def _rarity(self) -> Tensor:
        """[attribute, present or absent]: minus the logarithm of how common that is."""
        world = self.world
        meanings = [Meaning(), *(Meaning(nation=nation) for nation in world.nations)]
        tables = tables_of(world, "training")
        rates = torch.stack(
            [
                torch.as_tensor(draw_scenes(tables, meaning, range(500)).labels()).double().mean(0)
                for meaning in meanings
            ]
        )
        rate = rates.mean(0).clamp(0.01, 0.99)
        return -torch.stack([rate, 1 - rate], 1).log().to(self.device)

    def _long(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=torch.long).to(self.device)

    def _uniform(self, shape: Any, generator: Any) -> Tensor:
        return torch.rand(tuple(shape), device=self.device, generator=generator)

    def _pick(self, chances: tuple[float, ...], count: int, generator: Any) -> Tensor:
        edges = torch.tensor(chances, device=self.device).cumsum(0)[:-1]
        return (self._uniform((count,), generator)[:, None] >= edges).sum(-1)


def _widened(rows: Tensor, width: int) -> Tensor:
    missing = width - rows.shape[1]
    return torch.nn.functional.pad(rows, (0, missing)) if missing > 0 else rows
