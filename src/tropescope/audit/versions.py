"""Versions of the packages that can change a number."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

#: By the part of the installation they belong to; "" is always installed.
PACKAGES = {
    "": ("numpy", "scipy", "pillow", "pyarrow"),
    "models": ("torch", "diffusers", "transformers", "accelerate", "safetensors", "sentencepiece"),
}


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def package_versions() -> dict[str, str]:
    """Python and every package of the list that is installed."""
    found = {name: installed(name) for names in PACKAGES.values() for name in names}
    return {
        "python": platform.python_version(),
        **{name: number for name, number in found.items() if number is not None},
    }
