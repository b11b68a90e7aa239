"""Bounded decoding of image files from outside: an API's answer, an imported folder.

The rules, each of them tested:

* PNG, JPEG and WebP only, recognised by content. Names and extensions are ignored.
* Size limits are applied to the header before anything is decoded. Decoding then needs at most
  about 24 bytes of memory per pixel, whatever the file contains.
* A file that is cut off is refused. So is a PNG with a wrong checksum anywhere. Damage inside the
  image data of JPEG and WebP, and rows that a PNG's writer never wrote, cannot always be seen;
  what decodes is taken as it is.
* Bytes after the end of the image are ignored.
* CMYK becomes RGB by the plain formula; colour profiles are not applied.
* 16-bit samples keep their high byte: scaled, not clipped.
* Palette and grey become RGB. Transparent pixels are laid over white.
* Of an animation the first frame is taken (of an animated PNG the one that plain viewers show).
* The EXIF orientation is applied; an unreadable EXIF block counts as absent.
* PNG texts and colour profiles that unpack to more than Pillow's limits are refused.
"""

from __future__ import annotations

import io
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

from tropescope.errors import ImageError
from tropescope.safety.image_headers import (
    Format,
    MalformedImageError,
    Structure,
    read_size,
    read_structure,
    recognise,
)

Suffix = Literal[".png", ".jpg", ".webp"]

_SUFFIXES: dict[Format, Suffix] = {"PNG": ".png", "JPEG": ".jpg", "WEBP": ".webp"}
# The classes themselves, not `Image.open`: no other format can be reached whatever the bytes say.
_READERS: dict[Format, type[ImageFile.ImageFile]] = {
    "PNG": PngImagePlugin.PngImageFile,
    "JPEG": JpegImagePlugin.JpegImageFile,
    "WEBP": WebPImagePlugin.WebPImageFile,
}
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_REPLACE = "replace the file, or leave it out"


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """The largest image that is accepted."""

    pixels: int = 64_000_000
    side: int = 16_384
    file_bytes: int = 64_000_000


DEFAULT = ImageLimits()


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """RGB pixels (height, width, 3) of uint8, and the extension that fits the file's content."""

    pixels: NDArray[np.uint8]
    suffix: Suffix


def decode_image(data: bytes, *, name: str, limits: ImageLimits = DEFAULT) -> DecodedImage:
    """Decode a file by the rules above, or raise an `ImageError` that names it."""
    _check_file_size(len(data), name, limits)
    try:
        kind = recognise(data)
        width, height = read_size(data, kind)
        _check_dimensions(width, height, name, limits)
        structure = read_structure(data, kind)
    except MalformedImageError as problem:
        fix = "export it again as PNG, JPEG or WebP, or leave it out"
        raise ImageError(f"cannot read the image {name!r}: {problem}", fix=fix) from None
    try:
        pixels = _decode(structure, kind, (width, height))
    except MemoryError:
        raise ImageError(
            f"not enough memory to decode the image {name!r} ({width} × {height} pixels)",
            fix="make the image smaller, or run where more memory is free",
        ) from None
    except Exception as problem:
        # On hostile input decoders raise anything from SyntaxError to OverflowError.
        text = str(problem) or type(problem).__name__
        raise ImageError(f"cannot decode the image {name!r}: {text}", fix=_REPLACE) from None
    return DecodedImage(pixels, _SUFFIXES[kind])


def read_image_file(path: Path, *, name: str, limits: ImageLimits = DEFAULT) -> bytes:
    """The bytes of a regular file no larger than the limits allow."""
    try:
        # Without O_NONBLOCK a named pipe in an imported folder would wait for ever.
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ImageError(f"{name!r} is not a regular file", fix=_REPLACE)
            _check_file_size(status.st_size, name, limits)
            data = file.read(limits.file_bytes + 1)
    except OSError as problem:
        raise ImageError(
            f"cannot read the image {name!r}: {problem.strerror or problem}",
            fix="check that the file exists and that you may read it",
        ) from None
    _check_file_size(len(data), name, limits)
    return data


def _check_file_size(size: int, name: str, limits: ImageLimits) -> None:
    if size > limits.file_bytes:
        raise ImageError(
            f"the image file {name!r} has more than {limits.file_bytes:,} bytes",
            fix="save it smaller (JPEG or WebP), or leave it out",
        )


def _check_dimensions(width: int, height: int, name: str, limits: ImageLimits) -> None:
    if width < 1 or height < 1:
        raise ImageError(f"the image {name!r} is {width} × {height} pixels", fix=_REPLACE)
    if max(width, height) > limits.side or width * height > limits.pixels:
        raise ImageError(
            f"the image {name!r} says it is {width} × {height} pixels; at most "
            f"{limits.side:,} a side and {limits.pixels / 1e6:g} megapixels are read",
            fix="make it smaller, or leave it out",
        )


def _decode(structure: Structure, kind: Format, size: tuple[int, int]) -> NDArray[np.uint8]:
    with _READERS[kind](io.BytesIO(structure.decodable)) as image:
        if image.size != size:
            raise ValueError("the decoder sees another size than the header says")
        image.load()
        rgb = _to_rgb(image, structure.bit_depth)
    if structure.orientation in _TURNS:
        rgb = rgb.transpose(_TURNS[structure.orientation])
    return np.array(rgb, dtype=np.uint8)


def _to_rgb(image: Image.Image, bit_depth: int) -> Image.Image:
    transparent = image.info.get("transparency")
    if image.mode.startswith("I"):
        return _grey16_to_rgb(image, transparent)
    if bit_depth == 16 and isinstance(transparent, tuple):
        # Pillow has already reduced the samples, but not the colour that means "transparent".
        image.info["transparency"] = tuple(value >> 8 for value in transparent)
    elif bit_depth in (2, 4) and image.mode == "L" and isinstance(transparent, int):
        # The same for grey of few bits, whose samples Pillow has stretched to 0–255.
        image.info["transparency"] = transparent * (255 // (2**bit_depth - 1))
    if transparent is None and image.mode not in ("LA", "PA", "RGBA"):
        return image.convert("RGB")
    with_alpha = image.convert("RGBA")
    white = Image.new("RGBA", with_alpha.size, (255, 255, 255, 255))
    white.alpha_composite(with_alpha)
    return white.convert("RGB")


def _grey16_to_rgb(image: Image.Image, transparent: object) -> Image.Image:
    # Pillow's own conversion clips at 255, which turns most of such an image white.
    samples = np.asarray(image)
    grey = (samples >> 8).astype(np.uint8)
    if isinstance(transparent, int):
        grey[samples == transparent] = 255
    return Image.fromarray(grey).convert("RGB")
