"""How fast: a server from outside (`load.py`), or our engine beside another (`versus.py`)."""
