"""Bytes to a picture: what its head says, then its pixels, in red, green and blue.

Four formats, of which the bytes decide, never a name; of an animation the first frame. A
head is read before anything is unpacked, so a bomb is refused by the size that it states.
Pixels are turned as the camera says (EXIF), 16 bits become 8, what is transparent stands
on white. Every failure of the decoder is one `ValueError` with fixed words: its own may
hold addresses of memory (CVE-2026-22778). Pillow is imported when it is needed, and none
of its settings is ever changed.

Knows bytes; whose they are and how many there may be is in `pictures.py`.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from PIL.Image import Image

Format = Literal["PNG", "JPEG", "GIF", "WEBP"]

MEDIA_TYPES: Final[dict[Format, str]] = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}
UNREADABLE: Final = "Could not process image"  # as the API says it

_SIGNATURES: Final[tuple[tuple[bytes, Format], ...]] = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
)
# What a decoder of somebody else's format raises.
_FAILURES: Final = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)


class TooLarge(ValueError):
    """The head states more pixels than any picture may have."""


@dataclass(frozen=True, slots=True)
class Head:
    """What the first bytes of a picture say."""

    format: Format
    width: int  # before it is turned
    height: int

    @property
    def media_type(self) -> str:
        """Its name on the web."""
        return MEDIA_TYPES[self.format]


def read_head(data: bytes) -> Head:
    """Format and size, without a pixel. Raises ValueError, and TooLarge for a bomb."""
    format = format_of(data)
    if format is None:
        raise ValueError(UNREADABLE)
    with _guarded(), _opened(data, format) as image:
        width, height = image.size
        if min(width, height) < 1:
            raise ValueError(UNREADABLE)
        return Head(format, width, height)


def format_of(data: bytes) -> Format | None:
    """What the bytes begin as; None if it is none of the four."""
    for signature, format in _SIGNATURES:
        if data.startswith(signature):
            return format
    return "WEBP" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def decode(data: bytes, head: Head) -> Image:
    """The picture in mode RGB, as it is to be seen. Raises ValueError."""
    with _guarded(), _opened(data, head.format) as image:
        image.load()
        bits = data[24] if head.format == "PNG" else 8  # of a sample
        return _in_colours(_turned(image), bits)


@contextmanager
def _opened(data: bytes, format: Format) -> Iterator[Image]:
    from PIL import Image

    with Image.open(BytesIO(data), formats=(format,)) as image:
        yield image


@contextmanager
def _guarded() -> Iterator[None]:
    """Each failure as a ValueError of ours, and a warning of a bomb as a failure."""
    from PIL.Image import MAX_IMAGE_PIXELS, DecompressionBombError, DecompressionBombWarning

    assert MAX_IMAGE_PIXELS, "something has switched Pillow's guard against bombs off"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", DecompressionBombWarning)
        try:
            yield
        except (DecompressionBombError, DecompressionBombWarning):
            raise TooLarge(UNREADABLE) from None
        except _FAILURES:
            raise ValueError(UNREADABLE) from None


def _turned(image: Image) -> Image:
    """As the camera says; one that cannot be understood says nothing."""
    from PIL.ExifTags import Base
    from PIL.Image import Transpose

    try:
        orientation = image.getexif().get(Base.Orientation)
    except _FAILURES:
        return image
    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    turn = turns.get(orientation) if orientation is not None else None
    return image if turn is None else image.transpose(turn)


def _in_colours(image: Image, bits: int) -> Image:
    """Any mode of the four formats as RGB; what is transparent on white."""
    from PIL import Image as images

    if image.mode.startswith("I"):
        image = _of_eight_bits(image)
    else:
        image.info.update(_transparency(image, bits))
    if "A" not in image.mode and "a" not in image.mode and "transparency" not in image.info:
        return image.convert("RGB")
    shown = image.convert("RGBA")
    white = images.new("RGBA", shown.size, (255, 255, 255, 255))
    return images.alpha_composite(white, shown).convert("RGB")


def _transparency(image: Image, bits: int) -> dict[str | tuple[int, int], object]:
    """The colour that a PNG hides as samples of 8 bits, as Pillow's are; the file's have `bits`."""
    hidden = image.info.get("transparency")
    if image.mode == "L" and isinstance(hidden, int) and bits < 8:
        return {"transparency": hidden * 255 // ((1 << bits) - 1)}
    if isinstance(hidden, tuple) and bits == 16:
        return {"transparency": tuple(value >> 8 for value in hidden)}
    return {}


def _of_eight_bits(image: Image) -> Image:
    """Grey of 16 bits as grey of 8 and, if a grey is transparent, alpha."""
    import numpy as np
    from PIL import Image as images

    values = np.asarray(image).astype(np.uint16)
    grey = images.fromarray((values >> 8).astype(np.uint8))
    hidden = image.info.get("transparency")
    if isinstance(hidden, int):
        grey.putalpha(images.fromarray(np.where(values == hidden, 0, 255).astype(np.uint8)))
    return grey
