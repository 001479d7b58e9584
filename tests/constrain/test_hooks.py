"""Hooks in the engine: a reply keeps to its grammar, and a grammar that fails ends it alone."""

from __future__ import annotations

import pytest

from minimsg.builtin import TURN_END, write_tiny
from minimsg.config import EngineConfig
from minimsg.constrain.constraint import Constraint
from minimsg.constrain.hooks import Together
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.engine import Engine
from minimsg.engine.types import (
    BitMask,
    Finish,
    FinishReason,
    GenerationRequest,
    Output,
    SamplingParams,
    Token,
    TokenHook,
)
from minimsg.errors import GenerationFailed
from minimsg.loading import load_engine
from tests.constrain.conftest import MakeGrammars
from tests.constrain.driving import allowed_ids, may_come, spell, write
from tests.constrain.schemas import SCHEMAS

PROMPT = [*b"Say it."]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    folder = tmp_path_factory.mktemp("tiny")
    write_tiny(folder)
    return load_engine(folder, EngineConfig(num_pages=256, dtype="float32"))


def request(name: str, hook: TokenHook | None, *, seed: int = 1) -> GenerationRequest:
    sampling = SamplingParams(temperature=1.0, seed=seed)
    ends = frozenset({TURN_END})
    return GenerationRequest(name, PROMPT, 200, end_ids=ends, sampling=sampling, hook=hook)


def run(engine: Engine, *requests: GenerationRequest) -> dict[str, list[Output]]:
    said: dict[str, list[Output]] = {each.id: [] for each in requests}
    for step in engine.steps(*requests):
        for output in step.outputs:
            said[output.request_id].append(output)
    return said


def ids_in(outputs: list[Output]) -> list[int]:
    return [output.id for output in outputs if isinstance(output, Token)]


async def held(grammars: MakeGrammars, vocabulary: Vocabulary, name: str) -> TokenHook:
    hook = await grammars(vocabulary, "hermes").hook(Constraint(schema=SCHEMAS[name]), {})
    assert hook is not None
    return hook


async def test_a_random_model_keeps_to_the_grammar_and_its_neighbour_does_not_notice(
    engine: Engine, plain: Vocabulary, grammars: MakeGrammars
) -> None:
    alone = ids_in(run(engine, request("free", None))["free"])
    hook = await held(grammars, plain, "bounds")
    said = run(engine, request("held", hook), request("free", None))
    assert ids_in(said["free"]) == alone
    text = spell(plain, ids_in(said["held"])[:-1])
    assert text in {f'{{"n":{n}}}' for n in range(1, 8)}
    assert said["held"][-1] == Finish("held", FinishReason.END)


class Failing:
    """A grammar that fails in its third step."""

    def __init__(self, hook: TokenHook) -> None:
        self._hook = hook
        self._num_steps = 0

    def mask(self) -> BitMask | None:
        self._num_steps += 1
        if self._num_steps == 3:
            self._hook.advance(ord("x"))
        mask = self._hook.mask()
        assert isinstance(mask, BitMask)
        return mask

    def forced(self) -> int | None:
        return None

    def advance(self, id: int) -> None:
        self._hook.advance(id)

    def rollback(self, n: int) -> None: ...


async def test_a_grammar_that_fails_ends_its_own_request_only(
    engine: Engine, plain: Vocabulary, grammars: MakeGrammars
) -> None:
    alone = ids_in(run(engine, request("free", None))["free"])
    hook = Failing(await held(grammars, plain, "an integer"))
    said = run(engine, request("held", hook), request("free", None))
    finish = said["held"][-1]
    assert isinstance(finish, Finish)
    assert finish.reason is FinishReason.ERROR
    assert "the grammar failed" in str(finish.error)
    assert len(ids_in(said["held"])) == 2
    assert ids_in(said["free"]) == alone


async def test_an_id_that_may_not_come_fails_with_the_cause_and_stays_failed(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await held(grammars, plain, "an integer")
    with pytest.raises(GenerationFailed, match=r"the grammar failed: .*doesn't satisfy"):
        hook.advance(ord("x"))
    with pytest.raises(GenerationFailed):
        hook.mask()


async def test_ids_taken_back_may_come_again_the_end_of_the_turn_too(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await held(grammars, plain, "an integer")
    assert write(hook, plain, '{"n":12}') == ""
    hook.advance(TURN_END)
    hook.rollback(3)
    assert may_come(hook, ord("3"))
    assert write(hook, plain, "3}") == ""
    assert hook.forced() == TURN_END


async def test_replies_do_not_share_where_they_stand(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    one, other = [await held(grammars, plain, "an integer") for _ in range(2)]
    assert write(one, plain, '{"n":1') == ""
    assert allowed_ids(other) == [ord("{")]


class Fixed:
    """A hook that never changes its mind."""

    def __init__(self, mask: list[int] | BitMask | None, forced: int | None = None) -> None:
        self._mask, self._forced = mask, forced
        self.seen: list[int] = []

    def mask(self) -> list[int] | BitMask | None:
        return self._mask

    def forced(self) -> int | None:
        return self._forced

    def advance(self, id: int) -> None:
        self.seen.append(id)

    def rollback(self, n: int) -> None:
        del self.seen[len(self.seen) - n :]


def test_several_hooks_allow_what_all_do_and_force_what_one_does() -> None:
    hooks = [Fixed([1, 9, 30]), Fixed(None), Fixed(BitMask(b"\0\x02\0\x40"))]
    together = Together(hooks)
    assert allowed_ids(together) == [9, 30]
    assert Together([*hooks, Fixed(None, forced=5)]).forced() == 5
    together.advance(9)
    together.advance(30)
    together.rollback(1)
    assert [hook.seen for hook in hooks] == [[9]] * 3
    assert Together([Fixed(None)]).mask() is None


@pytest.mark.parametrize(
    ("forcing", "masking", "name"), [(True, True, "b"), (False, True, "a"), (False, False, "")]
)
def test_of_several_hooks_those_who_decide_are_named(
    forcing: bool, masking: bool, name: str
) -> None:
    a = Named("a", [1] if masking else None, None)
    b = Named("b", None, 2 if forcing else None)
    assert Together([a, b]).name == name


class Named:
    """A hook with a name, a mask and a choice that never change."""

    def __init__(self, name: str, mask: list[int] | None, forced: int | None) -> None:
        self.name = name
        self._mask, self._forced = mask, forced

    def mask(self) -> list[int] | None:
        return self._mask

    def forced(self) -> int | None:
        return self._forced

    def advance(self, id: int) -> None: ...

    def rollback(self, n: int) -> None: ...
