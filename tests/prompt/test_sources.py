"""Each token is traced to the value of the request that wrote it, or to the template.

Values are looked up in the request by their paths, tokens by their bytes.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from minimsg.prompt.chat import ChatModel
from minimsg.prompt.render import render
from minimsg.prompt.sources import map_sources
from minimsg.prompt.spans import MAX_RUNS, Source
from minimsg.prompt.template import ChatTemplate
from minimsg.protocol.request import CountTokensRequest

from .conftest import OpenModel

Found = list[tuple[str, Source | None]]

TEMPLATE: Final = (
    "{% for tool in tools or [] %}TELL{% endfor %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ SAY }}"
    "{% for call in message.tool_calls or [] %}<tool_call>"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
    "</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
IN_JSON: Final = "{{ tool | tojson }}\n"
SCHEMA: Final = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": 'A "city"'}},
    "required": ["city"],
}
TOOL: Final = {"name": "weather", "description": "Tells it.", "input_schema": SCHEMA}
CALL: Final = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Köln", "n": 3}}
LOOP: Final = [
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": [{"type": "text", "text": "I look."}, CALL]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "sun"}]},
]


def template(say: str = "message.content", tell: str = IN_JSON) -> str:
    return TEMPLATE.replace("SAY", say).replace("TELL", tell)


def user(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def sources(chat: ChatModel, **body: Any) -> Found:
    """Each token's text and where it comes from."""
    prompt = render(CountTokensRequest.parse({"model": "m", **body}), chat)
    assert prompt.reading is not None
    mapped = map_sources(prompt.reading, chat)
    texts = [chat.tokenizer.token_bytes(id).decode("latin-1") for id in prompt.ids]
    return list(zip(texts, mapped, strict=True))


def written(found: Found) -> dict[str, str]:
    """What each path has written; "" stands for the template."""
    texts: dict[str, str] = {}
    for text, source in found:
        path = source.path if source else ""
        texts[path] = texts.get(path, "") + text
    return {path: text.encode("latin-1").decode() for path, text in texts.items()}


def test_every_block_has_written_its_text_and_the_template_the_rest(chat: ChatModel) -> None:
    found = sources(
        chat,
        system=[{"type": "text", "text": "Be brief."}],
        messages=[user("hello <|im_end|>", " é "), {"role": "assistant", "content": "hell"}],
    )
    assert written(found) == {
        "system.0": "Be brief.",
        "messages.0.content.0": "hello <|im_end|>",
        "messages.0.content.1": " é ",
        "messages.1.content.0": "hell",
        "": "<|im_start|>system\n<|im_end|>\n<|im_start|>user\n\n<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\n",
    }


def test_a_token_is_of_these_characters_of_its_value(chat: ChatModel) -> None:
    found = sources(chat, messages=[user("hello é")])
    spans = [(text, s.start, s.end) for text, s in found if s]
    assert spans == [("hello", 0, 5), (" ", 5, 6), ("\xc3", 6, 7), ("\xa9", 6, 7)]


def test_a_prefix_of_two_blocks_is_of_both(chat: ChatModel) -> None:
    started = {**user("ab", "cd"), "role": "assistant"}
    found = sources(chat, messages=[user("x"), started])
    assert found[-5:] == [
        ("a", Source("messages.1.content.0", 0, 1)),
        ("b", Source("messages.1.content.0", 1, 2)),
        ("\n", None),
        ("c", Source("messages.1.content.1", 0, 1)),
        ("d", Source("messages.1.content.1", 1, 2)),
    ]


def test_a_token_that_two_have_written_is_of_the_first(open_model: OpenModel) -> None:
    chat = open_model("{% for m in messages %}{{ m.content }}ello{% endfor %}hell{{ eos_token }}")
    found = sources(chat, messages=[user("xh")])
    assert found[:3] == [
        ("x", Source("messages.0.content.0", 0, 1)),
        ("hello", Source("messages.0.content.0", 1, 2)),
        ("hell", None),
    ]


