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
THINKING_XML: Table = {
    "thinking after an opening and white space": (
        "a <tool_call>\n<think>secret</think> c",
        text("a <tool_call>") + thinking("secret") + text("c"),
    ),
    "thinking after half a function tag": (
        "<tool_call><func<think>secret</think>",
        text("<tool_call><func") + thinking("secret"),
    ),
    "thinking after a tag without its end": (
        "<function=no<think>secret</think>",
        text("<function=no") + thinking("secret"),
    ),
    "thinking ends after an opening": (
        "<think>a <tool_call>\n</think>b",
        thinking("a <tool_call>") + text("b"),
    ),
    "a lone end after an opening": ("<tool_call>\n</think>b", text("<tool_call>") + text("b")),
    "half an end after a call": ("<function=now></function></thi", call("now", "{}")),
}
THINKING_LLAMA: Table = {
    "thinking after the tag": (
        "<|python_tag|><think>secret</think>c",
        text("<|python_tag|>") + thinking("secret") + text("c"),
    ),
    "thinking after half a name": (
        "<|python_tag|>now.ca<think>secret</think>c",
        text("<|python_tag|>now.ca") + thinking("secret") + text("c"),
    ),
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
