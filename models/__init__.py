"""Model families, by the `model_type` of config.json; each module has a class `Model`.

Importing this package imports no torch: a family is imported when a model of it is loaded
(`weights.py`). To add one see `README.md`.
"""

from __future__ import annotations

from typing import Final

FAMILIES: Final = {
    "llama": "minimsg.models.llama",
    "qwen2": "minimsg.models.qwen2",
    "qwen2_5_vl": "minimsg.models.qwen2_5_vl",
    "qwen3": "minimsg.models.qwen3",
    "qwen3_vl": "minimsg.models.qwen3_vl",
    "scripted": "minimsg.models.scripted",
}
