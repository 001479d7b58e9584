"""A whole model decoding beside the bandwidth limit, for `bench.py`: random weights, no text.

The only module here that knows models and the engine: part of a program, imported by no
kernel. Each step reads every weight and every cached key and value once, so it cannot take
less than their bytes over the bandwidth. It is timed as the engine runs it, with the copies
of a batch's numbers, by `Runner.run`, which replays CUDA graphs where there are some.
"""

from __future__ import annotations

from typing import cast

import torch

from minimsg.engine.cache import PagedKVCache
from minimsg.engine.runner import Runner
from minimsg.engine.types import Batch
from minimsg.kernels.contract import Backend
from minimsg.kernels.peaks import Peaks, seconds
from minimsg.models import qwen3
from minimsg.models.config import ModelConfig
from minimsg.models.contract import Model

PAGE_SIZE = 16
QWEN3_0_6B: dict[str, object] = {  # huggingface.co/Qwen/Qwen3-0.6B, config.json
    "model_type": "qwen3", "vocab_size": 151936, "max_position_embeddings": 40960,
    "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
    "head_dim": 128, "hidden_size": 1024, "intermediate_size": 3072, "rms_norm_eps": 1e-6,
    "rope_theta": 1000000, "tie_word_embeddings": True,
}  # fmt: skip
TINY = {"vocab_size": 512, "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128}


class Decoding:
    """A random model of the shape of Qwen3-0.6B, or a tiny one of its kind."""

    def __init__(
        self, backend: Backend, dtype: torch.dtype, device: torch.device, *, quick: bool
    ) -> None:
        config = ModelConfig.from_dict(QWEN3_0_6B | (TINY if quick else {}))
        with torch.device(device):
            module = qwen3.Model(config, backend).to(dtype)
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=0.02)
        # The embedding is the head's matrix, so a step reads all of it.
        self.weight_bytes = sum(parameter.nbytes for parameter in module.parameters())
        self.model, self.dtype, self.device = cast("Model", module), dtype, device

    def measure(self, num_sequences: int, context: int, peaks: Peaks) -> dict[str, float]:
        """Milliseconds of a step, of the limit, and the share of it that was reached."""
        pages_each = -(-context // PAGE_SIZE)
        cache = PagedKVCache(
            self.model.cache_specs,
            num_pages=num_sequences * pages_each,
            page_size=PAGE_SIZE,
            dtype=self.dtype,
            device=self.device,
        )
        for layer in cache.layers:
            layer.key.zero_()
            layer.value.zero_()
        runner, batch = Runner(self.model, cache, self.device), _batch(num_sequences, context)
        took = seconds(lambda: runner.run(batch), self.device)
        limit = (self.weight_bytes + cache.num_bytes) / peaks.bytes_per_s
        return {
            "batch": num_sequences,
            "context": context,
            "step_ms": took * 1000,
            "limit_ms": limit * 1000,
            "share": limit / took,
        }


def _batch(num_sequences: int, context: int) -> Batch:
    """Each sequence decodes the last token of a context in pages of its own."""
    pages = -(-context // PAGE_SIZE)
    rows, last = range(num_sequences), context - 1
    return Batch(
        request_ids=[str(row) for row in rows],
        input_ids=[row + 1 for row in rows],
        positions=[last] * num_sequences,
        slots=[row * pages * PAGE_SIZE + last for row in rows],
        query_starts=list(range(num_sequences + 1)),
        context_lens=[context] * num_sequences,
        page_tables=[list(range(row * pages, (row + 1) * pages)) for row in rows],
        sample_rows=list(rows),
        sample_ids=[str(row) for row in rows],
    )
