"""The panes in a notebook: `show` makes an object that Jupyter draws, with no server behind it.

One document in a sandboxed frame: the page's own modules, inlined, and the data as JSON. Its
policy lets only what has the document's nonce run, and nothing be fetched; a frame's scripts
cannot reach the notebook around it. Modules import each other by bare names there, which an
import map resolves, since a document in an attribute has no folder beside it.
"""

from __future__ import annotations

import json
import re
import secrets
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from minimsg.inspector.files import page_files
from minimsg.inspector.state import engine_state
from minimsg.trace import TRACE, Trace

if TYPE_CHECKING:  # torch-free: a record can be looked at anywhere
    from minimsg.engine.engine import Engine

ENTRY: Final = "notebook.js"
IMPORT: Final = re.compile(r'(from\s*|import\s*)"\./([^"]+)"')
HEIGHT_PX: Final = 640


@dataclass(frozen=True)
class Shown:
    """What a notebook draws of a record or an engine."""

    document: str
    height_px: int = HEIGHT_PX

    def _repr_html_(self) -> str:
        return (
            f'<iframe sandbox="allow-scripts" srcdoc="{escape(self.document)}" title="minimsg '
            f'inspector" style="width: 100%; height: {self.height_px}px; border: 0"></iframe>'
        )


def show(what: Trace | Engine, *, height_px: int = HEIGHT_PX) -> Shown:
    """A record as prompt, sampler and events; an engine as its pages and requests of now."""
    if isinstance(what, Trace):
        data = TRACE.dump_python(what, mode="json")
    else:
        data = dict(engine_state(what.look(), []))
    return Shown(_document(data), height_px)


def _document(data: dict[str, object]) -> str:
    nonce, files = secrets.token_urlsafe(16), page_files()
    imports = {name: _url(_bare(name)) for name in _needed(ENTRY) if name != ENTRY}
    policy = f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'"
    lines = (
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        f'<meta http-equiv="content-security-policy" content="{policy}">',
        f"<title>minimsg inspector</title><style nonce={nonce}>",
        files["style.css"].decode(),
        "</style><main id=page></main>",
        f"<script type=application/json id=data>{_json(data)}</script>",
        f"<script type=importmap nonce={nonce}>{_json({'imports': imports})}</script>",
        f"<script type=module nonce={nonce}>{_bare(ENTRY)}</script></html>",
    )
    return "\n".join(lines)


def _needed(name: str) -> dict[str, None]:
    """The modules that `name` comes to, itself included."""
    found, left = {name: None}, [name]
    while left:
        new = [each for each in _imports(left.pop()) if each not in found]
        found |= dict.fromkeys(new)
        left += new
    return found


def _imports(name: str) -> Iterator[str]:
    """The modules that one imports, by their paths in the package."""
    for _, path in IMPORT.findall(page_files()[name].decode()):
        yield _folder(name) + path


def _bare(name: str) -> str:
    """A module whose imports are the paths in the package."""
    text = page_files()[name].decode()
    return IMPORT.sub(lambda found: f'{found[1]}"{_folder(name)}{found[2]}"', text)


def _folder(name: str) -> str:
    return name[: name.rfind("/") + 1]


def _url(text: str) -> str:
    return "data:text/javascript;base64," + b64encode(text.encode()).decode()


def _json(value: object) -> str:
    """JSON that ends no script element."""
    return json.dumps(value).replace("<", "\\u003c")
