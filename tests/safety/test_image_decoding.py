"""Bounded decoding: a corpus of odd files, each with its rule; fuzzing; memory under a limit."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import textwrap
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from tropescope.errors import ImageError
from tropescope.safety.image_headers import exif_orientation
from tropescope.safety.images import ImageLimits, decode_image, read_image_file

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def picture(width=24, height=16):
    """Left half red, right half blue, one green row on top."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, : width // 2] = RED
    pixels[:, width // 2 :] = BLUE
    pixels[: height // 4] = GREEN
    return pixels


def saved(image, kind, **options):
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image)
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(width, height, *, depth=8, colour=2, rows=None, before=b"", after=b""):
    """A PNG written by hand, for what Pillow cannot write."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    data = b"" if rows is None else chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + header + before + data + after + chunk(b"IEND", b"")


def decode(data, **options):
    return decode_image(data, name="some file.png", **options)


def refusal(data, **options) -> str:
    with pytest.raises(ImageError) as caught:
        decode(data, **options)
    assert "'some file.png'" in caught.value.message
    assert caught.value.fix
    return caught.value.message


def near(found, wanted, tolerance=40):
    return np.abs(found.astype(int) - np.asarray(wanted).astype(int)).max() <= tolerance


# -- formats, by content ---------------------------------------------------------------------------


def test_png_is_exact():
    decoded = decode(saved(picture(), "PNG"))
    assert decoded.suffix == ".png"
    assert decoded.pixels.dtype == np.uint8
    assert decoded.pixels.flags.c_contiguous
    assert decoded.pixels.flags.writeable
    np.testing.assert_array_equal(decoded.pixels, picture())


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_blocks": 1}])
def test_jpeg(options):
    decoded = decode(saved(picture(32, 32), "JPEG", quality=95, subsampling=0, **options))
    assert decoded.suffix == ".jpg"
    assert near(decoded.pixels, picture(32, 32))


@pytest.mark.parametrize("options", [{"lossless": True}, {"quality": 95}])
def test_webp(options):
    decoded = decode(saved(picture(32, 32), "WEBP", **options))
    assert decoded.suffix == ".webp"
    wanted = picture(32, 32)
    assert near(decoded.pixels[2:6, 2:14], wanted[2:6, 2:14], 60)
    if options.get("lossless"):
        np.testing.assert_array_equal(decoded.pixels, wanted)


def test_the_name_does_not_decide_the_format():
    assert decode_image(saved(picture(), "JPEG"), name="x.png").suffix == ".jpg"


@pytest.mark.parametrize("kind", ["GIF", "BMP", "TIFF", "PPM", "ICO"])
def test_other_formats_are_refused_whatever_pillow_can_read(kind):
    assert "PNG, JPEG" in refusal(saved(picture(32, 32), kind))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"  <svg xmlns='x'>", "SVG"),
        (b"\0\0\0\x1cftypavif", "AVIF"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS"),
        (b"PK\x03\x04aaaa", "zip"),
        (b"hello", "not a PNG"),
    ],
)
def test_what_is_no_image_is_called_by_its_name(data, says):
    assert says in refusal(data)


# -- truncation, garbage, damage -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_every_truncation_is_refused(kind):
    noise = np.random.default_rng(0).integers(0, 256, (9, 11, 3), np.uint8)
    whole = saved(noise, kind)
    decode(whole)
    for length in range(len(whole)):
        refusal(whole[:length])


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_bytes_after_the_end_are_ignored(kind):
    whole = saved(picture(), kind)
    for tail in (b"\0", b"garbage" * 1000, whole):
        np.testing.assert_array_equal(decode(whole + tail).pixels, decode(whole).pixels)


def test_any_flipped_bit_of_a_png_is_noticed():
    whole = saved(picture(4, 4), "PNG")
    for position in range(8, len(whole)):
        broken = bytearray(whole)
        broken[position] ^= 1
        refusal(bytes(broken))


def test_image_data_that_stops_midway_is_refused():
    rows = np.random.default_rng(0).bytes(8 * 25)
    half = chunk(b"IDAT", zlib.compress(rows)[:100])
    refusal(png(8, 8, after=half))


# -- size limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "height"), [(60_000, 60_000), (16_385, 1), (0, 5), (8001, 8001)])
def test_sizes_are_refused_from_the_header_alone(width, height):
    # No image data at all: had anything been decoded, the message would be about that.
    assert f"{width} × {height}" in refusal(png(width, height))


def test_jpeg_and_webp_headers_are_checked_too():
    jpeg = bytearray(saved(picture(32, 32), "JPEG"))
    frame = jpeg.index(b"\xff\xc0")
    jpeg[frame + 5 : frame + 9] = struct.pack(">HH", 60_000, 60_001)
    assert "60001 × 60000" in refusal(bytes(jpeg))
    canvas = struct.pack("<I", 9_999_999)[:3]
    body = b"VP8X" + struct.pack("<I", 10) + bytes(4) + canvas + canvas
    webp = b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body
    assert "10000000 × 10000000" in refusal(webp)


def test_limits_are_inclusive_and_can_be_set():
    data = saved(picture(24, 16), "PNG")
    exact = ImageLimits(pixels=24 * 16, side=24, file_bytes=len(data))
    assert decode(data, limits=exact).pixels.shape == (16, 24, 3)
    for smaller in (
        ImageLimits(pixels=24 * 16 - 1),
        ImageLimits(side=23),
        ImageLimits(file_bytes=len(data) - 1),
    ):
        refusal(data, limits=smaller)


# -- colour modes ----------------------------------------------------------------------------------


def test_cmyk_becomes_rgb():
    cmyk = Image.fromarray(picture(32, 32)).convert("CMYK")
    assert near(decode(saved(cmyk, "JPEG", quality=98)).pixels, picture(32, 32), 30)


def test_sixteen_bit_grey_is_scaled_not_clipped():
    samples = np.array([[0, 255, 256, 32768, 65535]], np.uint16)
    decoded = decode(saved(Image.fromarray(samples), "PNG"))
    assert decoded.pixels[0, :, 0].tolist() == [0, 0, 1, 128, 255]
    assert (decoded.pixels == decoded.pixels[..., :1]).all()


def test_sixteen_bit_colour_and_alpha_are_scaled():
    colour = struct.pack(">3H", 65535, 32768, 256)
    rows = b"\0" + colour * 2
    assert decode(png(2, 1, depth=16, rows=rows)).pixels[0, 0].tolist() == [255, 128, 1]
    rows = b"\0" + colour + b"\xff\xff" + colour + b"\0\0"
    decoded = decode(png(2, 1, depth=16, colour=6, rows=rows)).pixels
    assert decoded[0].tolist() == [[255, 128, 1], [255, 255, 255]]
    rows = b"\0" + struct.pack(">4H", 32768, 65535, 32768, 0)
    decoded = decode(png(2, 1, depth=16, colour=4, rows=rows)).pixels
    assert decoded[0].tolist() == [[128] * 3, [255] * 3]


@pytest.mark.parametrize(
    ("depth", "colour", "row", "transparent", "wanted"),
    [
        (1, 0, b"\x40", struct.pack(">H", 1), [[0] * 3, [255] * 3]),
        (1, 0, b"\x40", struct.pack(">H", 0), [[255] * 3, [255] * 3]),
        (4, 0, b"\x35", struct.pack(">H", 3), [[255] * 3, [85] * 3]),
        (8, 0, b"\x03\x05", struct.pack(">H", 3), [[255] * 3, [5] * 3]),
        (16, 0, b"\x03\x01\x03\x02", struct.pack(">H", 0x0301), [[255] * 3, [3] * 3]),
        (8, 2, b"\1\2\3\4\5\6", struct.pack(">3H", 1, 2, 3), [[255] * 3, [4, 5, 6]]),
        (
            16,
            2,
            struct.pack(">6H", 256, 512, 768, 9999, 9999, 9999),
            struct.pack(">3H", 256, 512, 768),
            [[255] * 3, [39] * 3],
        ),
    ],
)
def test_a_transparent_colour_becomes_white(depth, colour, row, transparent, wanted):
    data = png(
        2, 1, depth=depth, colour=colour, rows=b"\0" + row, before=chunk(b"tRNS", transparent)
    )
    assert decode(data).pixels[0].tolist() == wanted


def test_alpha_is_laid_over_white():
    pixels = np.zeros((1, 3, 4), np.uint8)
    pixels[0, :, 3] = (0, 128, 255)
    for kind, options in (("PNG", {}), ("WEBP", {"lossless": True, "exact": True})):
        found = decode(saved(pixels, kind, **options)).pixels[0, :, 0].tolist()
        assert found[0] == 255
        assert found[1] == pytest.approx(127, abs=1)
        assert found[2] == 0


def test_palette_grey_and_one_bit():
    palette = Image.fromarray(picture()).quantize(8)
    np.testing.assert_array_equal(decode(saved(palette, "PNG")).pixels, picture())
    palette_with_hole = saved(palette, "PNG", transparency=palette.getpixel((0, 0)))
    assert decode(palette_with_hole).pixels[0, 0].tolist() == list(WHITE)
    grey = np.arange(16, dtype=np.uint8).reshape(4, 4) * 16
    assert decode(saved(grey, "PNG")).pixels[..., 1].tolist() == grey.tolist()
    assert decode(saved(Image.new("1", (3, 3), 1), "PNG")).pixels.min() == 255


# -- animation, orientation ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_of_an_animation_the_first_frame_is_taken(kind):
    frames = [Image.new("RGB", (8, 8), colour) for colour in (RED, GREEN, BLUE)]
    data = saved(
        frames[0], kind, save_all=True, append_images=frames[1:], duration=100, lossless=True
    )
    assert (decode(data).pixels == RED).all()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(kind, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 98, "subsampling": 0} if kind == "JPEG" else {}
    if kind == "WEBP":
        options = {"lossless": True}
    data = saved(picture(32, 16), kind, exif=exif.tobytes(), **options)
    from PIL import ImageOps

    upright = Image.fromarray(picture(32, 16))
    upright.getexif()[0x0112] = orientation
    wanted = np.asarray(ImageOps.exif_transpose(upright))
    found = decode(data).pixels
    assert found.shape == wanted.shape
    assert near(found, wanted, 60 if kind == "JPEG" else 0)


@given(st.binary(max_size=80))
def test_any_exif_block_gives_an_orientation(block):
    for start in (b"", b"II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08", b"Exif\0\0II*\0\x08\0\0\0"):
        assert 1 <= exif_orientation(start + block) <= 8


def test_a_broken_exif_block_counts_as_absent():
    data = saved(picture(), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    assert decode(data).pixels.shape == picture().shape


def test_an_exif_block_whose_fields_share_their_bytes_costs_nothing():
    # 5,000 fields of 60 kB each, all in the same place: 300 MB for a reader that copies them.
    fields = b"".join(struct.pack("<HHII", 1000 + i, 7, 60_000, 0) for i in range(5000))
    exif = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", 5000) + fields
    whole = saved(picture(), "JPEG")
    segment = b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif
    import tracemalloc

    tracemalloc.start()
    decode(whole[:2] + segment + whole[2:])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


# -- bombs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("after_the_data", [False, True])
@pytest.mark.parametrize(
    "bomb",
    [
        chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(9_000_000), 9)),
        chunk(b"iTXt", b"Comment\0\1\0\0\0" + zlib.compress(bytes(9_000_000), 9)),
    ],
)
def test_text_bombs_are_refused(bomb, after_the_data):
    place = "after" if after_the_data else "before"
    assert "too large" in refusal(png(1, 1, rows=bytes(4), **{place: bomb}))


def test_a_colour_profile_bomb_is_refused():
    bomb = chunk(b"iCCP", b"icc\0\0" + zlib.compress(bytes(9_000_000), 9))
    assert "too large" in refusal(png(1, 1, rows=bytes(4), before=bomb))


def test_many_texts_together_are_refused():
    text = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(1_000_000), 9))
    assert "text" in refusal(png(1, 1, rows=bytes(4), before=text * 70)).lower()


def test_normal_texts_and_profiles_are_fine():
    notes = PngImagePlugin.PngInfo()
    notes.add_text("prompt", "a photo of a Veloran", zip=True)
    data = saved(picture(), "PNG", pnginfo=notes, icc_profile=bytes(3000))
    np.testing.assert_array_equal(decode(data).pixels, picture())


def test_hundreds_of_progressive_scans_are_refused():
    data = saved(picture(32, 32), "JPEG", progressive=True)
    last = data.rindex(b"\xff\xda")
    scan = data[last:-2]
    assert "scans" in refusal(data[:-2] + scan * 600 + data[-2:])


def test_millions_of_empty_chunks_are_refused():
    assert "chunks" in refusal(png(1, 1, rows=bytes(4), before=chunk(b"teSt", b"") * 70_000))


UNDER_A_LIMIT = """
import io, resource, struct, sys, zlib
sys.path.insert(0, {tests!r})
import numpy  # imported before the limit, so that only decoding counts
from test_image_decoding import chunk, png, saved
from tropescope.errors import ImageError
from tropescope.safety.images import decode_image

used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
room = 150_000_000
resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))

