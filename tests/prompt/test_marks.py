"""A control token is one that the template wrote, however a user goes about it."""

from __future__ import annotations

from typing import Any

import pytest

from minimsg.errors import TemplateError
from minimsg.prompt.marks import Marks, Piece, Role
from minimsg.prompt.template import ChatTemplate

CONTROLS = ["<|start|>", "<|end|>", "<|user|>", "<think>", "</think>", "<|end|>!"]


def controls_of(source: str, *messages: dict[str, Any], **variables: Any) -> list[str]:
    """The control strings that the template wrote."""
    template = ChatTemplate(source, {"eos_token": "<|end|>"}, CONTROLS)
    pieces = template.render_pieces(messages, add_generation_prompt=False, **variables)
    plain = template.render(messages, add_generation_prompt=False, **variables)
    assert "".join(piece.text for piece in pieces) == plain
    assert [piece.is_control for piece in pieces] == [bool(n % 2) for n in range(len(pieces))]
    return [piece.text for piece in pieces if piece.is_control]


def says(content: str, role: str = "user") -> dict[str, Any]:
    return {"role": Role(role), "content": content}


@pytest.mark.parametrize(
    "source",
    [
        "<|start|>{{ messages[0].content }}<|end|>",
        "{{ '<|start|>' + messages[0].content + eos_token }}",
        "{{ '<|start|>' ~ messages[0]['content'] ~ '<|end|>' }}",
        "{% set x = '<|start|>' %}{{ x }}{{ messages[0].content | upper }}{{ eos_token }}",
        "{{ '<|start|>%s<|end|>' | format(messages[0].content) }}",
        "{% macro m(x) %}<|start|>{{ x }}<|end|>{% endmacro %}{{ m(messages[0].content) | trim }}",
        "{{ ['<|start|>', messages[0].content, '<|end|>'] | join }}",
    ],
)
@pytest.mark.parametrize("content", ["hi", "<|end|>", "<|start|><|end|>", "<|END|>", "end|>", ""])
def test_controls_are_those_of_the_template(source: str, content: str) -> None:
    assert controls_of(source, says(content)) == ["<|start|>", "<|end|>"]


@pytest.mark.parametrize(
    ("source", "content"),
    [
        ("<{{ messages[0].content }}>", "think"),
        ("{{ '<' ~ messages[0].content ~ '>' }}", "think"),
        ("{{ '<|' + messages[0].content + '|>' }}", "user"),
        ("<|{{ messages[0].content }}|>", "user"),
        ("{{ messages[0].content }}end|>", "<|"),
        ("<|e{{ messages[0].content }}", "nd|>"),
        ("{{ messages[0].content | lower }}", "<THINK>"),
        ("{{ messages[0].content | replace('-', '') }}", "<th-ink>"),
        ("{{ messages[0].content | trim('x') }}", "x<think>x"),
        ("{{ messages[0].content.split(',') | join }}", "<th,ink>"),
        ("{{ messages[0].content | tojson }}", "<think>"),
        ("{{ messages[0].content[::-1] }}", ">kniht<"),
        ("{% for c in messages[0].content %}{{ c }}{% endfor %}", "<think>"),
        ("{{ messages[0].content }}{{ messages[1].content }}", "<th"),
        ("{{ messages[0].content | format(messages[1].content) }}", "<th%s"),
    ],
)
def test_a_user_makes_no_control_token_by_any_detour(source: str, content: str) -> None:
    assert controls_of(source, says(content), says("ink>")) == []


def test_a_control_token_composed_around_a_role_is_the_templates() -> None:
    for source in (
        "{{ '<|' + messages[0].role + '|>' + messages[0].content }}",
        "{{ eos_token[:0] + '<|' + messages[0].role + '|>\n' + messages[0].content }}",
        "{{ '<|' ~ messages[0].role ~ '|>' ~ messages[0].content }}",
        "<|{{ messages[0]['role'] }}|>{{ messages[0].content }}",
    ):
        assert controls_of(source, says("user")) == ["<|user|>"]
        assert controls_of(source, says("user", role="elephant")) == []


def test_a_template_does_not_see_a_users_control_string_as_its_own() -> None:
    source = (
        "{{ '</think>' in messages[0].content }}{{ messages[0].content.split('</think>')|length }}"
    )
    template = ChatTemplate(source, {}, CONTROLS)
    pieces = template.render_pieces([says("a</think>b")], add_generation_prompt=False)
    assert pieces == [Piece("False1", False)]
    assert template.render([says("a</think>b")], add_generation_prompt=False) == "True2"


def test_a_template_sees_its_own_control_string_again() -> None:
    thought = "{% set x %}<think>{{ messages[0].content }}</think>b{% endset %}"
    assert controls_of(thought + "{{ x.split('</think>')[1] }}", says("a")) == []
    assert controls_of(thought + "{{ x.split('</think>')[0] }}", says("a")) == ["<think>"]


def test_keys_and_roles_may_look_like_control_strings() -> None:
    template = ChatTemplate(
        "{% if messages[0]['role'] == 'user' %}{{ messages[0]['content'] }}{% endif %}",
        {},
        ["content", "role"],
    )
    assert template.render_pieces([says("hi")], add_generation_prompt=False) == [Piece("hi", False)]


def test_the_longest_control_string_at_a_place_is_taken() -> None:
    assert controls_of("<|end|>!<|end|>") == ["<|end|>!", "<|end|>"]


def test_a_control_token_that_is_cut_in_two_is_an_error() -> None:
    with pytest.raises(TemplateError, match="cuts one of its own control tokens"):
        controls_of("{{ '<think>'[:1] }}")


def test_thousands_of_control_tokens_have_markers_of_their_own() -> None:
    controls = [f"<{n}>" for n in range(5_000)]
    marks = Marks(controls)
    text = "".join(f"{n}<{n}>" for n in range(5_000))
    pieces = marks.split(marks.mark(text))
    assert [piece.text for piece in pieces if piece.is_control] == controls


def test_source_markers_are_taken_out_and_their_places_told() -> None:
    marks = Marks(CONTROLS)
    text = marks.mark("<|start|>hello <|end|>!")
    hello = f"{marks.source(7)}hello{marks.source(8)}"
    pieces, sources = marks.split_sources(text.replace("hello", hello) + marks.source(0))
    assert pieces == marks.split(text)
    assert sources == [(7, 9), (8, 14), (0, 23)]


def test_no_source_marker_is_that_of_a_control_token() -> None:
    marks = Marks(CONTROLS)
    controls = {marks.mark(control) for control in CONTROLS}
    numbers = [0, 1, 1023, 1024, marks.num_sources - 1]
    sources = {marks.source(number) for number in numbers}
    assert len(sources) == len(numbers)
    assert controls.isdisjoint(sources)
    with pytest.raises(AssertionError):
        marks.source(marks.num_sources)
