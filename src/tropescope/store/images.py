"""Images as content-addressed files.

An image is named by the hash of its decoded pixels, so equal pictures are stored once and a number
can always be traced to the picture behind it. The hash of the file itself is kept beside it in the
tables, so that a changed byte is detected even where the pixels stay the same.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tropescope.errors import Corruption, ImageError
from tropescope.safety.images import decode_image
from tropescope.store.atomic import write_atomically


@dataclass(frozen=True, slots=True)
class StoredImage:
    pixels_sha256: str
    file_sha256: str
    path: str
    """Relative to the run folder."""
    width: int
    height: int


def pixels_hash(pixels: NDArray[np.uint8]) -> str:
    """SHA-256 over the shape and the RGB bytes."""
    total = hashlib.sha256(f"{pixels.shape[0]}x{pixels.shape[1]}:".encode())
    total.update(np.ascontiguousarray(pixels).data)
    return total.hexdigest()


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels, "RGB").save(buffer, format="PNG", compress_level=3)
    return buffer.getvalue()


def _shows(content: bytes, name: str) -> bool:
    """Whether a stored file still holds the picture it is named after."""
    try:
        return bool(content) and pixels_hash(decode_image(content, name=name).pixels) == name
    except ImageError:
        return False


class ImageStore:
    def __init__(self, root: Path) -> None:
        self.root = root

    def put(
        self, pixels: NDArray[np.uint8], *, encoded: bytes | None = None, suffix: str = ".png"
    ) -> StoredImage:
        """Store an image; the original file's bytes where it came as a file, else a PNG."""
        name = pixels_hash(pixels)
        path = Path("images", name[:2], name + suffix)
        target = self.root / path
        content = target.read_bytes() if target.exists() else b""
        if not _shows(content, name):
            content = encode_png(pixels) if encoded is None else encoded
            write_atomically(target, content)
        return StoredImage(
            pixels_sha256=name,
            file_sha256=hashlib.sha256(content).hexdigest(),
            path=path.as_posix(),
            width=pixels.shape[1],
            height=pixels.shape[0],
        )

    def read(self, path: str) -> NDArray[np.uint8]:
        """The pixels of a stored image."""
        return decode_image(self.read_bytes(path), name=path).pixels

    def read_bytes(self, path: str) -> bytes:
        try:
            return (self.root / path).read_bytes()
        except FileNotFoundError:
            raise Corruption(
                f"the image {path} is missing from the run folder",
                fix="run `tropescope verify` to see what else is missing",
            ) from None