def refused(data, says):
    try:
        decode_image(data, name="bomb")
    except ImageError as error:
        assert says in str(error), error
    else:
        raise SystemExit("a bomb was decoded")

packer = zlib.compressobj(9)
idat = b"".join(packer.compress(bytes(10_000_000)) for _ in range(40)) + packer.flush()
refused(png(60_000, 60_000, after=chunk(b"IDAT", idat)), "60000 × 60000")
refused(png(60_000, 1, after=chunk(b"IDAT", idat)), "60000 × 1")
# A small picture whose data would unpack to 400 MB: only what the picture needs is unpacked.
assert decode_image(png(4, 4, after=chunk(b"IDAT", idat)), name="x").pixels.shape == (4, 4, 3)
refused(png(4, 4, rows=bytes(52), before=chunk(b"zTXt", b"a\\0\\0" + idat)), "too large")
jpeg = bytearray(saved(numpy.zeros((8, 8, 3), numpy.uint8), "JPEG"))
frame = jpeg.index(b"\\xff\\xc0")
jpeg[frame + 5 : frame + 9] = struct.pack(">HH", 60_000, 60_000)
refused(bytes(jpeg), "60000 × 60000")
# Within the size limits, but more than this machine has: an error as well, not a crash.
refused(png(8000, 8000, after=chunk(b"IDAT", idat)), "memory")
print("bounded")
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc")
def test_bombs_are_refused_in_bounded_memory():
    script = textwrap.dedent(UNDER_A_LIMIT).format(tests=os.path.dirname(__file__))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "bounded", done.stderr


