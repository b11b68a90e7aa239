"""Content hashes of files that stay outside the run folder: weights, imported images.

Hashing gigabytes at every start would make "rerunning does nothing" untrue in spirit, so a hash is
remembered together with the file's size and modification time, in one small file of the run folder.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from tropescope.store.atomic import write_atomically


class FileFingerprints:
    """SHA-256 of files, remembered in `memory` (or for this process only, without it)."""

    def __init__(self, memory: Path | None = None) -> None:
        self._memory = memory
        self._known: dict[str, tuple[int, int, str]] = {}
        self.commits: dict[str, str] = {}
        """Which commit a branch of the model hub stood for when this run began."""
        self._saved = ""
        if memory is not None and memory.exists():
            try:
                self._saved = memory.read_text("utf-8")
                stored = json.loads(self._saved)
                files = stored["files"].items()
                self._known = {p: (int(s), int(m), str(h)) for p, (s, m, h) in files}
                self.commits = {
                    str(name): str(commit) for name, commit in stored["commits"].items()
                }
            except (ValueError, TypeError, AttributeError, KeyError):
                self._known, self.commits = {}, {}

    def of_file(self, path: Path) -> str:
        status = path.stat()
        name = str(path.resolve())
        known = self._known.get(name)
        if known is not None and known[:2] == (status.st_size, status.st_mtime_ns):
            return known[2]
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._known[name] = (status.st_size, status.st_mtime_ns, digest)
        return digest

    def of_folder(self, folder: Path) -> str:
        """One hash over the names and contents of all files below a folder."""
        total = hashlib.sha256()
        seen: set[str] = set()
        for root, folders, files in os.walk(folder, followlinks=True):
            place = os.path.realpath(root)
            if place in seen:  # a link that leads back
                folders.clear()
                continue
            seen.add(place)
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(name for name in files if not name.startswith(".")):
                path = Path(root, name)
                total.update(f"{path.relative_to(folder)}\0{self.of_file(path)}\n".encode())
        return total.hexdigest()

    def save(self) -> None:
        stored = {"files": self._known, "commits": self.commits}
        text = json.dumps(stored, indent=0, sort_keys=True)
        if self._memory is not None and text != self._saved:
            write_atomically(self._memory, text.encode())
            self._saved = text
