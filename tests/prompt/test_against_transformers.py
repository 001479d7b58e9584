"""Published templates, and requests, render byte for byte as in `apply_chat_template`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from minimsg.errors import TemplateError
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.template import ChatTemplate

from .conftest import OpenModel, prompt_of

Message = dict[str, Any]

TEMPLATES: Final = [
    "Qwen-QwQ-32B",
    "Qwen-Qwen2.5-7B-Instruct",
    "Qwen-Qwen3-0.6B",
    "Qwen3-Coder",
    "Qwen3.5-4B",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
]


def system(text: str) -> Message:
    return {"role": "system", "content": text}


def user(content: object) -> Message:
    return {"role": "user", "content": content}


def assistant(text: object, **more: Any) -> Message:
    return {"role": "assistant", "content": text, **more}


def tool(text: str) -> Message:
    return {"role": "tool", "content": text}


ARGUMENTS = {"city": "Köln <x>", "days": 2, "l": [1, {"a": None}], "b": True}
CALL = {"type": "function", "function": {"name": "get_weather", "arguments": ARGUMENTS}}
CITY = {"type": "string", "description": " The city\n", "enum": ["a", "b"]}
PARAMETERS = {
    "type": "object",
    "properties": {"city": CITY, "days": {"type": ["integer", "null"], "items": {"x": [1]}}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {"name": "get_weather", "description": ' <b>& "é" ', "parameters": PARAMETERS}
NOW = {"name": "now", "parameters": {"type": "object", "properties": {}}}
TOOLS = [{"type": "function", "function": WEATHER}, {"type": "function", "function": NOW}]

CONVERSATIONS: Final[dict[str, list[Message]]] = {
    "one turn": [user("hi")],
    "system": [system("Be brief."), user("hi")],
    "white space": [system(" s "), user(" hi \n"), assistant("\n yo \n"), user("\n")],
    "ends with the assistant": [user("a"), assistant("b"), user("c"), assistant("d")],
    "tool results": [
        system("s"),
        user("w?"),
        assistant("", tool_calls=[CALL]),
        tool("sunny\n"),
        tool("rain"),
        assistant("ok"),
        user("and?"),
    ],
    "two calls": [user("w?"), assistant("See.", tool_calls=[CALL, CALL]), tool("s"), user("x")],
    "thinking in text": [user("a"), assistant("<think>\nhm\n</think>\n\nb"), user("c")],
    "thinking apart": [
        user("a"),
        assistant("b", reasoning_content="\nwhy\n"),
        user("c"),
        assistant("d", reasoning_content="so"),
    ],
    "a tool response in text": [user("q"), user("<tool_response>x</tool_response>")],
    "only a tool response": [user("<tool_response>x</tool_response>")],
    "blocks": [user([{"type": "text", "text": "a"}, {"type": "image"}])],
    "no user": [assistant("first")],
}
OPTIONS: Final[list[dict[str, Any]]] = [
    {},
    {"enable_thinking": False},
    {"enable_thinking": True},
    {"tools": TOOLS},
]


@pytest.fixture(scope="session")
def genuine(test_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """transformers' own tokenizer object; templates are passed to it one by one."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("qwen3") / "qwen3"
    shutil.copytree(test_data / "data" / "qwen3", folder)
    return AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize("name", TEMPLATES)
def test_published_templates_render_as_in_transformers(
    test_data: Path, genuine: Any, name: str, conversation: str
) -> None:
    source = (test_data / "data" / "templates" / f"{name}.jinja").read_text("utf-8")
    template = ChatTemplate(source, {**genuine.special_tokens_map, "bos_token": "<s>"})
    messages = CONVERSATIONS[conversation]
    for options in OPTIONS:
        for add_generation_prompt in (True, False):
            given = {"add_generation_prompt": add_generation_prompt, **options}
            expected = _expected(genuine, source, messages, given)
            if expected is None:
                with pytest.raises(TemplateError):
                    template.render(messages, **given)
            else:
                assert template.render(messages, **given) == expected


def _expected(
    genuine: Any, source: str, messages: list[Message], given: dict[str, Any]
) -> str | None:
    """transformers' text, or None where the template fails there."""
    try:
        text: str = genuine.apply_chat_template(
            messages, chat_template=source, tokenize=False, bos_token="<s>", **given
        )
    except Exception:  # whatever a template raises there, ours must raise too
        return None
    return text


