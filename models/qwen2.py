"""Qwen2 and Qwen2.5, dense (arXiv 2407.10671 section 2.2, 2412.15115).

Differs from Llama: q, k and v always have biases, the output projection never; upper
layers may have a sliding window.
"""

from __future__ import annotations

from minimsg.kernels.contract import Backend
from minimsg.models.config import ModelConfig
from minimsg.models.layers import Decoder, Variant


class Model(Decoder):
    def __init__(self, config: ModelConfig, backend: Backend) -> None:
        super().__init__(config, backend, Variant(attention_input_bias=True))
