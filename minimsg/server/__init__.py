"""HTTP around the engine. Start at `messages.py`: the path of one request."""
