"""Writing files so that a reader sees the whole file or none of it, also after a power cut."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tropescope.errors import StoreError


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals into one clear message."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(
                f"no space left on the disk while writing {path}",
                fix="make space and run the same command again; all finished items are kept",
            ) from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise StoreError(
                f"cannot write {path}: {error.strerror}",
                fix="choose a folder that you may write to",
            ) from error
        raise StoreError(
            f"cannot write {str(path)[:300]}: {error.strerror or error}",
            fix="choose another folder",
        ) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it is synced and takes its place."""
    with store_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".part-", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            temporary.chmod(0o644)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_if_changed(path: Path, content: bytes) -> bool:
    """Write only when the bytes differ, so that a rerun leaves the file untouched."""
    if path.exists() and path.read_bytes() == content:
        return False
    write_atomically(path, content)
    return True