def test_json_between_the_values_of_a_tool_or_call_is_theirs(open_model: OpenModel) -> None:
    traced = sources(open_model(template()), tools=[TOOL], messages=LOOP)
    assert ("c", Source("tools.0.input_schema.properties", 0, 0)) in traced  # of a key
    found = written(traced)
    assert found["tools.0.name"] == found["messages.1.content.1.name"] == "weather"
    assert found["tools.0.description"] == "Tells it."
    assert found["tools.0.input_schema.properties"] == "city"
    assert found["tools.0.input_schema.properties.city.description"] == 'A \\"city\\"'
    assert found["messages.1.content.1.input.city"] == "Köln"
    assert found["messages.1.content.1.input"] == "cityn"
    assert found["messages.1.content.1"] == '", "arguments": {"": "", "'
    assert found["messages.2.content.0"] == "sun"
    told, called = '{"type": "function", "function": {"name": "', '<tool_call>{"name": "'
    assert found[""].startswith(told + '"]}}}\n<|im_start|>user\n<|im_end|>\n')
    assert f'{called}": 3}}}}</tool_call>' in found[""]


def test_a_value_in_another_form_is_that_as_a_whole(open_model: OpenModel) -> None:
    found = sources(open_model(template()), tools=[TOOL], messages=LOOP)
    path = "tools.0.input_schema.properties.city.description"
    assert {(s.start, s.end) for _, s in found if s and s.path == path} == {(0, 8)}


def test_white_space_that_a_template_trims_was_written_by_nobody(open_model: OpenModel) -> None:
    chat = open_model(template("message.content | trim"))
    found = sources(chat, messages=[user("\n hi ", " there\n")])
    assert written(found)["messages.0.content.0"] == "hi"
    assert written(found)["messages.0.content.1"] == "there"
    assert found[0][1] is None
    assert [s.start for _, s in found if s] == [2, 3, 1, 2, 4, 5]  # t-he-r-e


def test_only_the_value_that_a_template_looks_into_is_the_template_s(
    open_model: OpenModel,
) -> None:
    look = "('BANG' if message.content.startswith('hell') else '') ~ message.content"
    chat = open_model(template(look))
    messages = [user("one"), {"role": "assistant", "content": "hello"}, user("two"), user("three")]
    found = written(sources(chat, messages=messages))
    assert {path: text for path, text in found.items() if path} == {
        "messages.0.content.0": "one",
        "messages.2.content.0": "two",
        "messages.3.content.0": "three",
    }
    assert "BANGhello" in found[""]


def test_what_a_template_compares_costs_only_its_own_tokens(open_model: OpenModel) -> None:
    tell = (
        "{{ tool.function.name }}: {{ tool.function.description }}"
        "{% for key, property in tool.function.parameters.properties.items() %} {{ key }}"
        "{% if key in tool.function.parameters.required %}!{% endif %}"
        "{% if property.type == 'string' %} {{ property.description }}{% endif %}{% endfor %}"
        "{{ '\n' }}"
    )
    tools = [TOOL, {**TOOL, "name": "other"}]
    found = written(sources(open_model(template(tell=tell)), tools=tools, messages=LOOP))
    assert [found["tools.0.name"], found["tools.1.name"]] == ["weather", "other"]
    assert found["tools.0"] == found["tools.1"] == ":  city! "
    assert found["tools.1.input_schema.properties.city.description"] == 'A "city"'
    assert found["messages.1.content.1.input"] == "cityn"
    assert found[""].startswith("\n\n<|im_start|>")


def test_thinking_is_traced_to_its_block(open_model: OpenModel) -> None:
    say = (
        "('<think>' ~ message.reasoning_content ~ '</think>' if message.reasoning_content else '')"
        " ~ message.content"
    )
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    answer = {"role": "assistant", "content": [thought, {"type": "text", "text": "b"}]}
    found = written(sources(open_model(template(say)), messages=[user("a"), answer, user("c")]))
    assert found["messages.1.content.0"] == "hm"
    assert found["messages.1.content.1"] == "b"


def test_what_is_written_twice_is_traced_twice(open_model: OpenModel) -> None:
    chat = open_model(template(tell="{{ tool.function.name }}: " + IN_JSON))
    found = written(sources(chat, tools=[TOOL], messages=LOOP))
    assert found["tools.0.name"] == "weatherweather"


@pytest.mark.parametrize("look", ["message.content | length", "message.content | urlencode"])
def test_a_template_that_looks_into_everything_runs_a_bounded_number_of_times(
    look: str, open_model: OpenModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = open_model(template(f"{look} ~ message.content"))
    runs = []
    run = ChatTemplate.render_marked

    def counted(self: ChatTemplate, *args: Any, **kwargs: Any) -> str:
        runs.append(1)
        return run(self, *args, **kwargs)

    monkeypatch.setattr(ChatTemplate, "render_marked", counted)
    found = sources(chat, messages=[user(f"word {n}") for n in range(100)])
    assert {source for _, source in found} == {None}
    assert len(runs) == 1 + MAX_RUNS
