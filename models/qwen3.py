"""Qwen3, dense (arXiv 2505.09388 section 2).

Differs from Qwen2: query and key heads are normalized before they are rotated, biases
are the config's choice (released models have none), and `head_dim` is stated, so that
all heads together may be wider than the hidden state.
"""

from __future__ import annotations

from minimsg.kernels.contract import Backend
from minimsg.models.config import ModelConfig
from minimsg.models.layers import Decoder, Variant


class Model(Decoder):
    def __init__(self, config: ModelConfig, backend: Backend) -> None:
        variant = Variant(
            attention_input_bias=config.attention_bias,
            attention_output_bias=config.attention_bias,
            head_norm=True,
        )
        super().__init__(config, backend, variant)
