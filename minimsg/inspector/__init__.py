"""The inspector: a request from its prompt to its bytes, and the engine at work, on a page.

`main.js` is the page at /inspect; each pane is a module of its own that shows a record
(`trace.py`) or a state of the engine (`state.py`). Model output is text nodes, never markup.
Here is only what Python needs of it: the files, and the state as a viewer may see it. Next:
`prompt.js`, a pane; `server/inspect.py`, what is asked of the server.
"""
