"""Model families, by the `model_type` of config.json; each module has a class `Model`.

Importing this package imports no torch: a family is imported when a model of it is loaded
(`weights.py`). To add one see `README.md`.
"""

from __future__ import annotations

from typing import Final

FAMILIES: Final = {
    "llama": "minimsg.models.llama",
    "qwen2": "minimsg.models.qwen2",
    "qwen3": "minimsg.models.qwen3",
    "scripted": "minimsg.models.scripted",
}
