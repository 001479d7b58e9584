"""The images of a request: checked by their heads, counted, and in the end seen.

    request -> numbered blocks and `Pictures` (heads only) -> prompt -> pixels of what it shows

Limits come before work, in this order: how many images, how many bytes, what the heads say
(format, sides, pixels of all together). From a head follow an image's tokens, exactly: that
is all that `count_tokens` needs, and a prompt that is too long is refused before anything
is unpacked. Then each image that the prompt shows is decoded and scaled, one after the other.
The pages of PDFs (`pdfs.py`) are images that were not sent: they have a size, and are drawn
where others are decoded.

Knows requests and blocks; formats are in `picture.py`, sizes in `models/pixels.py`.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from pydantic import Field, InstanceOf

from minimsg.engine.types import ImageSpan
from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS
from minimsg.models.picture_config import PictureConfig
from minimsg.models.pixels import fitted_size
from minimsg.prompt.blocks import map_blocks
from minimsg.prompt.encode import ImagePlace
from minimsg.prompt.pdf import Page
from minimsg.prompt.picture import Head, TooLarge, decode, read_head
from minimsg.protocol.content import Base64ImageSource, ImageBlock
from minimsg.protocol.request import PromptRequest
from minimsg.protocol.turns import blocks_of
from minimsg.protocol.wire import Wire

if TYPE_CHECKING:
    from PIL.Image import Image

R = TypeVar("R", bound=PromptRequest)

TOO_LARGE: Final = "image_dimensions_too_large"


class NumberedImage(ImageBlock):
    """An image block that knows which of the request's images it is."""

    number: int = Field(exclude=True)


class FetchedSource(Base64ImageSource):
    """Bytes that were not in the request but named there."""

    kind: str = Field(exclude=True)  # of the source that named them: file, url


class PageSource(Base64ImageSource):
    """A picture that nobody sent; `data` only tells it from others."""

    page: InstanceOf[Page] = Field(exclude=True)
    path: str = Field(exclude=True)  # of the PDF


@dataclass(frozen=True, slots=True)
class Picture:
    """An image of a request, of which the size is known."""

    path: str  # of its source
    see: Callable[[int, int], Image]  # it, scaled to this size before it is turned; ValueError
    num_pixels: int  # that are unpacked
    width: int  # that it is scaled to
    height: int
    num_tokens: int


def with_pictures(request: R, config: PictureConfig | None) -> tuple[R, list[Picture]]:
    """`request` with numbered images, and these. Raises InvalidRequest.

    Without a `config` the model sees nothing; then all is left as it is.
    """
    found = list(blocks_of(request.messages, ImageBlock, inside=True))
    if config is None or not found:
        return request, []
    sent = [(path, block) for path, block in found if not isinstance(block.source, PageSource)]
    pictures = _sent(sent, config) | {
        path: _drawn(block.source, config)
        for path, block in found
        if isinstance(block.source, PageSource)
    }
    _check_pixels(pictures.values())
    numbers = {path: number for number, (path, _) in enumerate(found)}

    def number(block: Wire, path: str) -> Wire:
        if not isinstance(block, ImageBlock):
            return block
        fields = {name: getattr(block, name) for name in ImageBlock.model_fields}
        return NumberedImage.model_construct(**fields, number=numbers[path])

    return map_blocks(request, number), [pictures[path] for path, _ in found]


def spans_of(
    pictures: Sequence[Picture], places: Sequence[ImagePlace], config: PictureConfig
) -> tuple[ImageSpan, ...]:
    """The images of a prompt with their pixels. Raises InvalidRequest at one that is broken."""
    return tuple(_span(pictures[place.number], place, config) for place in places)


def _span(picture: Picture, place: ImagePlace, config: PictureConfig) -> ImageSpan:
    try:
        image = picture.see(picture.width, picture.height)
    except ValueError as error:
        raise InvalidRequest(picture.path, str(error)) from None
    pixels = image.tobytes()
    columns, rows = image.width // config.factor, image.height // config.factor
    digest = sha256(b"%d %d " % (rows, columns) + pixels).digest()
    return ImageSpan(place.start, place.stop, digest, rows, columns, pixels)


def _sent(found: Sequence[tuple[str, ImageBlock]], config: PictureConfig) -> dict[str, Picture]:
    """The images whose bytes are there, by their paths."""
    _check_count_and_bytes(found)
    sources = [(path, block, _bytes_of(path, block)) for path, block in found]
    heads = [(path, block, data, _head_of(path, block, data)) for path, block, data in sources]
    _check_sides([(path, head) for path, _, _, head in heads])
    return {path: _picture(path, block, data, head, config) for path, block, data, head in heads}


def _drawn(source: PageSource, config: PictureConfig) -> Picture:
    page = source.page
    try:
        width, height = fitted_size(page.width, page.height, config)
    except ValueError as error:
        raise InvalidRequest(source.path, f"page {page.number}: {error}") from None
    num_tokens = width // config.factor * (height // config.factor)
    return Picture(source.path, page.draw, width * height, width, height, num_tokens)


