"""Bytes to pixels: formats, modes, turned and broken pictures. Expected colours are by hand."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image

from minimsg.prompt.picture import TooLarge, decode, format_of, read_head

RED, WHITE, BLACK = (255, 0, 0), (255, 255, 255), (0, 0, 0)


def saved(image: Image.Image, format: str, **options: Any) -> bytes:
    stream = BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def png(width: int, height: int, bits: int, kind: int, rows: bytes, extra: bytes = b"") -> bytes:
    """A PNG written by hand; `kind`: 0 grey, 2 RGB, 4 grey with alpha."""
    head = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)
    data = chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + data + chunk(b"IEND", b"")


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def colours(data: bytes) -> list[tuple[int, ...]]:
    """The pixels of the first row."""
    image = decode(data, read_head(data))
    assert image.mode == "RGB"
    return [tuple(int(value) for value in pixel) for pixel in np.asarray(image)[0]]


@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP"])
def test_each_format_is_told_by_its_bytes(format: str) -> None:
    data = saved(Image.new("RGB", (5, 3), RED), format)
    head = read_head(data)
    assert (head.format, head.media_type) == (format, f"image/{format.lower()}")
    assert (head.width, head.height) == (5, 3)
    red, green, blue = colours(data)[0]
    assert (red > 240, green < 10, blue < 10) == (True, True, True)


PALETTE = Image.new("P", (2, 1))
PALETTE.putpalette([255, 0, 0, 0, 0, 255])
PALETTE.putpixel((1, 0), 1)
HALF_RED = Image.new("RGBA", (1, 1), (255, 0, 0, 128))
RGB16 = struct.pack(">6H", 0, 0x7FFF, 5, 0xFFFF, 0, 0xFFFF)
GREY16 = struct.pack(">HH", 0x8000, 0xFFFF)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (saved(PALETTE, "PNG"), [RED, (0, 0, 255)]),
        (saved(PALETTE, "PNG", transparency=1), [RED, WHITE]),
        (saved(PALETTE, "GIF", transparency=0), [WHITE, (0, 0, 255)]),
        (saved(Image.new("L", (1, 1), 7), "PNG"), [(7, 7, 7)]),
        (saved(Image.new("1", (1, 1), 1), "PNG"), [WHITE]),
        (saved(Image.new("LA", (1, 1), (0, 0)), "PNG"), [WHITE]),
        (saved(HALF_RED, "PNG"), [(255, 127, 127)]),
        (saved(HALF_RED, "WEBP", lossless=True), [(255, 127, 127)]),
        (png(2, 1, 16, 0, b"\0" + GREY16), [(128, 128, 128), WHITE]),
        (png(2, 1, 16, 0, b"\0" + GREY16, chunk(b"tRNS", b"\x80\0")), [WHITE, WHITE]),
        (png(1, 1, 16, 2, b"\0" + struct.pack(">3H", 0xFF00, 0x80FF, 0)), [(255, 128, 0)]),
        (png(1, 1, 16, 4, b"\0" + struct.pack(">HH", 0, 0)), [WHITE]),
        (png(1, 1, 8, 0, b"\0\5", chunk(b"tRNS", b"\0\5")), [WHITE]),
        (png(2, 1, 2, 0, b"\0\x60", chunk(b"tRNS", b"\0\1")), [WHITE, (170, 170, 170)]),
        (png(2, 1, 4, 0, b"\0\x12", chunk(b"tRNS", b"\0\1")), [WHITE, (34, 34, 34)]),
        (
            png(2, 1, 16, 2, b"\0" + RGB16, chunk(b"tRNS", RGB16[:6])),
            [WHITE, (255, 0, 255)],
        ),
    ],
)
def test_each_mode_becomes_red_green_blue_on_white(
    data: bytes, expected: list[tuple[int, int, int]]
) -> None:
    assert colours(data) == expected


def test_inks_of_a_jpeg_become_colours() -> None:
    cyan = saved(Image.new("CMYK", (8, 8), (255, 0, 0, 0)), "JPEG", quality=95)
    red, green, blue = colours(cyan)[0]
    assert (red < 20, green > 160, blue > 200) == (True, True, True)


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize(
    ("orientation", "left", "size"),
    [
        *((1, RED, (16, 8)), (2, BLACK, (16, 8)), (3, BLACK, (16, 8)), (4, RED, (16, 8))),
        *((5, RED, (8, 16)), (6, RED, (8, 16)), (7, BLACK, (8, 16)), (8, BLACK, (8, 16))),
    ],
)
def test_a_picture_is_turned_as_the_camera_says(
    format: str, orientation: int, left: tuple[int, int, int], size: tuple[int, int]
) -> None:
    """The left half is red; turned clockwise by a quarter (6), the upper one is."""
    image = Image.new("RGB", (16, 8), BLACK)
    image.paste(RED, (0, 0, 8, 8))
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = saved(image, format, exif=exif, **({"quality": 100} if format == "JPEG" else {}))
    assert decode(data, read_head(data)).size == size
    first = colours(data)[0]
    assert max(abs(one - other) for one, other in zip(first, left, strict=True)) < 20


ORIENTATION_6 = struct.pack(">HHIHH", 0x0112, 3, 1, 6, 0)


def tags(*entries: bytes) -> bytes:
    """EXIF written by hand."""
    count = struct.pack(">H", len(entries))
    return b"Exif\0\0MM\0*\0\0\0\x08" + count + b"".join(entries) + bytes(4)


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize(
    ("exif", "size"),
    [
        (tags(ORIENTATION_6), (8, 16)),
        (tags(ORIENTATION_6, struct.pack(">HHI4s", 0x011B, 2, 4, b"abc")), (8, 16)),
        (tags(struct.pack(">HHI4s", 0x0100, 7, 4, b"abcd"), ORIENTATION_6), (8, 16)),
        (tags(struct.pack(">HHI4s", 0x0112, 2, 2, b"6")), (16, 8)),
        (tags(struct.pack(">HHIHH", 0x0112, 3, 1, 9, 0)), (16, 8)),
        (b"\xff" * 40, (16, 8)),
        (b"Exif\0\0MM", (16, 8)),
    ],
)
def test_what_a_camera_writes_wrongly_costs_no_picture(
    format: str, exif: bytes, size: tuple[int, int]
) -> None:
    """Resolution as text is no reason not to turn; what cannot be read turns nothing."""
    data = saved(Image.new("RGB", (16, 8), RED), format, exif=exif)
    assert decode(data, read_head(data)).size == size


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_a_profile_of_colours_that_is_none_costs_no_picture(format: str) -> None:
    data = saved(Image.new("RGB", (16, 8), RED), format, icc_profile=b"junk" * 999)
    assert decode(data, read_head(data)).size == (16, 8)


def test_of_an_animation_the_first_frame_is_seen() -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in (RED, WHITE, BLACK)]
    data = saved(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert colours(data)[0] == RED


GOOD = saved(Image.effect_noise((64, 64), 90), "PNG")
JPEG = saved(Image.effect_noise((64, 64), 90).convert("RGB"), "JPEG")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"8BPS\0\1",
        b"SIMPLE  =                    T",
        b"%!PS-Adobe-3.0 EPSF-3.0",
        b"\x3a\xde\x68\xb1",
        saved(Image.new("RGB", (4, 4)), "BMP"),
        saved(Image.new("RGB", (4, 4)), "TIFF"),
        GOOD[:8],
        GOOD[:30],
        b"\xff\xd8\xff" + bytes(100),
        b"GIF89a" + bytes(4),
        b"RIFF\0\0\0\0WEBP",
        png(0, 5, 8, 0, b""),
    ],
)
def test_what_is_none_of_the_four_is_refused_by_its_head(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^Could not process image$"):
        read_head(data)


@pytest.mark.parametrize("data", [GOOD, JPEG], ids=["PNG", "JPEG"])
def test_half_a_picture_is_refused(data: bytes) -> None:
    half = data[: len(data) // 2]
    head = read_head(half)
    with pytest.raises(ValueError, match=r"^Could not process image$"):
        decode(half, head)


@pytest.mark.parametrize("side", [13_000, 19_000, 1_000_000])
def test_a_bomb_is_refused_by_its_head(side: int) -> None:
    bomb = png(side, side, 1, 0, zlib.compress(b""))
    with pytest.raises(TooLarge):
        read_head(bomb)


def test_names_do_not_decide() -> None:
    assert format_of(b"RIFF1234WAVE") is None
    assert format_of(b"GIF88a") is None