LOOK: Final = {"type": "tool_use", "id": "t1", "name": "get_weather", "input": ARGUMENTS}
TOLD: Final = [
    {"name": "get_weather", "description": ' <b>& "é" ', "input_schema": PARAMETERS},
    {"name": "now", "input_schema": NOW["parameters"]},
]


def said(words: str) -> Message:
    return {"type": "text", "text": words}


def answer(words: str, **more: Any) -> Message:
    return {"type": "tool_result", "tool_use_id": "t1", "content": words, **more}


# What a client sends, and the same in the form that transformers takes.
REQUESTS: Final[dict[str, tuple[list[Message], list[Message]]]] = {
    "one turn": ([user("hi")], [user("hi")]),
    "a loop": (
        [user("w?"), assistant([LOOK]), user([answer("sunny\n")])],
        [user("w?"), assistant("", tool_calls=[CALL]), tool("sunny\n")],
    ),
    "two calls and text": (
        [
            user("w?"),
            assistant([said("See."), LOOK, {**LOOK, "id": "t2"}]),
            user([answer("a"), answer("b", tool_use_id="t2"), said("and?")]),
        ],
        [
            user("w?"),
            assistant("See.", tool_calls=[CALL, CALL]),
            tool("a"),
            tool("b"),
            user("and?"),
        ],
    ),
    "text between results": (
        [
            user("w?"),
            assistant([LOOK, {**LOOK, "id": "t2"}]),
            user([answer("a"), said("x"), answer("b", tool_use_id="t2")]),
            assistant("ok"),
            user(" y \n"),
        ],
        [
            user("w?"),
            assistant("", tool_calls=[CALL, CALL]),
            tool("a"),
            user("x"),
            tool("b"),
            assistant("ok"),
            user(" y \n"),
        ],
    ),
    "an error": (
        [user("w?"), assistant([LOOK]), user([answer("no", is_error=True)])],
        [user("w?"), assistant("", tool_calls=[CALL]), tool("Error: no")],
    ),
}
THOUGHT: Final = {"type": "thinking", "thinking": "\nhm\n", "signature": "s"}
THOUGHTFUL: Final = (
    [
        user("a"),
        assistant([THOUGHT, said("b")]),
        user("w?"),
        assistant([THOUGHT, said("See."), LOOK]),
        user([answer("x")]),
    ],
    [
        user("a"),
        assistant("b", reasoning_content="\nhm\n"),
        user("w?"),
        assistant("See.", reasoning_content="\nhm\n", tool_calls=[CALL]),
        tool("x"),
    ],
)


@pytest.mark.parametrize("conversation", REQUESTS)
@pytest.mark.parametrize("name", [name for name in TEMPLATES if "DeepSeek" not in name])
def test_a_request_is_the_prompt_that_transformers_makes(
    open_published: OpenModel, genuine: Any, name: str, conversation: str
) -> None:
    chat = open_published(name)
    sent, theirs = REQUESTS[conversation]
    for told, tools in (([], {}), (TOLD, {"tools": TOOLS})):
        body: dict[str, Any] = {"messages": sent, "tools": told}
        expected = _prompt(genuine, chat, [system("Be brief.\n"), *theirs], **tools)
        wanted = genuine(expected, add_special_tokens=False)["input_ids"]
        ids = prompt_of(chat, **body, system="Be brief.\n").ids
        assert genuine.decode(ids) == expected
        assert ids == wanted
        without = _prompt(genuine, chat, theirs, **tools)
        assert genuine.decode(prompt_of(chat, **body).ids) == without


@pytest.mark.parametrize("name", ["Qwen-Qwen3-0.6B", "Qwen3.5-4B"])
def test_thoughts_are_kept_and_dropped_as_in_transformers(
    open_published: OpenModel, genuine: Any, name: str
) -> None:
    chat = open_published(name)
    sent, theirs = THOUGHTFUL
    for thinks in (True, False):
        expected = _prompt(genuine, chat, theirs, enable_thinking=thinks, tools=TOOLS)
        variables = {"enable_thinking": thinks}
        prompt = prompt_of(chat, messages=sent, tools=TOLD, chat_template_kwargs=variables)
        assert genuine.decode(prompt.ids) == expected


def _prompt(genuine: Any, chat: ChatModel, messages: list[Message], **options: Any) -> str:
    """transformers' text up to where the model begins."""
    assert chat.template is not None
    given = {"add_generation_prompt": True, "enable_thinking": False, **options}
    text = _expected(genuine, chat.template.source, messages, given)
    assert text is not None
    return text
