"""The little language: what is asked is true of the scene, and every word has an id."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minimsg.prompt.chat import ChatModel
from minimsg.text.tokenizer import Tokenizer
from minimsg.tiny_vl.checkpoint import FOLDER
from minimsg.tiny_vl.drawing import draw
from minimsg.tiny_vl.exam import exam
from minimsg.tiny_vl.questions import KINDS, Question, ask, ask_any
from minimsg.tiny_vl.scenes import Scene, Thing, random_scene
from minimsg.tiny_vl.strangers import stranger
from minimsg.tiny_vl.vocabulary import make_tokenizer
from minimsg.tiny_vl.wording import HELLO, NO_PICTURE, ONLY_KNOW


def thing(noun: str, colour: str, x: float) -> Thing:
    return Thing(noun, colour, x, 50, 20, (0, 0, 0))


SCENE = Scene(
    100, 100, "white", (255, 255, 255),
    (thing("star", "red", 20), thing("7", "blue", 50), thing("cross", "red", 80)),
)  # fmt: skip
TRUE = {
    "What colour is the star?": "The star is red.",
    "What colour is the 7?": "The 7 is blue.",
    "What colour is the circle?": "I see 0 circles.",
    "What colour is the shape?": "I see 2 shapes.",
    "What colour is the background?": "The background is white.",
    "What shape is it?": "I see 2 shapes.",
    "What digit is it?": "It is a 7.",
    "What digit is blue?": "The blue digit is a 7.",
    "How many shapes are there?": "I see 2 shapes.",
    "How many things are there?": "I see 3 things.",
    "How many crosses are there?": "I see 1 cross.",
    "Is there a cross?": "Yes.",
    "Is there a circle?": "No.",
    "What is on the left?": "A red star is on the left.",
    "What is on the right?": "A red cross is on the right.",
    "Where is the star?": "The star is on the left.",
    "Where is the thing?": "I see 3 things.",
    "Is the star left of the 7?": "The star is left of the 7, so yes.",
    "Is the star right of the 7?": "The 7 is right of the star, so no.",
    "What is in the picture?": "I see a red star, a blue 7 and a red cross.",
}


def test_the_answers_about_a_scene_are_those_found_by_hand() -> None:
    source = random.Random(1)
    asked: dict[str, set[str]] = {}
    for _ in range(40_000):
        question = ask_any(source, SCENE)
        asked.setdefault(question.text, set()).add(question.answer)
    assert {text: asked[text] for text in TRUE} == {text: {TRUE[text]} for text in TRUE}


def test_a_question_is_clear_if_there_is_one_of_what_it_is_about_or_none() -> None:
    def is_clear(kind: str, text: str) -> bool:
        return Question(kind, text, TRUE[text]).is_clear

    assert is_clear("colour", "What colour is the star?")
    assert is_clear("colour", "What colour is the circle?")
    assert is_clear("count", "How many shapes are there?")
    assert is_clear("describe", "What is in the picture?")
    assert not is_clear("colour", "What colour is the shape?")
    assert not is_clear("where", "Where is the thing?")


def test_a_picture_with_nothing_on_it_has_a_colour() -> None:
    blank = Scene(10, 10, "grey", (128, 128, 128), ())
    answers = {ask_any(random.Random(seed), blank).answer for seed in range(300)}
    assert {"It is grey.", "I see a grey picture.", "I see 0 things.", "No."} <= answers
    assert ask(random.Random(1), blank, "order") is None


@pytest.mark.parametrize("seed", range(40))
def test_things_lie_apart_inside_the_picture_from_left_to_right(seed: int) -> None:
    source = random.Random(seed)
    scene = random_scene(source, source.randint(40, 300), source.randint(40, 300))
    assert [one.x for one in scene.things] == sorted(one.x for one in scene.things)
    for place, one in enumerate(scene.things):
        assert one.size / 2 <= one.x <= scene.width - one.size / 2
        assert one.size / 2 <= one.y <= scene.height - one.size / 2
        for other in scene.things[:place]:
            distance = max(abs(one.x - other.x), abs(one.y - other.y))
            assert distance > (one.size + other.size) / 2


def test_what_is_drawn_has_the_colours_of_the_scene() -> None:
    scene = Scene(
        40, 20, "white", (255, 255, 255), (Thing("square", "red", 10, 10, 16, (255, 0, 0)),)
    )
    picture = draw(scene)
    assert picture.size == (40, 20)
    assert picture.getpixel((10, 10)) == (255, 0, 0)
    assert picture.getpixel((30, 10)) == (255, 255, 255)


def test_the_vocabulary_that_ships_is_the_one_that_is_made() -> None:
    assert (FOLDER / "tokenizer.json").read_text("utf-8").strip() == make_tokenizer().to_str(
        pretty=True
    )


def test_every_word_of_the_language_is_one_token() -> None:
    tokenizer, source = make_tokenizer(), random.Random(2)
    for _ in range(400):
        question = ask_any(source, random_scene(source, 99, 99))
        for text in (question.text, question.answer, NO_PICTURE, HELLO, ONLY_KNOW):
            assert len(tokenizer.encode(text).ids) == len(re.findall(r"\w+|[^\w ]", text)), text


@settings(max_examples=30)
@given(st.text())
def test_any_text_comes_back_from_its_ids(text: str) -> None:
    tokenizer = TOKENIZER
    assert tokenizer.decode(tokenizer.encode(text)) == text


TOKENIZER = Tokenizer.from_folder(FOLDER)


def test_what_strangers_say_is_never_a_question_of_the_language() -> None:
    source = random.Random(3)
    known = {ask_any(source, SCENE).text for _ in range(1_000)}
    assert known.isdisjoint(stranger(source).text for _ in range(1_000))


def test_an_exam_has_every_kind_and_is_the_same_each_time() -> None:
    first, second = (list(exam(2 * len(KINDS))) for _ in range(2))
    assert [item.question for item in first] == [item.question for item in second]
    assert [item.picture.tobytes() for item in first] == [item.picture.tobytes() for item in second]
    assert [item.question.kind for item in first] == [*KINDS, *KINDS]


def test_the_template_writes_turns_of_three_roles() -> None:
    chat = ChatModel.open(Path(FOLDER), "tiny-vl")
    assert chat.template is not None
    turns = [{"role": role, "content": role[0]} for role in ("system", "user", "assistant")]
    assert chat.template.render(turns, add_generation_prompt=True) == (
        "<|system|>s<|end|><|user|>u<|end|><|assistant|>a<|end|><|assistant|>"
    )
    assert set(chat.end_ids) == {chat.tokenizer.control["<|end|>"]}
