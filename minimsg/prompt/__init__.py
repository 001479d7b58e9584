"""A request to what the model reads. No torch. Start at `render.py`."""
