"""A request that forbids calls: their opening tag never comes, and everything else may."""

from __future__ import annotations

from minimsg.constrain.constraint import Constraint
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.types import BitMask

from .conftest import ENDS, TAGS, MakeGrammars

FORBIDDING = Constraint(forbids_calls=True)


def ids_of(mask: BitMask) -> set[int]:
    return {id for id in range(8 * len(mask.bits)) if mask.bits[id // 8] >> id % 8 & 1}


async def test_the_opening_tag_is_the_only_token_that_may_not_come(
    tagged: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await grammars(tagged, "hermes").hook(FORBIDDING, {})
    assert hook is not None
    mask = hook.mask()
    assert isinstance(mask, BitMask)
    everything = {*range(256), *ENDS, *(tagged.tokenizer.control[tag] for tag in TAGS)}
    assert everything - ids_of(mask) == {tagged.tokenizer.control["<tool_call>"]}


async def test_nothing_is_masked_where_tags_are_text(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await grammars(plain, "hermes").hook(FORBIDDING, {})
    assert hook is None or hook.mask() is None
