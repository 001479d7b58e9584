"""How the engine's nouns look in a notebook: HTML that is small, fetches nothing and runs nothing.

Tables with headings, so that they can be read aloud; colour only repeats what a word says.
The engine's types know none of it: their `_repr_html_` asks here. Text from a model or a
request is escaped. `batches.py` has batches, sequences and pages, `steps.py`
steps, `comparison.py` two engines side by side.
"""
