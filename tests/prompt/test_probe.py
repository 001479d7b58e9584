"""What a template can do is found by what it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from minimsg.prompt.chat import ChatModel
from minimsg.prompt.probe import Traits, probe
from minimsg.prompt.probe_tools import ToolForm
from minimsg.prompt.template import ChatTemplate

from . import templates
from .conftest import ADDED, CHATML

HERMES: Final = ToolForm("hermes", is_argument_text=False, is_one_call=False)
ALL: Final = Traits(
    takes_system=True,
    takes_text=True,
    takes_blocks=False,
    turn_end="<|im_end|>",
    takes_late_system=True,
    takes_any_start=True,
    takes_runs=True,
    takes_reasoning=True,
    tools=HERMES,
)
CHAT: Final = replace(ALL, takes_reasoning=False, tools=None)


def traits_of(source: str) -> Traits:
    return probe(ChatTemplate(source, {}, ADDED), ADDED)


def but_thinking(traits: Traits) -> Traits:
    """`traits` without those of `test_thinking.py`."""
    return replace(traits, thinking=None)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (CHATML, CHAT),
        (templates.TOOLED, ALL),
        (templates.XML_CALLS, replace(ALL, tools=replace(HERMES, format="qwen_xml"))),
        (templates.ONE_CALL, replace(ALL, tools=ToolForm("llama_json", False, True))),
        (templates.ARGUMENTS_AS_TEXT, replace(ALL, tools=ToolForm("hermes", True, False))),
        (templates.UNKNOWN_CALLS, replace(ALL, tools=None)),
        (
            templates.SYSTEM_FIRST,
            replace(ALL, takes_late_system=False, takes_any_start=False),
        ),
        (
            templates.ALTERNATING,
            replace(CHAT, takes_late_system=False, takes_any_start=False, takes_runs=False),
        ),
        (
            templates.ALTERNATING_WITHOUT_SYSTEM,
            Traits(False, True, False, "<|im_end|>"),
        ),
        (templates.BLOCKS_ONLY, replace(CHAT, takes_text=False, takes_blocks=True)),
        (templates.BLOCKS_TOO, replace(CHAT, takes_blocks=True)),
    ],
)
def test_traits_are_what_the_template_shows(source: str, expected: Traits) -> None:
    assert but_thinking(traits_of(source)) == expected


@pytest.mark.parametrize(
    ("shown", "hidden"),
    [
        ("{{ tool | tojson }}", "{{ tool.function.name }}"),
        ("'arguments': call.function.arguments", "'arguments': {}"),
        ("{{ m.content }}", "{% if m.role != 'tool' %}{{ m.content }}{% endif %}"),
    ],
)
def test_a_template_that_hides_a_part_of_a_tool_loop_has_no_place_for_tools(
    shown: str, hidden: str
) -> None:
    assert shown in templates.TOOLED
    assert traits_of(templates.TOOLED.replace(shown, hidden)).tools is None


def test_a_template_that_shows_only_the_first_call_gets_one_call_a_message() -> None:
    every, first = (
        "{% for call in m.tool_calls or [] %}",
        "{% for call in (m.tool_calls or [])[:1] %}",
    )
    traits = traits_of(templates.TOOLED.replace(every, first))
    assert traits.tools == replace(HERMES, is_one_call=True)


@pytest.mark.parametrize(
    "refusal",
    [
        "m.role == 'user' and loop.previtem and loop.previtem.role == 'tool'",
        "m.role == 'tool' and loop.previtem.role == 'user'",
        "m.tool_calls and m.content == ''",
        "m.tool_calls and m.tool_calls[0].id | length != 9",
    ],
)
def test_a_template_that_refuses_an_order_of_a_tool_loop_has_no_place_for_tools(
    refusal: str,
) -> None:
    turn = "<|im_start|>{{ m.role }}"
    refuses = "{% if " + refusal + " %}{{ raise_exception('no') }}{% endif %}"
    assert turn in templates.TOOLED
    assert traits_of(templates.TOOLED.replace(turn, refuses + turn)).tools is None


def test_a_system_turn_that_is_moved_to_the_front_does_not_stay_in_its_place() -> None:
    moves = (
        "{% for m in messages if m.role == 'system' %}{{ m.content }}{% endfor %}"
        "{% for m in messages if m.role != 'system' %}{{ m.content }}<|im_end|>{% endfor %}"
    )
    traits = traits_of(moves)
    assert traits.takes_system
    assert not traits.takes_late_system


PUBLISHED: Final[dict[str, Traits]] = {
    "Qwen-QwQ-32B": replace(ALL, takes_reasoning=False),
    "Qwen-Qwen2.5-7B-Instruct": replace(ALL, takes_reasoning=False),
    "Qwen-Qwen3-0.6B": ALL,
    "Qwen3-Coder": replace(ALL, takes_reasoning=False, tools=replace(HERMES, format="qwen_xml")),
    "Qwen3.5-4B": replace(
        ALL,
        takes_blocks=True,
        takes_late_system=False,
        takes_any_start=False,
        tools=replace(HERMES, format="qwen_xml"),
    ),
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": replace(
        CHAT, takes_late_system=False, turn_end="<｜end▁of▁sentence｜>"
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_templates_are_found_out(test_data: Path, name: str) -> None:
    source = (test_data / "data" / "templates" / f"{name}.jinja").read_text("utf-8")
    controls = [*ADDED, "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>"]
    traits = probe(ChatTemplate(source, {"bos_token": "<s>"}, controls), controls)
    assert but_thinking(traits) == PUBLISHED[name]


def test_a_template_without_a_place_for_tools_still_has_a_format(
    write_model: Callable[..., Path],
) -> None:
    traits = ChatModel.open(write_model(), "m").traits
    assert traits is not None
    assert traits.tool_format == "hermes"
    assert traits_of(templates.XML_CALLS).tool_format == "qwen_xml"
