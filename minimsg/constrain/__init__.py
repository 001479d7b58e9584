"""The form of a reply as sets of ids that may come next. Start at `grammars.py`."""
