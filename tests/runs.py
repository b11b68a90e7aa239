"""Small studies and comparisons of run folders, shared by end-to-end tests."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import yaml

#: What may differ between an interrupted and an uninterrupted run: times, attempts, machine.
NOT_COMPARED = ("ledger.jsonl", "manifest.json", "fingerprints.json", "lock")


def world_study(**changes: Any) -> dict[str, Any]:
    """A study of the reference world that needs no torch."""
    study: dict[str, Any] = {
        "study": "Hats of the reference world",
        "seed": 7,
        "models": {"planted": {"adapter": "world", "distribution": "training", "batch_size": 8}},
        "concepts": {"Kestran": "Kestran person", "Nolvar": "Nolvar person"},
        "prompts": {"templates": ["a photo of a {concept}", "a picture of a {concept}"]},
        "images_per_prompt": 10,
        "attributes": {
            "hat": {
                "present": "a photo of a person wearing a hat",
                "absent": "a photo of a person wearing no hat",
            },
            "moustache": {
                "present": "a photo of a person with a moustache",
                "absent": "a photo of a person with no moustache",
            },
        },
        "references": [
            {"concept": "*", "attribute": "hat", "value": 0.2, "source": "world", "kind": "census"},
            {
                "concept": "*",
                "attribute": "moustache",
                "value": 0.1,
                "source": "nobody knows",
                "kind": "assumed",
            },
        ],
        "judge": {"kind": "labels"},
    }
    return {**study, **changes}


def write_study(folder: Path, study: dict[str, Any], name: str = "study.yaml") -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(study, sort_keys=False), "utf-8")
    return path


def contents(run: Path, *, everything: bool = False) -> dict[str, str]:
    """Hash of every file of a run that must not depend on how it came about."""
    return {
        path.relative_to(run).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(run.rglob("*"))
        if path.is_file() and (everything or path.name not in NOT_COMPARED)
    }
