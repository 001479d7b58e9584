"""Token ids in, token ids out; knows nothing of HTTP, JSON or text. Start at `engine.py`."""
