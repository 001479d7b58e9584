"""Model text to segments. Start at `segments.py`."""
