"""The little language: what may be asked of a scene, and what is true of it.

Every kind of question has a few spellings and one answer, a whole sentence, so an answer
is right or wrong to the letter. What a question is about may not be there, or there may be
several: then the answer says how many there are. Knows facts (`scenes.py`), no picture and
no model.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from minimsg.tiny_vl.scenes import COLOURS, DIGITS, SHAPES, Scene, Thing

ONLY_KNOW: Final = "I only know colours, shapes, digits, counts, left and right."
NO_PICTURE: Final = "I see no picture."
HELLO: Final = "Hello! Show me a picture."
_MARGIN: Final = 0.08  # of the width: what is left of something is so by at least this


class Question(NamedTuple):
    """What is asked, what is right, and of which kind it is."""

    kind: str
    text: str
    answer: str


class Wish(NamedTuple):
    """What a question is about: things of a noun, of a colour, or of both."""

    noun: str  # one of SHAPES, DIGITS, or: shape, digit, thing
    colour: str | None = None

    def matches(self, thing: Thing) -> bool:
        fits = {"thing": True, "digit": thing.is_digit, "shape": not thing.is_digit}
        is_of_noun = fits.get(self.noun, thing.noun == self.noun)
        return is_of_noun and self.colour in (None, thing.colour)

    @property
    def words(self) -> str:
        return f"{self.colour} {self.noun}" if self.colour else self.noun


GREETINGS: Final = ("Hello", "Hello!", "Hi", "Hi!", "Hello there!")
SPELLINGS: Final[dict[str, tuple[str, ...]]] = {
    "colour": (
        "What colour is the {wish}?", "Which colour is the {wish}?",
        "What is the colour of the {wish}?", "What colour does the {wish} have?",
    ),
    "ground": (
        "What colour is the background?", "What is the colour of the background?",
        "Which colour is the background?",
    ),
    "shape": (
        "What shape is the {wish}?", "Which shape is the {wish}?",
        "What is the shape of the {wish}?",
    ),
    "digit": ("What digit is {colour}?", "Which digit is {colour}?", "What is the {colour} digit?"),
    "it shape": (
        "What shape is it?", "What shape is this?", "What shape do you see?", "Which shape is it?",
        "What shape is in the picture?", "Which shape do you see?", "What is the shape?",
    ),
    "it digit": (
        "What digit is it?", "What digit is this?", "What digit do you see?", "Which digit is it?",
        "What number is it?", "What number do you see?", "What digit is in the picture?",
        "Which number is this?", "What is the digit?", "Which digit do you see?",
    ),
    "it colour": (
        "What colour is it?", "What colour is this?", "What colour do you see?",
        "What is the colour?", "Which colour is it?",
    ),
    "count": (
        "How many {wishes} are there?", "How many {wishes} do you see?", "Count the {wishes}.",
        "How many {wishes} are in the picture?", "How many {wishes} can you see?",
    ),
    "exists": (
        "Is there {a_wish}?", "Do you see {a_wish}?", "Is there {a_wish} in the picture?",
        "Can you see {a_wish}?",
    ),
    "end": (
        "What is on the {side}?", "What do you see on the {side}?", "Which thing is on the {side}?",
        "What is on the {side} side?",
    ),
    "where": (
        "Where is the {wish}?", "On which side is the {wish}?",
        "Is the {wish} on the left or on the right?", "Is the {wish} on the left or right?",
    ),
    "order": (
        "Is the {wish} {side} of the {other}?", "Is the {wish} to the {side} of the {other}?",
    ),
    "describe": (
        "What is in the picture?", "What do you see?", "Describe the picture.", "What is this?",
        "What is it?", "What can you see?", "What do you see in the picture?", "What is there?",
    ),
}  # fmt: skip
_SYNONYMS: Final = (
    ("colour", "color"),
    ("picture", "image"),
    ("picture", "photo"),
    ("grey", "gray"),
    ("thing", "object"),
)


def ask(random: random.Random, scene: Scene, kind: str) -> Question | None:
    """A question of a kind, if the scene has a clear answer to one."""
    if (pair := _MAKERS[kind](random, scene)) is None:
        return None
    text, answer = pair
    return Question(kind, varied(random, text), answer)


def ask_any(random: random.Random, scene: Scene) -> Question:
    """A question of any kind that the scene answers."""
    while True:
        if (question := ask(random, scene, random.choice(KINDS))) is not None:
            return question


def varied(random: random.Random, text: str) -> str:
    """The same question with other words for some, with a small letter or without its mark."""
    for word, other in _SYNONYMS:
        if word in text and random.random() < 0.3:
            text = text.replace(word, other)
    if random.random() < 0.15:
        text = text[0].lower() + text[1:]
    if random.random() < 0.15:
        text = text.rstrip("?.!")
    return text


Pair = tuple[str, str]


def _spelling(random: random.Random, kind: str, **words: str) -> str:
    return random.choice(SPELLINGS[kind]).format(**words)


def _colour(random: random.Random, scene: Scene) -> Pair:
    wish = _wish(random, scene, (*SHAPES, *DIGITS, "digit", "shape"))
    text = _spelling(random, "colour", wish=wish.words)
    return text, _of_one(scene, wish, lambda thing: f"The {wish.noun} is {thing.colour}.")


def _ground(random: random.Random, scene: Scene) -> Pair:
    return _spelling(random, "ground"), f"The background is {scene.ground}."


def _shape(random: random.Random, scene: Scene) -> Pair:
    wish = Wish(random.choice(("shape", "thing")), _a_colour(random, scene))
    text = _spelling(random, "shape", wish=wish.words)
    wish = Wish("shape", wish.colour)
    return text, _of_one(scene, wish, lambda thing: f"The {wish.words} is a {thing.noun}.")


def _digit(random: random.Random, scene: Scene) -> Pair:
    wish = Wish("digit", _a_colour(random, scene))
    text = _spelling(random, "digit", colour=str(wish.colour))
    return text, _of_one(scene, wish, lambda thing: f"The {wish.words} is a {thing.noun}.")


def _it_shape(random: random.Random, scene: Scene) -> Pair:
    answer = _of_one(scene, Wish("shape"), lambda thing: f"It is a {thing.noun}.")
    return _spelling(random, "it shape"), answer


def _it_digit(random: random.Random, scene: Scene) -> Pair:
    answer = _of_one(scene, Wish("digit"), lambda thing: f"It is a {thing.noun}.")
    return _spelling(random, "it digit"), answer


def _it_colour(random: random.Random, scene: Scene) -> Pair:
    text = _spelling(random, "it colour")
    if not scene.things:
        return text, f"It is {scene.ground}."
    return text, _of_one(scene, Wish("thing"), lambda thing: f"It is {thing.colour}.")


def _count(random: random.Random, scene: Scene) -> Pair:
    wish = _wish(random, scene, (*SHAPES, "shape", "digit", "thing", "thing"))
    return _spelling(random, "count", wishes=plural(wish.words)), counted(scene, wish)


def _exists(random: random.Random, scene: Scene) -> Pair:
    wish = _wish(random, scene, (*SHAPES, *DIGITS, "digit", "shape"))
    is_there = any(map(wish.matches, scene.things))
    return _spelling(random, "exists", a_wish=with_article(wish.words)), _yes(is_there)


def _end(random: random.Random, scene: Scene) -> Pair | None:
    """The outermost thing, if the next one is clearly behind it."""
    side = random.choice(("left", "right"))
    if len(scene.things) < 2:
        return None
    first, second = scene.things[:2] if side == "left" else scene.things[:-3:-1]
    if abs(first.x - second.x) < _MARGIN * scene.width:
        return None
    return _spelling(random, "end", side=side), f"{_an(first).capitalize()} is on the {side}."


def _where(random: random.Random, scene: Scene) -> Pair | None:
    """One thing on its half, if it is clearly on one."""
    wish = _wish(random, scene, (*SHAPES, "digit", "thing"))
    text = _spelling(random, "where", wish=wish.words)
    found = [thing for thing in scene.things if wish.matches(thing)]
    if len(found) != 1:
        return text, counted(scene, wish)
    lean = found[0].x / scene.width - 0.5
    if abs(lean) < _MARGIN:
        return None
    return text, f"The {wish.noun} is on the {'left' if lean < 0 else 'right'}."


def _order(random: random.Random, scene: Scene) -> Pair | None:
    """Two things, each the only one of its noun."""
    nouns = [thing.noun for thing in scene.things]
    alone = [thing for thing in scene.things if nouns.count(thing.noun) == 1]
    if len(alone) < 2:
        return None
    one, other = random.sample(alone, 2)
    if abs(one.x - other.x) < _MARGIN * scene.width:
        return None
    asked, is_side = random.choice(("left", "right")), "left" if one.x < other.x else "right"
    text = _spelling(random, "order", wish=one.noun, side=asked, other=other.noun)
    is_so = "Yes" if asked == is_side else "No"
    return text, f"{is_so}, the {one.noun} is {is_side} of the {other.noun}."


def _describe(random: random.Random, scene: Scene) -> Pair:
    text, things = _spelling(random, "describe"), scene.things
    if not things:
        return text, f"I see {with_article(scene.ground)} picture."
    *firsts, last = map(_an, things)
    listed = f"{', '.join(firsts)} and {last}" if firsts else last
    return text, f"I see {listed}."


_MAKERS: Final[dict[str, Callable[[random.Random, Scene], Pair | None]]] = {
    "colour": _colour,
    "ground": _ground,
    "shape": _shape,
    "digit": _digit,
    "it shape": _it_shape,
    "it digit": _it_digit,
    "it colour": _it_colour,
    "count": _count,
    "exists": _exists,
    "end": _end,
    "where": _where,
    "order": _order,
    "describe": _describe,
}
KINDS: Final = tuple(_MAKERS)


def counted(scene: Scene, wish: Wish) -> str:
    """How many there are of it."""
    number = sum(map(wish.matches, scene.things))
    return f"I see {number} {wish.words if number == 1 else plural(wish.words)}."


def plural(words: str) -> str:
    """`red cross` -> `red crosses`; a digit has none."""
    return f"{words}es" if words.endswith("ss") else f"{words}s"


def with_article(words: str) -> str:
    """`orange star` -> `an orange star`."""
    return f"an {words}" if words[0] in "aeiou8" else f"a {words}"


def _an(thing: Thing) -> str:
    return with_article(f"{thing.colour} {thing.noun}")


def _yes(is_so: bool) -> str:
    return "Yes." if is_so else "No."


def _of_one(scene: Scene, wish: Wish, answer: Callable[[Thing], str]) -> str:
    """The answer about the only one; else how many there are."""
    found = [thing for thing in scene.things if wish.matches(thing)]
    if len(found) == 1:
        return answer(found[0])
    if wish.noun in DIGITS:  # which have no plural
        wish = Wish("digit", wish.colour)
        return f"I see {len(found)} of it."
    return counted(scene, wish)


def _wish(random: random.Random, scene: Scene, nouns: Sequence[str]) -> Wish:
    """Mostly something that is there: its noun, or a wider one; at times with its colour."""
    noun, colour = random.choice(nouns), None
    if scene.things and random.random() < 0.75:
        thing = random.choice(scene.things)
        fitting = [noun for noun in nouns if Wish(noun).matches(thing)]
        noun = random.choice(fitting) if fitting else noun
        colour = thing.colour
    if random.random() < 0.15:
        colour = random.choice(list(COLOURS))
    return Wish(noun, colour if random.random() < 0.3 else None)


def _a_colour(random: random.Random, scene: Scene) -> str:
    if scene.things and random.random() < 0.85:
        return random.choice(scene.things).colour
    return random.choice(list(COLOURS))


def sentences() -> Iterator[str]:
    """Texts that hold every word of the language at least once."""
    wishes = [*SHAPES, *DIGITS, "shape", "digit", "thing"]
    for spellings in SPELLINGS.values():
        for spelling in spellings:
            yield spelling.format(
                wish="", wishes="", a_wish="a", colour="", side="left", other="right"
            )
    yield from (word for pair in _SYNONYMS for word in pair)
    yield from (*GREETINGS, HELLO, ONLY_KNOW, NO_PICTURE, "Yes, No, an It", *COLOURS, *wishes)
    yield "I see of it and The background A picture"
    yield from map(plural, (*SHAPES, "shape", "digit", "thing", "object"))
