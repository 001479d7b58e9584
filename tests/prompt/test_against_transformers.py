"""Published templates render here, byte for byte, as in `apply_chat_template`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from minimsg.errors import TemplateError
from minimsg.prompt.template import ChatTemplate

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


def assistant(text: str, **more: Any) -> Message:
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
