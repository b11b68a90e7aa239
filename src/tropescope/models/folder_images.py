"""A folder of images as an audited model: what exists is answered, nothing is made."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from tropescope.errors import ImageError, ModelError
from tropescope.models.entry import OpenContext
from tropescope.models.folder import FolderEntry
from tropescope.models.folder_metadata import ImageRow, Metadata, fold, read_metadata
from tropescope.models.protocol import Outcome, PromptProblem, Request
from tropescope.safety.images import decode_image, read_image_file
from tropescope.safety.paths import safe_join

# Finding near prompts costs time for each pair; beyond these numbers it helps nobody.
_MOST_HINTS = 5
_MOST_COMPARED = 2000


class FolderImages:
    """`TextToImage` for images made elsewhere. The replicate of a request says which image."""

    batch_matters = False

    def __init__(self, entry: FolderEntry, context: OpenContext) -> None:
        self._entry = entry
        self._folder = context.folder / entry.path
        self._fingerprints = context.fingerprints
        self._planned: dict[str, str] = {}
        self._asked_by_concept: dict[str, str] = {}

    def identity(self) -> dict[str, Any]:
        """The same for every folder: the contents of the images, in their keys, tell them apart."""
        return {"adapter": "folder"}

    def check_prompts(self, prompts: Sequence[str]) -> list[PromptProblem]:
        known = self._metadata.by_prompt
        if self._metadata.by_concept:
            # Some rows name only a concept, and which prompts belong to it is not known here.
            return []
        problems: list[PromptProblem] = []
        for prompt in prompts:
            if fold(prompt) not in known:
                hint = _nearest(prompt, known) if len(problems) < _MOST_HINTS else ""
                message = f"{self._metadata.name} has no image for this prompt{hint}"
                problems.append(PromptProblem(prompt, "error", message))
        return problems

    def sources(self, prompt: str, concept: str) -> list[str]:
        """A fingerprint of every image there is for a prompt, in the order of the metadata.

        It covers all that the folder says of the image. Equal images of one prompt are told apart
        by their number, so that each counts.
        """
        asked, rows = self._rows(prompt, concept)
        fingerprints = []
        copies: Counter[str] = Counter()
        for row in rows:
            content = [self._digest(row), row.outcome, row.reason, row.labels, asked]
            text = json.dumps(content)
            copies[text] += 1
            fingerprints.append(hashlib.sha256(f"{copies[text]}{text}".encode()).hexdigest())
        return fingerprints

    def generate(self, requests: Sequence[Request]) -> Iterator[tuple[Request, Outcome]]:
        for request in requests:
            _, rows = self._rows(request.prompt, str(request.details.get("concept", "")))
            replicate = int(request.details.get("replicate", 0))
            if 0 <= replicate < len(rows):
                yield request, self._outcome(rows[replicate])
            else:
                reason = f"{self._metadata.name} has {len(rows)} images for this prompt"
                yield request, Outcome("failed", reason=f"{reason}, not {replicate + 1}")

    def facts(self) -> dict[str, Any]:
        return {"metadata": self._metadata.name, "rows": self._metadata.rows}

    def close(self) -> None:
        pass

    @cached_property
    def _metadata(self) -> Metadata:
        return read_metadata(self._folder, name=self._entry.metadata, columns=self._entry.columns)

    def _rows(self, prompt: str, concept: str) -> tuple[str, list[ImageRow]]:
        """What the rows were found by, and the rows."""
        folded = fold(prompt)
        rows = self._metadata.by_prompt.get(folded)
        if rows is not None:
            return folded, rows
        rows = self._metadata.by_concept.get(concept)
        if rows is None:
            return folded, []
        before = self._asked_by_concept.setdefault(concept, folded)
        if before != folded:
            raise ModelError(
                f"{self._metadata.name} names the images of {concept!r} by concept only, but the "
                f"study asks for it in several ways: {before!r}, {folded!r}",
                fix="add a column with the prompt of each image, or keep one template; "
                "otherwise the same images would be counted for every template",
            )
        return concept, rows

    def _digest(self, row: ImageRow) -> str:
        if not row.file:
            return ""
        try:
            digest = self._fingerprints.of_file(safe_join(self._folder, row.file))
        except OSError as error:
            raise ModelError(
                f"cannot read the image {row.file!r}: {error.strerror or error}",
                fix="check that the file exists and that you may read it",
            ) from None
        self._planned[row.file] = digest
        return digest

    def _outcome(self, row: ImageRow) -> Outcome:
        facts = {"labels": dict(row.labels)} if row.labels else {}
        if not row.file:
            return Outcome(row.outcome, reason=row.reason, facts=facts)
        path = safe_join(self._folder, row.file)
        try:
            data = read_image_file(path, name=row.file)
            planned = self._planned.get(row.file)
            if planned is not None and hashlib.sha256(data).hexdigest() != planned:
                reason = f"the image {row.file!r} was changed while the study ran; run it again"
                return Outcome("failed", reason=reason)
            image = decode_image(data, name=row.file)
        except ImageError as problem:
            if row.outcome == "generated":
                return Outcome("invalid", reason=problem.message, facts=facts)
            return Outcome(row.outcome, reason=row.reason or problem.message, facts=facts)
        return Outcome(
            row.outcome,
            pixels=image.pixels,
            encoded=data,
            suffix=image.suffix,
            reason=row.reason,
            facts=facts,
        )


def _nearest(prompt: str, known: dict[str, list[ImageRow]]) -> str:
    candidates = list(known)[:_MOST_COMPARED]
    near = difflib.get_close_matches(fold(prompt)[:500], candidates, n=2, cutoff=0.6)
    return f"; nearest: {', '.join(repr(text[:120]) for text in near)}" if near else ""