# -- fuzzing: an array or an ImageError, nothing else ----------------------------------------------

ANIMATED = saved(
    Image.new("RGBA", (7, 5), (*RED, 99)),
    "WEBP",
    save_all=True,
    append_images=[Image.new("RGBA", (7, 5), (*BLUE, 9))],
)
SEEDS = [
    saved(picture(7, 5), "PNG"),
    saved(Image.fromarray(picture(7, 5)).quantize(4), "PNG", transparency=1),
    saved(picture(7, 5), "JPEG"),
    saved(picture(9, 9), "JPEG", progressive=True),
    saved(Image.fromarray(picture(9, 9)).convert("CMYK"), "JPEG"),
    saved(picture(7, 5), "WEBP"),
    saved(picture(7, 5), "WEBP", lossless=True),
    ANIMATED,
]
SMALL = ImageLimits(pixels=1_000_000, side=4096, file_bytes=1_000_000)


def decodes_or_refuses(data: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pixels = decode_image(data, name="fuzz", limits=SMALL).pixels
        except ImageError:
            return
    assert pixels.dtype == np.uint8
    assert pixels.ndim == 3
    assert pixels.shape[2] == 3


def mend_png(data: bytes) -> bytes:
    """Right checksums, so that damage reaches the decoder."""
    if data[:8] != SEEDS[0][:8]:
        return data
    out, position = bytearray(data), 8
    while position + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, position)
        end = position + 8 + length
        if end + 4 > len(data):
            break
        out[end : end + 4] = struct.pack(">I", zlib.crc32(data[position + 4 : end]))
        position = end + 4
    return bytes(out)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF....WEBP"]), st.binary())
def test_fuzz_random_bytes(start, rest):
    decodes_or_refuses(start + rest)


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 7)), min_size=1, max_size=8),
    st.floats(0, 1),
    st.booleans(),
)
def test_fuzz_bit_flips_and_truncation(whole, flips, cut, truncate):
    broken = bytearray(whole)
    for place, bit in flips:
        broken[int(place * (len(whole) - 1))] ^= 1 << bit
    data = mend_png(bytes(broken))
    decodes_or_refuses(data[: int(cut * len(data))] if truncate else data)


# -- reading files ---------------------------------------------------------------------------------


def test_reading_a_file(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(saved(picture(), "PNG"))
    assert read_image_file(path, name="a.png") == path.read_bytes()
    with pytest.raises(ImageError, match="more than 10 bytes"):
        read_image_file(path, name="a.png", limits=ImageLimits(file_bytes=10))
    with pytest.raises(ImageError, match="No such file"):
        read_image_file(tmp_path / "b.png", name="b.png")
    with pytest.raises(ImageError, match="directory"):
        read_image_file(tmp_path, name="a folder")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(ImageError, match="regular file"):
        read_image_file(tmp_path / "pipe.png", name="pipe.png")
