"""What each token of a picture should say by itself: the lesson that comes before language.

A picture's tokens lie in a grid. The one in whose cell a thing has its middle names its noun,
its colour, its side and how far to the right it is, all others say that there is none; every
one says the colour of the ground. At the tower's deeper level (DeepStack) each says which of its
64 squares are covered: a shape is known by that, whatever its colour. A tower that has learned
this has something to tell a decoder, which otherwise takes much longer to find out that there
is anything to look at. The linear maps are thrown away afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import torch
import torch.nn.functional as F
from PIL.Image import Resampling
from torch import Tensor, nn

from minimsg.tiny_vl.drawing import draw_mask
from minimsg.tiny_vl.scenes import COLOURS, DIGITS, GROUNDS, SHAPES, Scene

NOUNS: Final = (*SHAPES, *DIGITS)
NAMES: Final = tuple(COLOURS)
GROUND_NAMES: Final = tuple(GROUNDS)
FINE: Final = 8  # squares of a cell, either way
SIDES: Final = ("left", "right")
WORDS: Final = (NOUNS, NAMES, GROUND_NAMES, SIDES)
PARTS: Final = 8  # of a picture's width


def masks_of(scenes: Sequence[Scene], rows: int, columns: int) -> Tensor:
    """How far each of the 64 squares of each cell is covered, `(M, rows * columns, 64)`."""
    size = columns * FINE, rows * FINE
    masks = [np.asarray(draw_mask(scene).resize(size, Resampling.BOX)) for scene in scenes]
    stacked = torch.from_numpy(np.stack(masks)).float() / 255
    cut = stacked.view(-1, rows, FINE, columns, FINE).transpose(2, 3)
    return cut.reshape(len(scenes), rows * columns, FINE**2)


def cells_of(scenes: Sequence[Scene], rows: int, columns: int) -> Tensor:
    """Noun, colour, ground, side and part of the width of each cell, `(M, rows * columns, 5)`."""
    cells = torch.zeros(len(scenes), rows * columns, 5, dtype=torch.long)
    for cell, scene in zip(cells, scenes, strict=True):
        cell[:, 2] = GROUND_NAMES.index(scene.ground)
        for thing in scene.things:
            row = int(thing.y / scene.height * rows)
            column = int(thing.x / scene.width * columns)
            place = row * columns + column
            cell[place, 0] = 1 + NOUNS.index(thing.noun)
            cell[place, 1] = 1 + NAMES.index(thing.colour)
            cell[place, 3] = int(thing.x / scene.width * len(SIDES))
            cell[place, 4] = int(thing.x / scene.width * PARTS)
    return cells


class Naming(nn.Module):
    """What a token says: by linear maps of it, and where there are words by the decoder's own.

    That a token of a picture points where the embedding of its word does is what lets the decoder
    find the star in a picture when it reads "star".
    """

    def __init__(self, hidden_size: int, id_of: Callable[[str], int]) -> None:
        super().__init__()
        self.mask = nn.Linear(hidden_size, FINE**2)
        self.none = nn.Linear(hidden_size, 2)  # no noun, no colour
        self.part = nn.Linear(hidden_size, PARTS)
        self.ids = [[id_of(word) for word in words] for words in WORDS]

    def forward(self, seen: Tensor, cells: Tensor, masks: Tensor, embeddings: Tensor) -> Tensor:
        """The mean of -log p of all, for levels `(2, M, N, H)` of tokens and embeddings `(V, H)`.

        Cells with a thing are few, so they count as much as all others together.
        """
        last, early = seen
        covered = F.binary_cross_entropy_with_logits(self.mask(early), masks)
        nouns, colours, grounds, sides = (last @ embeddings[ids].T for ids in self.ids)
        no_noun, no_colour = self.none(last).split(1, -1)
        said = (
            torch.cat((no_noun, nouns), -1),
            torch.cat((no_colour, colours), -1),
            grounds,
            sides,
            self.part(last),
        )
        noun, colour, ground, side, part = (
            F.cross_entropy(each.mT, target, reduction="none")
            for each, target in zip(said, cells.unbind(-1), strict=True)
        )
        is_thing = cells[..., 0] > 0
        named = _mean(noun + colour + side + part, is_thing) + _mean(noun + colour, ~is_thing)
        return covered + (named + ground.mean()) / 5


def _mean(values: Tensor, where: Tensor) -> Tensor:
    return (values * where).sum() / where.sum().clamp(min=1)
