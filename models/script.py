"""The tapes of a `scripted` model, as its config.json gives them. Torch-free.

    {"model_type": "scripted", "vocab_size": 49152, "max_position_embeddings": 2048,
     "start_ids": [1, 520, 9531, 198], "tapes": [[28120, 30], [19556]], "end_id": 2}

How they are played stands in `scripted.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from minimsg.errors import CheckpointError
from minimsg.fields import Fields

BYTES_PER_ID: Final = 4  # one cached number a byte: 0 to 255 is exact in every float format


@dataclass(frozen=True)
class Script:
    """What is said: the n-th turn, which `start_ids` begins, is the n-th tape, or the last.

    Invariant: no tape contains `start_ids`, or it would begin a turn itself.
    """

    start_ids: tuple[int, ...]  # the template's generation prompt
    tapes: tuple[tuple[int, ...], ...]
    end_id: int  # follows each tape


def parse_script(config: Fields, vocab_size: int) -> Script:
    """The script of a whole config.json. Raises CheckpointError if it has none that can run."""
    script = Script(
        start_ids=config.ids("start_ids", vocab_size=vocab_size),
        tapes=config.lists_of_ids("tapes", vocab_size=vocab_size),
        end_id=config.integer("end_id", minimum=0, maximum=vocab_size - 1),
    )
    for number, tape in enumerate(script.tapes):
        if _contains(tape, script.start_ids):
            raise CheckpointError(config.source, f"start_ids inside tape {number}", "them outside")
    return script


def _contains(ids: tuple[int, ...], part: tuple[int, ...]) -> bool:
    return any(ids[i : i + len(part)] == part for i in range(len(ids) - len(part) + 1))
