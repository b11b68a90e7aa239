"""The run folder: refused when it is not one, locked while in use, images by content."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tropescope.errors import Corruption, FolderLocked, OldFormat, StoreError
from tropescope.store.atomic import replacing, write_atomically, write_if_changed
from tropescope.store.folder import RunFolder
from tropescope.store.images import ImageStore
from tropescope.store.lock import folder_lock


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.docx").write_text("x")
    with pytest.raises(StoreError, match="not empty"):
        RunFolder(tmp_path).create()
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.docx"]


def test_an_older_format_is_refused_with_a_way_out(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.create()
    folder.create()
    (tmp_path / "format.json").write_text(json.dumps({"format": 0}))
    with pytest.raises(OldFormat, match="format 0"):
        folder.require()
    (tmp_path / "format.json").write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        folder.require()
    with pytest.raises(StoreError, match="not a run folder"):
        RunFolder(tmp_path / "elsewhere").require()


def _hold(folder: str, ready: object) -> None:
    with folder_lock(Path(folder)):
        ready.set()  # type: ignore[attr-defined]
        time.sleep(30)


def test_a_second_process_is_told_who_works_here(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(str(tmp_path), ready))
    holder.start()
    try:
        assert ready.wait(30)
        with pytest.raises(FolderLocked, match=f"pid {holder.pid}"), folder_lock(tmp_path):
            pass
    finally:
        holder.kill()
        holder.join()
    with folder_lock(tmp_path):
        pass


def test_equal_pictures_are_stored_once_and_original_files_kept(tmp_path: Path) -> None:
    store = ImageStore(tmp_path)
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    first = store.put(pixels)
    second = store.put(pixels.copy())
    assert first == second
    assert (first.width, first.height) == (4, 4)
    assert np.array_equal(store.read(first.path), pixels)
    assert len(list((tmp_path / "images").rglob("*.png"))) == 1
    other = store.put(pixels.reshape(2, 8, 3))
    assert other.pixels_sha256 != first.pixels_sha256
    with pytest.raises(Corruption, match="missing"):
        store.read("images/ab/none.png")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_atomically(path, b"old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_bytes(b"half of the new")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
    before = path.stat().st_mtime_ns
    assert not write_if_changed(path, b"old")
    assert path.stat().st_mtime_ns == before


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="mounting needs root")
def test_a_full_disk_gives_one_clear_message(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", mount], check=False, capture_output=True
    )
    if done.returncode:
        pytest.skip("this machine does not allow mounting")
    try:
        write_atomically(mount / "kept", b"k" * 1000)
        with pytest.raises(StoreError, match="no space left"):
            write_atomically(mount / "large", b"x" * 1_000_000)
        assert (mount / "kept").read_bytes() == b"k" * 1000
        assert [p.name for p in mount.iterdir()] == ["kept"]
    finally:
        subprocess.run(["umount", mount], check=False)
