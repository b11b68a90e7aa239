"""What an image file says of itself, read without decoding a pixel.

Size, completeness and orientation come from the few structural bytes of PNG, JPEG and WebP. A
hostile file is therefore refused before any decoder has allocated memory for it.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Format = Literal["PNG", "JPEG", "WEBP"]
Size = tuple[int, int]

#: Real files have a few thousand chunks; walking millions of empty ones would only cost time.
MOST_CHUNKS = 65_536
#: A progressive JPEG needs about ten scans. Each one makes the decoder visit every pixel again.
MOST_SCANS = 500

_PNG = b"\x89PNG\r\n\x1a\n"
_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
# Within image data 0xFF is followed by 0 or a restart marker; anything else begins a segment.
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]", re.DOTALL)
_ORIENTATION_TAG, _SHORT = 0x0112, 3

_KNOWN_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"GIF8", "a GIF"),
    (b"BM", "a BMP"),
    (b"II*\0", "a TIFF"),
    (b"MM\0*", "a TIFF"),
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "a zip archive"),
    (b"<svg", "an SVG drawing"),
    (b"<?xml", "an XML text"),
    (b"<!DO", "a web page"),
    (b"<htm", "a web page"),
    (b"version https://git-lfs", "a Git LFS pointer, not the image itself"),
)


class MalformedImageError(Exception):
    """The file's structure is wrong; the text says how."""


@dataclass(frozen=True, slots=True)
class Structure:
    """A file whose structure is whole. `decodable` leaves out metadata no decoder should parse."""

    decodable: bytes
    bit_depth: int = 8
    orientation: int = 1


def recognise(data: bytes) -> Format:
    """The format by content; names and extensions do not count."""
    if data.startswith(_PNG):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    if not data:
        raise MalformedImageError("the file is empty")
    if data[4:8] == b"ftyp":
        raise MalformedImageError(
            "it is an AVIF, HEIC or video file; only PNG, JPEG and WebP are read"
        )
    for start, what in _KNOWN_OTHERS:
        if data.lstrip()[: len(start)].lower() == start.lower():
            raise MalformedImageError(f"it is {what}; only PNG, JPEG and WebP are read")
    raise MalformedImageError("it is not a PNG, JPEG or WebP image")


def read_size(data: bytes, kind: Format) -> Size:
    """Width and height. Looks at the header only, so that limits can be applied first."""
    try:
        if kind == "PNG":
            return _png_size(data)
        return _jpeg_header(data).size if kind == "JPEG" else _webp_size(data)
    except (struct.error, IndexError):
        raise MalformedImageError("the file ends within its header") from None


def read_structure(data: bytes, kind: Format) -> Structure:
    """Check that the file is whole, and find what decoding needs to know."""
    try:
        if kind == "PNG":
            return _png_structure(data)
        return _jpeg_structure(data) if kind == "JPEG" else _webp_structure(data)
    except (struct.error, IndexError):
        raise MalformedImageError("the file is cut off") from None


def exif_orientation(exif: bytes) -> int:
    """The orientation (1 to 8) in an EXIF block; 1 where the block has none or is damaged.

    Read here because general EXIF readers copy every field: a small block whose thousands of
    fields all point to the same bytes would fill the memory.
    """
    tiff = exif.removeprefix(b"Exif\0\0")
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return 1
    try:
        (start,) = struct.unpack_from(order + "I", tiff, 4)
        (count,) = struct.unpack_from(order + "H", tiff, start)
        for index in range(count):
            tag, kind, _, value = struct.unpack_from(order + "HHIH", tiff, start + 2 + 12 * index)
            if tag == _ORIENTATION_TAG:
                return int(value) if kind == _SHORT and 1 <= value <= 8 else 1
    except struct.error:
        pass
    return 1


def _png_size(data: bytes) -> Size:
    if data[12:16] != b"IHDR":
        raise MalformedImageError("a PNG must begin with its IHDR chunk")
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _png_structure(data: bytes) -> Structure:
    orientation = 1
    position = len(_PNG)
    for _ in range(MOST_CHUNKS):
        length, name = struct.unpack_from(">I4s", data, position)
        end = position + 8 + length
        (checksum,) = struct.unpack_from(">I", data, end)
        if zlib.crc32(memoryview(data)[position + 4 : end]) != checksum:
            raise MalformedImageError(f"the checksum of its {name!r} chunk is wrong")
        if name == b"eXIf":
            orientation = exif_orientation(data[position + 8 : end])
        position = end + 4
        if name == b"IEND":
            return Structure(data[:position], bit_depth=data[24], orientation=orientation)
    raise MalformedImageError(f"it has more than {MOST_CHUNKS:,} chunks")


