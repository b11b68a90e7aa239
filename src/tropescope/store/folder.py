"""The run folder: what lies where, and which version wrote it.

study.yaml       the study as the user wrote it
format.json      version of this layout
manifest.json    machine, versions, times; never compared
ledger.jsonl     what was done, when, in which attempt; never compared
images/ab/….png  content-addressed images
tables/*.parquet one sorted table per finished stage
parts/           unfinished stages
results.json     every estimate
seal.json        hashes of everything that is compared, once the run is finished
report.html
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tropescope.errors import OldFormat, StoreError
from tropescope.store.atomic import write_atomically, write_if_changed
from tropescope.store.images import ImageStore

FORMAT = 1


@dataclass(frozen=True, slots=True)
class RunFolder:
    root: Path

    @property
    def study(self) -> Path:
        return self.root / "study.yaml"

    @property
    def manifest(self) -> Path:
        return self.root / "manifest.json"

    @property
    def ledger(self) -> Path:
        return self.root / "ledger.jsonl"

    @property
    def fingerprints(self) -> Path:
        return self.root / "fingerprints.json"

    @property
    def results(self) -> Path:
        return self.root / "results.json"

    @property
    def report(self) -> Path:
        return self.root / "report.html"

    @property
    def images(self) -> ImageStore:
        return ImageStore(self.root)

    def table(self, name: str) -> Path:
        return self.root / "tables" / f"{name}.parquet"

    def parts(self, name: str) -> Path:
        return self.root / "parts" / name

    def create(self) -> None:
        """Make the folder, or check that an existing one can be used."""
        marker = self.root / "format.json"
        if marker.exists():
            self.require()
            return
        if self.root.exists() and any(p.name != "lock" for p in self.root.iterdir()):
            raise StoreError(
                f"{self.root} is not empty and is not a run folder",
                fix="choose a new folder with --out",
            )
        write_atomically(marker, json.dumps({"format": FORMAT}).encode() + b"\n")

    def require(self) -> None:
        """Check that this is a run folder of a version that can be read."""
        marker = self.root / "format.json"
        try:
            found = json.loads(marker.read_text("utf-8"))["format"]
        except OSError:
            raise StoreError(
                f"{str(self.root)[:300]} is not a run folder (no format.json)",
                fix="give the folder that `tropescope run` printed",
            ) from None
        except (ValueError, KeyError, TypeError):
            raise StoreError(f"{marker} is damaged", fix="restore it from a backup") from None
        if found != FORMAT:
            raise OldFormat(
                f"{self.root} was written in format {found}; this version reads format {FORMAT}",
                fix="open it with the version named in its manifest.json, or run the study again",
            )

    def remove_leftovers(self, *, images: bool) -> None:
        """Remove what a killed process left half written; the caller holds the folder's lock.

        Looking through the images takes a moment in a large run and is only needed where images
        were still being made.
        """
        patterns = [".part-*", "tables/.part-*", "parts/*/.part-*", "traces/*/.part-*"]
        for pattern in [*patterns, *(["images/*/.part-*"] if images else [])]:
            for path in self.root.glob(pattern):
                path.unlink(missing_ok=True)

    @property
    def seal(self) -> Path:
        return self.root / "seal.json"

    def unseal(self) -> None:
        """Take the seal off before anything under it is changed."""
        self.seal.unlink(missing_ok=True)

    def manifest_facts(self) -> dict[str, Any]:
        """What is known of the machine; a damaged manifest is started anew, it decides nothing."""
        try:
            facts = json.loads(self.manifest.read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return facts if isinstance(facts, dict) else {}

    def update_manifest(self, **facts: Any) -> None:
        known = {**self.manifest_facts(), **facts}
        text = json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        write_if_changed(self.manifest, text.encode())
