"""The judging stage: from images to presence scores, by the judge that the study names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tropescope.engine.progress import Progress
from tropescope.errors import MeasureError, PromptError
from tropescope.features.embeddings import embed_images
from tropescope.features.presence import (
    is_current,
    judged_attributes,
    label_scores,
    presence_fingerprint,
    text_scores,
    write_presence_table,
)
from tropescope.features.rows import unique_images
from tropescope.models.clip import ClipEncoder
from tropescope.models.entry import OpenContext
from tropescope.store.atomic import write_if_changed
from tropescope.store.folder import RunFolder
from tropescope.study.definition import ClipJudge, LabelJudge, Study


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the presence table was made from."""

    fingerprint: str
    judge: dict[str, Any]
    logit_scale: float | None
    facts: dict[str, Any]


class LabelReader:
    """Reads labels that are known for certain."""

    def __init__(self, settings: LabelJudge) -> None:
        self._settings = settings

    def check(self, study: Study) -> None:
        del study

    def judge(
        self, study: Study, folder: RunFolder, images_fingerprint: str, progress: Progress
    ) -> Judgement:
        del progress
        settings = self._settings.model_dump()
        attributes = list(study.attributes)
        fingerprint = presence_fingerprint(images_fingerprint, settings, attributes)
        if not is_current(folder, fingerprint):
            write_presence_table(
                folder,
                attributes,
                lambda row: label_scores(
                    row,
                    attributes,
                    sensitivity=self._settings.sensitivity,
                    specificity=self._settings.specificity,
                ),
                fingerprint=fingerprint,
            )
            unlabelled = [name for name in attributes if name not in judged_attributes(folder)]
            if unlabelled:
                raise MeasureError(
                    f"no image has a label for {', '.join(map(repr, unlabelled))}",
                    fix="add label columns of these names to the folder's metadata, correct the "
                    "names, or use a CLIP judge",
                )
        return Judgement(fingerprint, settings, None, {})


class TextJudge:
    """Compares images with the texts d+ and d− in the space of a CLIP or SigLIP encoder."""

    def __init__(self, settings: ClipJudge, context: OpenContext) -> None:
        self._settings = settings
        self._encoder = ClipEncoder(
            settings.id, revision=settings.revision, dtype=settings.dtype, context=context
        )

    def check(self, study: Study) -> None:
        """Refuse texts that the encoder would cut off or not know, before any image is made."""
        self._encoder.check_kind()
        texts = [t for a in study.attributes.values() for t in (a.present, a.absent)]
        problems = [p for p in self._encoder.check_texts(texts) if p.level == "error"]
        if problems:
            lines = [f"judge '{self._settings.id}': {p.message}: {p.prompt!r}" for p in problems]
            raise PromptError("\n".join(lines[:10]), fix="change these attribute texts")

    def judge(
        self, study: Study, folder: RunFolder, images_fingerprint: str, progress: Progress
    ) -> Judgement:
        identity = self._encoder.identity()
        attributes = study.attributes
        texts = {name: [a.present, a.absent] for name, a in attributes.items()}
        fingerprint = presence_fingerprint(images_fingerprint, identity, list(texts.items()))
        memory = folder.root / "tables" / "judge.json"
        facts: dict[str, Any] = {}
        known = _remembered(memory)
        if not (is_current(folder, fingerprint) and known.get("presence") == fingerprint):
            embeddings = embed_images(
                unique_images(folder),
                self._encoder,
                batch_size=self._settings.batch_size,
                folder=folder,
                progress=progress,
            )
            scores = text_scores(
                embeddings,
                self._encoder.encode_texts([a.present for a in attributes.values()]),
                self._encoder.encode_texts([a.absent for a in attributes.values()]),
            )
            write_presence_table(
                folder,
                list(attributes),
                lambda row: scores[str(row.pixels_sha256)],
                fingerprint=fingerprint,
            )
            known = {"presence": fingerprint, "logit_scale": self._encoder.logit_scale}
            write_if_changed(memory, json.dumps(known).encode() + b"\n")
            facts = self._encoder.facts()
            self._encoder.close()
        scale = float(known["logit_scale"])
        return Judgement(fingerprint, {"id": self._settings.id, **identity}, scale, facts)


def _remembered(path: Path) -> dict[str, Any]:
    """The judge's temperature, and for which presence table it was read."""
    try:
        known = json.loads(path.read_text("ascii"))
    except (FileNotFoundError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def open_judge(study: Study, context: OpenContext) -> LabelReader | TextJudge:
    if isinstance(study.judge, LabelJudge):
        return LabelReader(study.judge)
    return TextJudge(study.judge, context)
