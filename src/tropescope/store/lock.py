"""One process at a time works on a run folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tropescope.errors import FolderLocked
from tropescope.store.atomic import store_errors


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, or say at once who holds it. The lock ends with the process."""
    path = folder / "lock"
    with store_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(handle, 64).decode("ascii", "replace").strip() or "unknown"
            raise FolderLocked(
                f"another process ({holder}) is working on {folder}",
                fix="wait for it to finish, or choose another folder with --out",
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"pid {os.getpid()}\n".encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)
