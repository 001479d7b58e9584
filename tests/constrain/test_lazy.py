"""A call that the model begins by itself is held from its name on, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from minimsg.builtin import TURN_END
from minimsg.constrain.constraint import Constraint
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.types import TokenHook
from minimsg.errors import GenerationFailed
from minimsg.parsing.calls import CallableTool
from minimsg.parsing.thinking import ThinkingTags
from tests.constrain.conftest import MakeGrammars
from tests.constrain.driving import allowed_ids, drawn, ids_of, may_come, read, spell, write
from tests.constrain.schemas import SCHEMAS

TOOLS = {"now": CallableTool(), "tool": CallableTool(SCHEMAS["nested"])}
STRICT = Constraint(strict={"tool": "tools.1.custom.input_schema"})

# How models begin a call of `tool`, up to where a parser takes it for one.
BEGINNINGS = {
    "hermes": [
        '<tool_call>\n{"name": "tool"',
        '<tool_call>{"name":"tool"',
        "Let me look.\n\n<tool_call>\n{'name': 'tool'",
        '<tool_call>[{"id": "x", "name" : "tool"',
        '<tool_call>\n{\n  "name": "tool",\n  "arguments": {\n',
        '<tool_call>{"name": "now", "arguments": {}}\n{"name": "tool", "arguments"',
        '<tool_call>{"name": "now", "arguments": {}}</tool_call> and <tool_call>{"name": "tool"',
        '<tool_call>{"name": "nobody"}</tool_call><tool_call>{"name": "tool"',
    ],
    "llama_json": ['{"name": "tool", "parameters": {', '\n{"name":"tool","parameters": {"'],
    "json": [
        '{"name": "tool", "arguments": {',
        '```json\n{"name": "tool", "arguments": {"',
        'So { this } is it:\n{"name": "tool", "arguments": { ',
        '<tool_call>{"name": "tool"',
    ],
    "qwen_xml": [
        "<tool_call>\n<function=tool>",
        "<function=tool>\n\n\n",
        "I will.<tool_call><function=tool>\n<parameter=at>",
    ],
}
TOLERATED = {
    "{'name': 'tool', 'arguments': {'a': 1, 'b': 'it\\'s \"x\"'}}",
    '{"name": "tool", "arguments": {"a": [True, None, ], "b": "line\nbreak \\d",}}',
    '{"name": "tool",\n  "parameters": {\n    "a" : -1.5E+3\n  }\n}',
    '{"name": "tool", "arguments": "{\\"a\\": 1}"}',
    '{"name": "tool", "id": "call_0"}',
}
NUM_DRAWN, MAX_ROUNDS = 40, 200
# Each round closes at least one thing: a string of either kind, a list, an object, a key.
JSON_CLOSINGS = ['"', "'", "]", "}", ":"]
CLOSINGS = dict.fromkeys(BEGINNINGS, JSON_CLOSINGS) | {
    "qwen_xml": [*JSON_CLOSINGS, "\n</parameter>", ">", "</function>", "</tool_call>"]
}
ALL = [(format, text) for format, texts in BEGINNINGS.items() for text in texts]


async def hook_for(
    grammars: MakeGrammars,
    vocabulary: Vocabulary,
    format: str,
    constraint: Constraint,
    thinking: ThinkingTags | None = None,
) -> TokenHook:
    hook = await grammars(vocabulary, format).hook(constraint, TOOLS, thinking)
    assert hook is not None
    return hook


def is_free(hook: TokenHook) -> bool:
    return allowed_ids(hook) is None


def finish(hook: TokenHook, vocabulary: Vocabulary, format: str, seed: int) -> list[int]:
    """Draw a while, then close what is open, piece by piece, until the hook lets go of the call.

    Nothing else ends a call. Where no closing piece may come, as inside `true`, chance decides.
    """
    ids: list[int] = []

    def draw() -> None:
        ids.extend(drawn(hook, vocabulary, seed + len(ids), 1, ends=False))

    while not is_free(hook) and len(ids) < NUM_DRAWN:
        draw()
    for _ in range(MAX_ROUNDS):
        length = len(ids)
        for piece in CLOSINGS[format]:
            for id in ids_of(vocabulary, piece):
                if not is_free(hook) and may_come(hook, id):
                    hook.advance(id)
                    ids.append(id)
        if is_free(hook):
            return ids
        if len(ids) == length:
            draw()
    raise AssertionError(f"not to be closed: {spell(vocabulary, ids)}")


@pytest.mark.parametrize(("format", "text"), ALL)
@pytest.mark.parametrize("constraint", [Constraint(), STRICT], ids=["ordinary", "strict"])
async def test_a_call_is_held_from_its_name_to_its_end_however_it_began(
    plain: Vocabulary,
    tagged: Vocabulary,
    grammars: MakeGrammars,
    format: str,
    text: str,
    constraint: Constraint,
) -> None:
    for vocabulary in (plain, tagged):
        hook = await hook_for(grammars, vocabulary, format, constraint)
        assert write(hook, vocabulary, text) == ""
        assert may_come(hook, TURN_END) == (not constraint.strict)
        ids = [*ids_of(vocabulary, text), *finish(hook, vocabulary, format, len(text))]
        said = read(vocabulary, format, TOOLS, ids)
        name, input = said.calls[-1]
        assert name == "tool"
        schema: dict[str, Any] = SCHEMAS["nested"] if constraint.strict else {"type": "object"}
        jsonschema.validate(json.loads(input), schema)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("hermes", 'Just text, and {"name": "tool"} in it'),
        ("hermes", '<tool_call>{"name": "nobody"'),
        ("hermes", "<tool_call> is how calls begin"),
        ("qwen_xml", "<tool_call><function=nobody>"),
        ("llama_json", 'I call {"name": "tool", "parameters": {'),
        ("json", '{"names": ["tool"], "arguments": {'),
    ],
)
async def test_what_is_no_call_is_free(
    plain: Vocabulary, grammars: MakeGrammars, format: str, text: str
) -> None:
    hook = await hook_for(grammars, plain, format, STRICT)
    assert write(hook, plain, text) == ""
    assert is_free(hook)


@pytest.mark.parametrize("input", ['{"a": [1, 2}', '{"a": 1}]', '{"a": 1e999}', '{"a" 1}'])
async def test_an_input_that_breaks_may_not_come(
    plain: Vocabulary, grammars: MakeGrammars, input: str
) -> None:
    hook = await hook_for(grammars, plain, "hermes", Constraint())
    assert write(hook, plain, f'<tool_call>{{"name": "tool", "arguments": {input}') != ""


@pytest.mark.parametrize("text", sorted(TOLERATED))
async def test_what_the_parser_puts_right_may_come(
    plain: Vocabulary, grammars: MakeGrammars, text: str
) -> None:
    hook = await hook_for(grammars, plain, "hermes", Constraint())
    assert write(hook, plain, f"<tool_call>{text}") == ""
    assert is_free(hook)


async def test_a_turn_may_end_inside_a_call_unless_its_tool_is_strict(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    text = '<tool_call>{"name": "tool", "arguments": {"at": {"lat": 1'
    for constraint in (Constraint(), STRICT):
        hook = await hook_for(grammars, plain, "hermes", constraint)
        assert write(hook, plain, text) == ""
        assert may_come(hook, TURN_END) == (not constraint.strict)
    said = read(plain, "hermes", TOOLS, [*ids_of(plain, text), TURN_END])
    assert said.calls == [("tool", "{}")]


async def test_white_space_does_not_go_on_for_ever(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    for constraint in (Constraint(), STRICT):
        for place in ("", ' "at"', ' "at": {"lat":', ' "at": {"lat": 1'):
            hook = await hook_for(grammars, plain, "hermes", constraint)
            text = '<tool_call>{"name": "tool", "arguments": {' + place
            assert 0 < len(write(hook, plain, text + "\n" * 60)) < 60


async def test_a_strict_input_of_another_form_may_not_come(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    for constraint, rejected in ((STRICT, 'b":1}'), (Constraint(), "")):
        hook = await hook_for(grammars, plain, "hermes", constraint)
        text = '<tool_call>{"name": "tool", "arguments": {"b":1}'
        assert write(hook, plain, text) == rejected


async def test_after_a_call_everything_is_free_again(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await hook_for(grammars, plain, "hermes", STRICT)
    whole = '<tool_call>{"name": "now", "arguments": {}}\n</tool_call>'
    assert write(hook, plain, f"{whole} and then {whole}") == ""
    assert is_free(hook)


async def test_the_first_call_ends_the_turn_where_only_one_is_wanted(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await hook_for(grammars, plain, "hermes", Constraint(is_one_call=True))
    text = 'Now. <tool_call>{"name": "now", "arguments": {}}'
    assert write(hook, plain, text) == ""
    assert hook.forced() == TURN_END


async def test_the_name_may_come_last_but_not_with_an_input_that_strict_forbids(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    good, bad = '{"at": {"lat": 1}}', '{"at": 5}'
    hook = await hook_for(grammars, plain, "hermes", STRICT)
    assert write(hook, plain, f'<tool_call>{{"arguments": {good}, "name": "tool"') == ""
    assert allowed_ids(hook) == sorted(b"\t\n\r }")
    hook = await hook_for(grammars, plain, "hermes", STRICT)
    with pytest.raises(GenerationFailed, match="'tool' began in a way that cannot be held"):
        write(hook, plain, f'<tool_call>{{"arguments": {bad}, "name": "tool"')
    hook = await hook_for(grammars, plain, "hermes", Constraint())
    assert write(hook, plain, f'<tool_call>{{"arguments": {bad}, "name": "tool"}}') == ""


async def test_a_call_in_thinking_is_none(tagged: Vocabulary, grammars: MakeGrammars) -> None:
    hook = await hook_for(grammars, tagged, "hermes", STRICT, ThinkingTags(is_opened=True))
    text = '<tool_call>{"name": "tool", "arguments": 5'
    assert write(hook, tagged, text) == ""
    assert write(hook, tagged, "</think>" + text) == "5"


async def test_ids_that_were_taken_back_leave_no_trace(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    text = 'So: <tool_call>{"name": "tool", "arguments": {"at":{"lat":7'
    hook = await hook_for(grammars, plain, "hermes", STRICT)
    seen = []
    for byte in text.encode():
        seen.append(allowed_ids(hook))
        hook.advance(byte)
    for length in (1, 5, 30, len(text)):
        hook.rollback(length)
        assert allowed_ids(hook) == seen[len(text) - length]
        assert write(hook, plain, text[len(text) - length :]) == ""
    hook.advance(ord("}"))
    hook.rollback(1)
    assert may_come(hook, ord("."))
