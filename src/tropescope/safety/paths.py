"""Names from a table of metadata, turned into paths that cannot leave their folder."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

from tropescope.errors import ModelError

LONGEST_NAME = 1024
LONGEST_PART = 255


def safe_join(root: Path, name: str, *, where: str = "") -> Path:
    """The path of `name` below `root`; raises a `ModelError` that begins with `where`.

    Refused are absolute names (of any operating system), `..`, NUL, over-long names, and symbolic
    links that lead out of the root. A name that does not exist is fine here. A backslash is an
    ordinary character of a name except where it makes the name absolute or climb on Windows.
    """
    problem = _problem_with_name(name)
    if problem is None:
        path = root / name
        try:
            if path.resolve().is_relative_to(root.resolve()):
                return path
            problem = "it is a symbolic link that leads out of the folder"
        except (OSError, RuntimeError, ValueError) as error:
            problem = f"it cannot be followed ({type(error).__name__})"
    shown = name if len(name) <= 80 else name[:77] + "…"
    raise ModelError(
        f"{where + ': ' if where else ''}the file name {shown!r} is refused: {problem}",
        fix=f"use names relative to {root.name or root}, such as images/0001.png, "
        "and copy the files into that folder",
    )


def _problem_with_name(name: str) -> str | None:
    if not name:
        return "it is empty"
    if "\0" in name:
        return "it contains a NUL character"
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        return "it contains half of a surrogate pair"
    if len(encoded) > LONGEST_NAME:
        return f"it is longer than {LONGEST_NAME} bytes"
    windows = PureWindowsPath(name)
    if name.startswith("/") or windows.drive or windows.root:
        return "it is absolute"
    if ".." in PurePosixPath(name).parts or ".." in windows.parts:
        return "it contains '..'"
    if any(len(part.encode()) > LONGEST_PART for part in PurePosixPath(name).parts):
        return f"a part of it is longer than {LONGEST_PART} bytes"
    return None
