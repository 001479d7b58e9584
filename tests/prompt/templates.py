"""Small chat templates written for tests; each lacks or wants something of its own."""

from __future__ import annotations

from typing import Final

_TOOLS: Final = (
    "{% if tools %}<|im_start|>system{{ '\n' }}"
    "{% if messages[0].role == 'system' %}{{ messages[0].content + '\n' }}{% endif %}"
    "{% for tool in tools %}{{ tool | tojson }}{{ '\n' }}{% endfor %}<|im_end|>{{ '\n' }}"
    "{% endif %}"
)
_OPENING: Final = "{% if add_generation_prompt %}<|im_start|>assistant{{ '\n' }}{% endif %}"
_HERMES: Final = (
    "<tool_call>{{ {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}"
    "</tool_call>"
)
_XML: Final = (
    "<tool_call><function={{ call.function.name }}>"
    "{% for key, value in call.function.arguments | items %}"
    "<parameter={{ key }}>{{ value }}</parameter>{% endfor %}</function></tool_call>"
)
_LLAMA: Final = (
    "{% if m.tool_calls | length > 1 %}{{ raise_exception('one call at once') }}{% endif %}"
    '{"name": "{{ call.function.name }}", "parameters": {{ call.function.arguments | tojson }}}'
)
_TEXT: Final = (
    '<tool_call>{"name": "{{ call.function.name }}", "arguments": '
    "{{ '' + call.function.arguments + '}' }}</tool_call>"
)
_ELSEWHERE: Final = "[CALL {{ call.function.name }}({{ call.function.arguments | tojson }})]"


def _with_tools(call: str, before: str = "") -> str:
    """ChatML that takes all there is, whose calls look like `call`."""
    turn = (
        "<|im_start|>{{ m.role }}{{ '\n' }}"
        "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
        "{{ m.content }}{% for call in m.tool_calls or [] %}" + call + "{% endfor %}"
        "<|im_end|>{{ '\n' }}"
    )
    told = "tools and loop.first and m.role == 'system'"
    turns = "{% for m in messages %}{% if not (" + told + ") %}" + turn + "{% endif %}{% endfor %}"
    return before + _TOOLS + turns + _OPENING


TOOLED: Final = _with_tools(_HERMES)
XML_CALLS: Final = _with_tools(_XML)
ONE_CALL: Final = _with_tools(_LLAMA)
ARGUMENTS_AS_TEXT: Final = _with_tools(_TEXT)
UNKNOWN_CALLS: Final = _with_tools(_ELSEWHERE)
SYSTEM_FIRST: Final = _with_tools(
    _HERMES,
    "{% for m in messages if m.role == 'system' %}{% if m != messages[0] %}"
    "{{ raise_exception('System message must be at the beginning.') }}{% endif %}{% endfor %}"
    "{% set users = messages | selectattr('role', 'equalto', 'user') | list %}"
    "{% if not users %}{{ raise_exception('No user query found.') }}{% endif %}",
)

_ALTERNATING_TURNS: Final = (
    "{% for m in turns %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant') }}{% endif %}"
    "<|im_start|>{{ m.role }}{{ '\n' }}{{ m.content }}<|im_end|>{{ '\n' }}{% endfor %}" + _OPENING
)
ALTERNATING: Final = (
    "{% if messages[0].role == 'system' %}<|im_start|>system{{ '\n' }}{{ messages[0].content }}"
    "<|im_end|>{{ '\n' }}{% set turns = messages[1:] %}{% else %}{% set turns = messages %}"
    "{% endif %}" + _ALTERNATING_TURNS
)
ALTERNATING_WITHOUT_SYSTEM: Final = "{% set turns = messages %}" + _ALTERNATING_TURNS
BLOCKS_ONLY: Final = (
    "{% for m in messages %}<|im_start|>{{ m.role }}{{ '\n' }}{% for b in m.content %}"
    "{% if b.type == 'text' %}{{ b.text }}{% endif %}{% endfor %}<|im_end|>{{ '\n' }}"
    "{% endfor %}" + _OPENING
)
BLOCKS_TOO: Final = (
    "{% for m in messages %}<|im_start|>{{ m.role }}{{ '\n' }}"
    "{% if m.content is string %}{{ m.content }}{% else %}{% for b in m.content %}{{ b.text }}"
    "{% endfor %}{% endif %}<|im_end|>{{ '\n' }}{% endfor %}" + _OPENING
)
