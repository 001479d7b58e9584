"""A record in a notebook: one document that fetches nothing and runs nothing but its own."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import cast

import minimsg
from minimsg.inspector import show
from minimsg.inspector.state import HOLDERS
from minimsg.trace import PromptToken, Trace, from_json

EXAMPLE = Path(__file__).parent.parent / "server" / "example_trace.json"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)> \"' \u2028"


def hostile() -> Trace:
    """A record whose texts try to be markup."""
    trace = from_json(EXAMPLE.read_bytes())
    token = PromptToken(1, HOSTILE, HOSTILE.encode().hex(), None)
    tokens = [replace(each, text=HOSTILE) for each in trace.tokens]
    prompt = replace(trace.prompt, text=HOSTILE, tokens=[token, *trace.prompt.tokens[1:]])
    return replace(trace, prompt=prompt, tokens=tokens)


def data_of(html: str) -> dict[str, object]:
    """The data in the document of a frame."""
    (document,) = re.findall(r'srcdoc="([^"]*)"', html)
    (text,) = re.findall(r"id=data>(.*?)</script>", unescape(document), re.S)
    value: dict[str, object] = json.loads(text)
    return value


def test_a_frame_is_sandboxed_and_its_attribute_ends_where_it_should() -> None:
    html = show(hostile())._repr_html_()
    assert html.count("<") == html.count(">") == 2  # the frame and its end, whatever was said
    assert 'sandbox="allow-scripts"' in html


def test_texts_of_a_record_stay_data() -> None:
    html = show(hostile())._repr_html_()
    tokens = data_of(html)["tokens"]
    assert isinstance(tokens, list)
    assert tokens[0]["text"] == HOSTILE
    assert unescape(html).count("<script") == 3  # data, import map, module


def test_every_module_that_a_frame_imports_is_in_it() -> None:
    document = unescape(show(from_json(EXAMPLE.read_bytes()))._repr_html_())
    (imports,) = re.findall(r"<script type=importmap nonce=\S+?>({.*?})</script>", document)
    known = json.loads(imports)["imports"]
    assert {"dom.js", "vendor/preact.js", "vendor/hooks.js", "sampling.js"} <= set(known)
    assert not re.search(r'(from\s*|import\s*)"\./', document)
    assert "main.js" not in known  # nor what only a server can answer


def test_an_engine_is_shown_as_it_is_now() -> None:
    model = minimsg.load("tiny")
    steps = model.steps("Hello.", max_tokens=3, temperature=0)
    next(steps)
    data = data_of(show(model.engine)._repr_html_())
    (sequence,) = cast("list[dict[str, object]]", data["sequences"])
    pages = cast("list[int]", data["pages"])
    assert sequence["state"] == "running"
    assert 0 < pages.count(len(HOLDERS)) == sequence["num_pages"]
    assert list(steps)  # looking has changed nothing
