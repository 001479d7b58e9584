"""Llama 1 to 3 (arXiv 2302.13971, 2307.09288, 2407.21783) and models of its shape, SmolLM2 too.

The plain decoder of `layers.py`. Biases are the config's choice; released Llamas have none.
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
            mlp_bias=config.mlp_bias,
        )
        super().__init__(config, backend, variant)
