"""The inspector: a request from its prompt to its bytes, and the engine at work, on a page.

`main.js` is the page at /inspect; each pane is a module of its own that shows a record
(`trace.py`) or a state of the engine (`state.py`). Model output is text nodes, never markup.
`show` draws the same panes in a notebook. Next: `prompt.js`, a pane; `server/inspect.py`, what
is asked of the server.
"""

from minimsg.inspector.show import Shown, show

__all__ = ["Shown", "show"]
