"""An image's marker in a published template gives what the template itself writes of an image."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from minimsg.errors import TemplateError
from minimsg.prompt.marks import ImageTokens, Marks, Piece, Role, image_mark
from minimsg.prompt.template import ChatTemplate

TOKENS = ImageTokens("<|vision_start|>", "<|image_pad|>", "<|vision_end|>")


def test_a_published_template_shows_the_marker_as_its_own_images(
    test_data: Path, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    folder = tmp_path / "qwen3"
    shutil.copytree(test_data / "data" / "qwen3", folder)
    genuine: Any = AutoTokenizer.from_pretrained(folder)
    text = (test_data / "data" / "templates" / "Qwen3.5-4B.jinja").read_text("utf-8")
    template = ChatTemplate(text, {}, genuine.get_added_vocab(), images=TOKENS)

    def conversation(image: Any) -> list[dict[str, object]]:
        content = [said("Look: "), image(0), said(" and "), image(1), said("?")]
        return [
            {"role": Role("user"), "content": content},
            {"role": Role("assistant"), "content": "I see."},
            {"role": Role("user"), "content": [image(2), said("And here?")]},
        ]

    expected = genuine.apply_chat_template(
        conversation(lambda _: {"type": "image"}),
        chat_template=text, tokenize=False, add_generation_prompt=True,
    )  # fmt: skip
    pieces = template.render_pieces(
        conversation(lambda number: said(image_mark(number))), add_generation_prompt=True
    )
    assert "".join(piece.text for piece in pieces) == expected
    assert [piece.image for piece in pieces if piece.text == TOKENS.pad] == [0, 1, 2]
    assert all(piece.is_control for piece in pieces if piece.text in TOKENS)


def said(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def test_an_image_is_cut_out_of_text_with_its_number_and_its_place_is_counted() -> None:
    marks = Marks(["<s>", *TOKENS], TOKENS)
    text = f"a{marks.mark('<s>')}{marks.source(4)}{image_mark(7)}{marks.source(5)}b"
    pieces, places = marks.split_sources(text)
    assert pieces == [
        Piece("a", False),
        Piece("<s>", True),
        Piece("", False),
        Piece("<|vision_start|>", True),
        Piece("", False),
        Piece("<|image_pad|>", True, image=7),
        Piece("", False),
        Piece("<|vision_end|>", True),
        Piece("b", False),
    ]
    assert places == [(4, 4), (5, 4 + len("".join(TOKENS)))]


def test_a_model_that_sees_nothing_has_no_images_to_show() -> None:
    with pytest.raises(TemplateError, match="does not read"):
        Marks(["<s>"]).split(image_mark(0))
