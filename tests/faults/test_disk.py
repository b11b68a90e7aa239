"""A full disk and a folder that cannot be written: one clear message, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tropescope
from tropescope.errors import StoreError

from runs import contents, world_study, write_study

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="mounting a small disk needs root"
)


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("this machine does not allow mounting")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def remount(place: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", place], check=True)


def test_a_full_disk_stops_the_run_and_space_lets_it_continue(tmp_path: Path) -> None:
    study = write_study(tmp_path, world_study(images_per_prompt=40))
    clean = tropescope.run(study, out=tmp_path / "clean")
    with small_disk(tmp_path / "small", "400k") as disk:
        with pytest.raises(StoreError, match="no space left") as caught:
            tropescope.run(study, out=disk / "run")
        assert "make space and run the same command again" in str(caught.value)
        kept = len(list((disk / "run" / "images").rglob("*.png")))
        assert kept > 0
        remount(disk, "size=50m")
        run = tropescope.run(study, out=disk / "run")
        assert contents(run.path) == contents(clean.path)


def test_a_read_only_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    study = write_study(tmp_path, world_study())
    with small_disk(tmp_path / "small", "1m") as disk:
        remount(disk, "ro")
        with pytest.raises(StoreError, match="cannot write"):
            tropescope.run(study, out=disk / "run")