@dataclass(frozen=True, slots=True)
class _JpegHeader:
    size: Size
    exif: bytes
    kept: bytes
    scan: int
    """Where the first scan begins."""


def _jpeg_header(data: bytes) -> _JpegHeader:
    """Walk the segments before the first scan; keep those that the decoder needs."""
    size: Size | None = None
    exif = b""
    kept = bytearray(data[:2])
    position = 2
    for _ in range(MOST_CHUNKS):
        if data[position] != 0xFF:
            raise MalformedImageError("a JPEG segment does not begin where the one before ends")
        marker = data[position + 1]
        if marker == 0xFF:
            position += 1
            continue
        if marker == _START_OF_SCAN:
            if size is None:
                raise MalformedImageError("it has image data but no size")
            return _JpegHeader(size, exif, bytes(kept), position)
        if marker == _END_OF_IMAGE:
            raise MalformedImageError("it ends before any image data")
        (length,) = struct.unpack_from(">H", data, position + 2)
        end = position + 2 + length
        if length < 2 or end > len(data):
            raise MalformedImageError("the file ends within its header")
        body = data[position + 4 : end]
        if marker in _FRAME_HEADERS:
            if size is not None:
                raise MalformedImageError("it declares its size twice")
            height, width = struct.unpack_from(">HH", body, 1)
            size = width, height
        if marker == 0xE1 and body.startswith(b"Exif\0\0") and not exif:
            exif = body
        if marker in (0xE0, 0xEE) or not (0xE0 <= marker <= 0xEF or marker == 0xFE):
            kept += data[position:end]
        position = end
    raise MalformedImageError(f"it has more than {MOST_CHUNKS:,} segments")


def _jpeg_structure(data: bytes) -> Structure:
    header = _jpeg_header(data)
    decodable = header.kept + data[header.scan : _jpeg_end(data, header.scan)]
    return Structure(decodable, orientation=exif_orientation(header.exif))


def _jpeg_end(data: bytes, scan: int) -> int:
    """Just after the end marker that belongs to this image; previews and videos may follow it."""
    scans = 0
    position = scan
    for _ in range(MOST_CHUNKS):
        found = _MARKER.search(data, position)
        if found is None:
            break
        marker = data[found.start() + 1]
        if marker == _END_OF_IMAGE:
            return found.end()
        scans += marker == _START_OF_SCAN
        if scans > MOST_SCANS:
            raise MalformedImageError(f"it has more than {MOST_SCANS} scans")
        (length,) = struct.unpack_from(">H", data, found.end())
        position = found.end() + length
    raise MalformedImageError("the file is cut off: its end marker is missing")


def _webp_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Name, start and end of each chunk."""
    end_of_file = 8 + int(struct.unpack_from("<I", data, 4)[0])
    position = 12
    for _ in range(MOST_CHUNKS):
        if position + 8 > end_of_file:
            return
        name, length = struct.unpack_from("<4sI", data, position)
        position += 8
        if position + length > end_of_file:
            raise MalformedImageError("a WebP chunk is longer than the file")
        yield name, position, position + length
        position += length + length % 2
    raise MalformedImageError(f"it has more than {MOST_CHUNKS:,} chunks")


def _webp_chunk_size(data: bytes, name: bytes, start: int) -> Size | None:
    if name == b"VP8X":
        wide, high = data[start + 4 : start + 7], data[start + 7 : start + 10]
        return int.from_bytes(wide, "little") + 1, int.from_bytes(high, "little") + 1
    if name == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, start + 1)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if name == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, start + 6)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _webp_size(data: bytes) -> Size:
    for name, start, _ in _webp_chunks(data):
        size = _webp_chunk_size(data, name, start)
        if size is not None:
            return size
    raise MalformedImageError("it has no image data")


def _webp_structure(data: bytes) -> Structure:
    end = 8 + int(struct.unpack_from("<I", data, 4)[0])
    if end > len(data):
        raise MalformedImageError(f"the file is cut off: {len(data):,} of {end:,} bytes are there")
    orientation = 1
    for name, start, stop in _webp_chunks(data):
        if name == b"EXIF":
            orientation = exif_orientation(data[start:stop])
    return Structure(data[:end], orientation=orientation)