def _check_pixels(pictures: Iterable[Picture]) -> None:
    num_pixels = sum(picture.num_pixels for picture in pictures)
    if num_pixels > LIMITS.images_pixels:
        why = f"the images have {num_pixels} pixels together > {LIMITS.images_pixels} maximum"
        raise InvalidRequest("messages", why)


def _check_count_and_bytes(found: Sequence[tuple[str, ImageBlock]]) -> None:
    if len(found) > LIMITS.images:
        raise InvalidRequest("messages", f"too many images: {len(found)} > {LIMITS.images} maximum")
    for path, block in found:
        source = block.source
        if not isinstance(source, Base64ImageSource):
            continue
        num_bytes = len(source.data) * 3 // 4 - source.data[-2:].count("=")
        if num_bytes > LIMITS.image_bytes:
            most = f"{LIMITS.image_bytes >> 20} MB maximum"
            seen = f"{num_bytes} bytes > {LIMITS.image_bytes} bytes"
            raise InvalidRequest(_source(path, block), f"image exceeds {most}: {seen}")


def _bytes_of(path: str, block: ImageBlock) -> bytes:
    source = block.source
    if not isinstance(source, Base64ImageSource):  # what was fetched before is one of bytes now
        why = f"type '{source.type}' is not supported; send the content itself"
        raise InvalidRequest(f"{path}.image.source", why)
    try:
        return a2b_base64(source.data, strict_mode=True)
    except ValueError:
        raise InvalidRequest(f"{_source(path, block)}.data", "Invalid base64 data") from None


def _head_of(path: str, block: ImageBlock, data: bytes) -> Head:
    try:
        head = read_head(data)
    except TooLarge:
        _refuse_sides([path], LIMITS.image_side_pixels)
    except ValueError as error:
        raise InvalidRequest(_source(path, block), str(error)) from None
    assert isinstance(block.source, Base64ImageSource)
    if (declared := block.source.media_type) != head.media_type:
        why = (
            f"The image was specified using the {declared} media type, but the image appears "
            f"to be a {head.media_type} image"
        )
        raise InvalidRequest(_source(path, block), why)
    return head


def _check_sides(heads: Sequence[tuple[str, Head]]) -> None:
    are_many = len(heads) > LIMITS.many_images
    most = LIMITS.many_images_side_pixels if are_many else LIMITS.image_side_pixels
    if longer := [path for path, head in heads if max(head.width, head.height) > most]:
        _refuse_sides(longer, most)


def _refuse_sides(paths: Sequence[str], most: int) -> NoReturn:
    kind = " for many-image requests" if most < LIMITS.image_side_pixels else ""
    why = f"At least one of the image dimensions exceed max allowed size{kind}: {most} pixels"
    details = {"max_side_length_pixels": most, "paths": [plain_path(path) for path in paths]}
    raise InvalidRequest(f"{paths[0]}.image.source", why, error_code=TOO_LARGE, details=details)


def plain_path(path: str) -> str:
    """A block's path without the types of the blocks around it, as the API lists them."""
    types = r"\.tool_result(?=\.content)|\.document(?=\.source)|(?<=source)\.content"
    return re.sub(types, "", path)


def _picture(
    path: str, block: ImageBlock, data: bytes, head: Head, config: PictureConfig
) -> Picture:
    where = _source(path, block)
    try:
        width, height = fitted_size(head.width, head.height, config)
    except ValueError as error:
        raise InvalidRequest(where, f"{error} ({head.width}x{head.height} pixels)") from None
    wants_error = block.transformations and block.transformations.oversized_image == "error"
    if wants_error and _is_scaled_down(head, config):
        why = (
            f"image dimensions {head.width}x{head.height} exceed the maximum image size of the "
            f"model; the largest that fit are {width}x{height}"
        )
        raise InvalidRequest(where, why)
    num_tokens = width // config.factor * (height // config.factor)
    see = partial(_decoded, data, head)
    return Picture(where, see, head.width * head.height, width, height, num_tokens)


def _decoded(data: bytes, head: Head, width: int, height: int) -> Image:
    from PIL.Image import Resampling

    image = decode(data, head)
    is_turned = image.size != (head.width, head.height)  # by a quarter
    size = (height, width) if is_turned else (width, height)
    return image.resize(size, Resampling.BICUBIC)


def _is_scaled_down(head: Head, config: PictureConfig) -> bool:
    """Not only to a multiple of the factor, which every picture is."""
    wide, high = (round(side / config.factor) * config.factor for side in (head.width, head.height))
    return wide * high > config.max_pixels


def _source(path: str, block: ImageBlock) -> str:
    kind = block.source.kind if isinstance(block.source, FetchedSource) else block.source.type
    return f"{path}.image.source.{kind}"
