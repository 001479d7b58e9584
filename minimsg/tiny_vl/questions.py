"""The little language: what may be asked of a scene, and what is true of it.

Every kind of question has a few spellings and one answer, a whole sentence, so an answer
is right or wrong to the letter. What a question is about may not be there, or there may be
several: then the answer says how many there are. Knows facts (`scenes.py`) and words
(`wording.py`), no picture and no model.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from minimsg.tiny_vl.scenes import COLOURS, DIGITS, SHAPES, Scene, Thing
from minimsg.tiny_vl.wording import plural, spelled, varied, with_article

_MARGIN: Final = 0.12  # of the width: what is left of something is so by at least this


class Question(NamedTuple):
    """What is asked, what is right, and of which kind it is."""

    kind: str
    text: str
    answer: str

    @property
    def is_plain(self) -> bool:
        """Whether it is about what is there once; else the answer is a number."""
        return self.kind == "count" or not re.match(r"I see \d", self.answer)

    @property
    def is_clear(self) -> bool:
        """Whether it is about what is there once, or not at all."""
        return self.is_plain or self.answer.startswith("I see 0 ")


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


def ask(random: random.Random, scene: Scene, kind: str) -> Question | None:
    """A question of a kind, if the scene has a clear answer to one."""
    if (pair := _MAKERS[kind](random, scene)) is None:
        return None
    text, answer = pair
    return Question(kind, varied(random, text), answer)


def ask_any(random: random.Random, scene: Scene) -> Question:
    """A question of any kind that the scene answers, mostly about what is there once."""
    while True:
        (kind,) = random.choices(KINDS, _WEIGHTS)
        question = ask(random, scene, kind)
        if question and (question.is_plain or random.random() < _OTHERS):
            return question


Pair = tuple[str, str]


def _colour(random: random.Random, scene: Scene) -> Pair:
    wish = _wish(random, scene, (*SHAPES, *DIGITS, "digit", "shape"))
    text = spelled(random, "colour", wish=wish.words)
    return text, _of_one(scene, wish, lambda thing: f"The {wish.noun} is {thing.colour}.")


def _ground(random: random.Random, scene: Scene) -> Pair:
    return spelled(random, "ground"), f"The background is {scene.ground}."


def _shape(random: random.Random, scene: Scene) -> Pair:
    wish = Wish(random.choice(("shape", "thing")), _a_colour(random, scene))
    text = spelled(random, "shape", wish=wish.words)
    wish = Wish("shape", wish.colour)
    return text, _of_one(scene, wish, lambda thing: f"The {wish.words} is a {thing.noun}.")


def _digit(random: random.Random, scene: Scene) -> Pair:
    wish = Wish("digit", _a_colour(random, scene))
    text = spelled(random, "digit", colour=str(wish.colour))
    return text, _of_one(
        scene, wish, lambda thing: f"The {wish.words} is {with_article(thing.noun)}."
    )


def _it_shape(random: random.Random, scene: Scene) -> Pair:
    answer = _of_one(scene, Wish("shape"), lambda thing: f"It is a {thing.noun}.")
    return spelled(random, "it shape"), answer


def _it_digit(random: random.Random, scene: Scene) -> Pair:
    answer = _of_one(scene, Wish("digit"), lambda thing: f"It is {with_article(thing.noun)}.")
    return spelled(random, "it digit"), answer


def _it_colour(random: random.Random, scene: Scene) -> Pair:
    text = spelled(random, "it colour")
    if not scene.things:
        return text, f"It is {scene.ground}."
    return text, _of_one(scene, Wish("thing"), lambda thing: f"It is {thing.colour}.")


def _count(random: random.Random, scene: Scene) -> Pair:
    wish = _wish(random, scene, (*SHAPES, "shape", "digit", "thing", "thing"))
    return spelled(random, "count", wishes=plural(wish.words)), counted(scene, wish)


def _exists(random: random.Random, scene: Scene) -> Pair:
    wish = _wish(random, scene, (*SHAPES, *DIGITS, "digit", "shape"))
    is_there = any(map(wish.matches, scene.things))
    return spelled(random, "exists", a_wish=with_article(wish.words)), _yes(is_there)


def _is_colour(random: random.Random, scene: Scene) -> Pair:
    """Whether the only thing of a noun has a colour: which it has is said first."""
    wish = _wish(random, scene, (*SHAPES, *DIGITS, "digit", "shape"))._replace(colour=None)
    colour = random.choice((_a_colour(random, scene), random.choice(list(COLOURS))))
    text = spelled(random, "is colour", wish=wish.words, colour=colour)
    so = {True: "yes", False: "no"}
    return text, _of_one(
        scene,
        wish,
        lambda thing: f"The {wish.noun} is {thing.colour}, so {so[thing.colour == colour]}.",
    )


def _end(random: random.Random, scene: Scene) -> Pair | None:
    """The outermost thing, if the next one is clearly behind it."""
    side = random.choice(("left", "right"))
    if len(scene.things) < 2:
        return None
    first, second = scene.things[:2] if side == "left" else scene.things[:-3:-1]
    if abs(first.x - second.x) < _MARGIN * scene.width:
        return None
    return spelled(random, "end", side=side), f"{_an(first).capitalize()} is on the {side}."


def _where(random: random.Random, scene: Scene) -> Pair | None:
    """One thing on its half, if it is clearly on one."""
    wish = _wish(random, scene, (*SHAPES, "digit", "thing"))
    text = spelled(random, "where", wish=wish.words)
    found = [thing for thing in scene.things if wish.matches(thing)]
    if len(found) != 1:
        return text, counted(scene, wish)
    lean = found[0].x / scene.width - 0.5
    if abs(lean) < _MARGIN:
        return None
    return text, f"The {wish.noun} is on the {'left' if lean < 0 else 'right'}."


def _order(random: random.Random, scene: Scene) -> Pair | None:
    """Two things, each the only one of its noun: which of them is further to the side asked for."""
    nouns = [thing.noun for thing in scene.things]
    alone = [thing for thing in scene.things if nouns.count(thing.noun) == 1]
    if len(alone) < 2:
        return None
    one, other = random.sample(alone, 2)
    if abs(one.x - other.x) < _MARGIN * scene.width:
        return None
    side = random.choice(("left", "right"))
    text = spelled(random, "order", wish=one.noun, side=side, other=other.noun)
    is_so = (one.x < other.x) == (side == "left")
    first, last = (one, other) if is_so else (other, one)
    so = "yes" if is_so else "no"  # last: it follows from what is said before it
    return text, f"The {first.noun} is {side} of the {last.noun}, so {so}."


def _describe(random: random.Random, scene: Scene) -> Pair:
    text, things = spelled(random, "describe"), scene.things
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
    "is colour": _is_colour,
    "end": _end,
    "where": _where,
    "order": _order,
    "describe": _describe,
}
KINDS: Final = tuple(_MAKERS)
# How often hard kinds are asked, for each time that others are.
_HARD: Final = {
    "colour": 4,
    "shape": 4,
    "digit": 4,
    "count": 5,
    "exists": 2,
    "is colour": 3,
    "end": 2,
    "where": 7,
    "order": 7,
}
_OTHERS: Final = 0.4  # of those about what is not there, or there several times
_WEIGHTS: Final = [_HARD.get(kind, 1) for kind in KINDS]


def counted(scene: Scene, wish: Wish) -> str:
    """How many there are of it."""
    number = sum(map(wish.matches, scene.things))
    return f"I see {number} {wish.words if number == 1 else plural(wish.words)}."


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
    """Mostly something that is there: its noun, or a wider one; at times with a colour.

    The colour may be another thing's, and the noun one of its kind: whoever finds half of what
    is asked for has to say no as well.
    """
    noun, colours = random.choice(nouns), list(COLOURS)
    if scene.things and random.random() < 0.8:
        thing = random.choice(scene.things)
        kin = [noun for noun in nouns if noun in (DIGITS if thing.is_digit else SHAPES)]
        fitting = [noun for noun in nouns if Wish(noun).matches(thing)]
        if found := kin if random.random() < 0.25 else fitting:
            noun = random.choice(found)
        colours = [thing.colour, thing.colour, random.choice(scene.things).colour]
    if random.random() < 0.15:
        colours = list(COLOURS)
    return Wish(noun, random.choice(colours) if random.random() < 0.35 else None)


def _a_colour(random: random.Random, scene: Scene) -> str:
    if scene.things and random.random() < 0.85:
        return random.choice(scene.things).colour
    return random.choice(list(COLOURS))
