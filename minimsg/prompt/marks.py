"""Markers: how a control token that the template wrote is told from one that a user wrote.

A prompt must be cut at the template's control tokens and nowhere else, and searching the
rendered text cannot tell them apart: a user may write `<|im_end|>`, write half of it
beside the template's other half, or name a tool parameter `think` that the template puts
between `<` and `>`. So the *template's own literals* are changed, once, when it is
compiled: each control string in them becomes a marker, two lone surrogates that stand
for its number. Rendered text is then cut at markers, and whatever else it holds is plain
text. No filter makes a surrogate, and no value may hold one (`reading.py` refuses it, as
JSON in UTF-8 cannot even say it), so no user can write a marker, by no detour.

Markers, not placeholders in the users' text, because then no value has to be searched,
masked and restored, and because joins and filters cannot undo it. The price: a template
that looks for `</think>` in a turn does not find the user's, since its own `</think>` is
a marker now. That is the point.

Markers with numbers beyond those of the controls stand at the ends of values when
`sources.py` asks which of them a token comes from. The last `MAX_IMAGES` of all are those of
images: one stands in the text of its block, so that an image may be wherever text may be,
whatever the template knows of images, and becomes the model's three control tokens here.

Some templates compose a control token around a role, `'<|' + message.role + '|>'`. A
role is no user's text; `Role` says so, and `rewrite.py` has such a composition marked.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

from minimsg.errors import TemplateError

ROLES: Final = ("system", "user", "assistant", "tool")
_MARKER: Final = re.compile("([\ud800-\udbff][\udc00-\udfff])")
NUM_MARKERS: Final = 1 << 20  # so far can two surrogates count
MAX_IMAGES: Final = 1 << 10  # of one prompt
SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Role(str):
    """The role of a message: written by this code, never by a user."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a rendered prompt: one control token, or plain text (maybe empty).

    An image is one control token, which stands there `count` times.
    """

    text: str
    is_control: bool
    image: int | None = None  # which of the prompt's images, if it is one
    count: int = 1


class ImageTokens(NamedTuple):
    """The control strings of an image: one for each of its tokens, between two others."""

    start: str
    pad: str
    end: str


class Marks:
    """The markers of one vocabulary's control strings, and of images if the model reads some."""

    def __init__(self, controls: Collection[str], images: ImageTokens | None = None) -> None:
        assert len(controls) <= NUM_MARKERS - MAX_IMAGES
        self._controls = sorted(controls)
        self._images = images
        # tokenizers takes the leftmost match, and of several there the longest
        longest_first = sorted(controls, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._markers = {control: _marker(n) for n, control in enumerate(self._controls)}
        self._around_roles = [
            (control[: found.start()], control[found.end() :])
            for control in self._controls
            for role in ROLES
            for found in re.finditer(role, control)
        ]

    def mark(self, text: str) -> str:
        """`text` of the template, its control strings replaced by their markers."""
        return self._pattern.sub(lambda found: self._markers[found[0]], text)

    def composes(self, left: str, right: str) -> bool:
        """Whether a role between `left` and `right` makes a control string."""
        return any(left.endswith(a) and right.startswith(b) for a, b in self._around_roles)

    def split(self, text: str) -> list[Piece]:
        """Rendered text as plain, control, plain, ..., plain. Raises TemplateError."""
        parts = _MARKER.split(text)
        if any(SURROGATE.search(part) for part in parts[::2]):
            raise TemplateError("cuts one of its own control tokens in two")
        pieces: list[Piece] = []
        for n, part in enumerate(parts):
            pieces += self._controls_of(part) if n % 2 else [Piece(part, False)]
        return pieces

    def source(self, number: int) -> str:
        """A marker for the end of a value: any number below `num_sources`. No control has it."""
        assert number < self.num_sources
        return _marker(len(self._controls) + number)

    @property
    def num_sources(self) -> int:
        """How many markers are left for the ends of values."""
        return NUM_MARKERS - MAX_IMAGES - len(self._controls)

    def split_sources(self, text: str) -> tuple[list[Piece], list[tuple[int, int]]]:
        """As `split`, of text with source markers in it, which are taken out.

        Also gives the number of each and its place in the text of all pieces together.
        Raises TemplateError.
        """
        kept: list[str] = []
        sources: list[tuple[int, int]] = []
        place = 0
        for n, part in enumerate(_MARKER.split(text)):
            number = _number(part) if n % 2 else -1
            if len(self._controls) <= number < FIRST_IMAGE:
                sources.append((number - len(self._controls), place))
            else:
                kept.append(part)
                place += len(self.shown(part))
        return self.split("".join(kept)), sources

    def shown(self, text: str) -> str:
        """`text` with what stands for its markers of controls and images."""
        return _MARKER.sub(
            lambda found: "".join(piece.text for piece in self._controls_of(found[0])), text
        )

    def _controls_of(self, marker: str) -> list[Piece]:
        """A control, or those of an image with nothing between them."""
        if (number := _number(marker)) < FIRST_IMAGE:
            return [Piece(self._controls[number], True)]
        if self._images is None:
            raise TemplateError("shows an image, which the model does not read")
        start, pad, end = self._images
        image = Piece(pad, True, image=NUM_MARKERS - 1 - number)
        nothing = Piece("", False)
        return [Piece(start, True), nothing, image, nothing, Piece(end, True)]


FIRST_IMAGE: Final = NUM_MARKERS - MAX_IMAGES


def image_mark(number: int) -> str:
    """The marker of a prompt's image; the lower its number, the further behind all others."""
    assert number < MAX_IMAGES
    return _marker(NUM_MARKERS - 1 - number)


def image_places(text: str) -> list[int]:
    """Where markers of images begin and end."""
    found = (match for match in _MARKER.finditer(text) if _number(match[0]) >= FIRST_IMAGE)
    return [place for match in found for place in match.span()]


def without_images(text: str) -> str:
    """`text` without the markers of images."""
    return _MARKER.sub(lambda found: "" if _number(found[0]) >= FIRST_IMAGE else found[0], text)


def _number(marker: str) -> int:
    return (ord(marker[0]) - 0xD800) * 1024 + ord(marker[1]) - 0xDC00


def _marker(number: int) -> str:
    return chr(0xD800 + number // 1024) + chr(0xDC00 + number % 1024)
