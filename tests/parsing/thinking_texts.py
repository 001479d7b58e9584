"""Texts with thinking, and what they are."""

from __future__ import annotations

from .splitting import Table, call, text, thinking

THINKING: Table = {
    "then text": ("<think>\nplan\n</think>\n\nHello", thinking("plan") + text("Hello")),
    "then a call": (
        '<think>plan</think>\n<tool_call>{"name": "now"}</tool_call>',
        thinking("plan") + call("now", "{}"),
    ),
    "nothing thought": ("<think>\n\n</think>\n\nHello", text("Hello")),
    "several parts": (
        '<think>a</think>\nb\n<think>c\n\nd</think><tool_call>{"name": "now"}</tool_call>\n'
        "<think>e</think>",
        thinking("a") + text("b") + thinking("c\n\nd") + call("now", "{}") + thinking("e"),
    ),
    "calls inside are none": (
        'x<think><tool_call>{"name": "now"}</tool_call></think>',
        text("x") + thinking('<tool_call>{"name": "now"}</tool_call>'),
    ),
    "tags in an input": (
        '<tool_call>{"name": "add", "arguments": {"note": "<think></think>"}}</tool_call>',
        call("add", '{"note": "<think></think>"}'),
    ),
    "it never ends": ("<think>plan <b", thinking("plan <b")),
    "half a tag": ("a <thin", text("a <thin")),
    "a lone end": ("a</think>b", text("a") + text("b")),
}
OPENED_THINKING: Table = {
    "it ends": ("\nplan\n</think>\n\nHello", thinking("plan") + text("Hello")),
    "opened before it, then a call": (
        'plan</think>\n<tool_call>{"name": "now", "arguments": {}}</tool_call>',
        thinking("plan") + call("now", "{}"),
    ),
    "opened before it, it never ends": ("plan\n", thinking("plan\n")),
    "the model opens it again": ("<think>\nplan</think>Hello", thinking("plan") + text("Hello")),
    "a tag amid thoughts": ("a <think> b</think>Hello", thinking("a <think> b") + text("Hello")),
    "it ends at once": ("</think>Hello", text("Hello")),
}
NO_CALLS: Table = {
    "calls are text": ("<think>a</think>\n<tool_call>", thinking("a") + text("<tool_call>")),
}
