"""Hashes of plain data, independent of key order and platform."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any


def canonical_json(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(data: Any) -> str:
    """SHA-256 of JSON data."""
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()


def digest_lines(lines: Iterable[str]) -> str:
    """SHA-256 of a long sequence of texts, without joining it in memory."""
    total = hashlib.sha256()
    for line in lines:
        total.update(line.encode())
        total.update(b"\n")
    return total.hexdigest()
