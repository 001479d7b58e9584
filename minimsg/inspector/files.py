"""The page's own files: what they are called, and that they hold no data.

ES modules as they are written, no build step; `vendor/` is preact and htm from npm, each with
its licence. Knows names and bytes; `server/inspect.py` serves them, `embed.py` puts them
into one document.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

TYPES: Final = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
}  # what is served; the package's Python is not


@cache
def page_files() -> dict[str, bytes]:
    """Every file of the page by its path, as `vendor/preact.js`."""
    home = files("minimsg.inspector")
    found = {}
    for folder, prefix in ((home, ""), (home / "vendor", "vendor/")):
        for file in folder.iterdir():
            if any(file.name.endswith(ending) for ending in TYPES):
                found[prefix + file.name] = file.read_bytes()
    return found


def content_type(name: str) -> str:
    """The media type of a file of the page."""
    return TYPES["." + name.rpartition(".")[2]]
