"""The decoder that the dense families share: embedding, blocks of attention and MLP, head.

Projections that read the same input are one matrix (q, k, v; gate, up), and what stands
around a product (norm, activation, residual sum) is said with it: fewer, larger operations,
which is what a CPU step of few tokens spends its time on. `Linear` and `Attention` have a
reference form in plain torch; a backend that offers an operator for it (`kernels/contract.py`)
is asked instead. Each module says under which names a Hugging Face checkpoint stores its
tensors (`checkpoint_tensors`); `weights.py` fills them. Knows the kernel contract, no backend.

Rows T are the new tokens of all sequences of a step, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimsg.kernels.contract import (
    Backend,
    Formats,
    HeadsOperator,
    LayerParts,
    LayersOperator,
    Layout,
    LinearOperator,
    Pages,
    Rotation,
)
from minimsg.models import points, watched
from minimsg.models.config import ModelConfig
from minimsg.models.contract import Inputs, PagedSpec, Watch
from minimsg.models.rope import Rotary


@dataclass(frozen=True)
class Variant:
    """What a family uses of the shared decoder's options."""

    attention_input_bias: bool = False  # of q, k and v
    attention_output_bias: bool = False
    mlp_bias: bool = False
    head_norm: bool = False  # query and key heads normalized before they are rotated


class RMSNorm(nn.Module):
    """`x / rms(x) * weight` (arXiv 1910.07467), over the last axis."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)


class Linear(nn.Module):
    """`x W^T + b`, uninitialized: `(T, inputs)` to `(T, outputs)`.

    A gated one is `silu(first half) * second half` of that (SwiGLU, arXiv 2002.05202).
    """

    def __init__(self, inputs: int, outputs: int, *, bias: bool, is_gated: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None
        self.is_gated = is_gated
        self.operator: LinearOperator | None = None  # if a backend has taken the weight over
        self.matrix: Any = None  # what it made of it

    def forward(
        self, x: Tensor, norm: RMSNorm | None = None, add_to: Tensor | None = None
    ) -> Tensor:
        """Of `norm(x)`, if there is one; added to `add_to`, in place, if there is that."""
        if self.operator is not None:
            return self.operator.linear(x, self.matrix, norm, add_to)
        output = F.linear(x if norm is None else norm(x), self.weight, self.bias)
        if self.is_gated:
            gate, up = output.chunk(2, dim=-1)
            output = F.silu(gate).mul_(up)
        return output if add_to is None else add_to.add_(output)

    def hand_over(
        self, operator: LinearOperator, dtype: torch.dtype, packed: Tensor | None = None
    ) -> Tensor:
        """Leave weight and product to `operator`; the plain weight is let go. Returns it packed.

        A weight that was packed before needs no numbers here, only its shape.
        """
        shape, is_gated = self.weight.shape, self.is_gated
        if packed is None:
            packed = operator.pack(self.weight.detach(), dtype, is_gated=is_gated)
        self.matrix = operator.matrix(packed, self.bias, shape, is_gated=is_gated)
        self.operator = operator
        del self.weight
        return packed

    def rows(self, name: str, start: int = 0, stop: int | None = None) -> dict[str, Tensor]:
        """Output rows `start:stop` as the checkpoint's linear `name`: its weight and bias."""
        tensors = {f"{name}.weight": self.weight[start:stop]}
        if self.bias is not None:
            tensors[f"{name}.bias"] = self.bias[start:stop]
        return tensors


class HeadNorm(nn.Module):
    """RMSNorm of each query and key head: `(T, Hq + Hkv, D)`, one weight each for all heads."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.query_weight = nn.Parameter(torch.empty(config.head_dim))
        self.key_weight = nn.Parameter(torch.empty(config.head_dim))
        self.num_heads, self.epsilon = config.num_heads, config.rms_norm_eps

    def forward(self, heads: Tensor) -> Tensor:
        heads = F.rms_norm(heads, heads.shape[-1:], eps=self.epsilon)
        heads[:, : self.num_heads].mul_(self.query_weight)
        heads[:, self.num_heads :].mul_(self.key_weight)
        return heads

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        return {"q_norm.weight": self.query_weight, "k_norm.weight": self.key_weight}


class Attention(nn.Module):
    """Grouped-query attention (arXiv 2305.13245) over pages, with rotary positions."""

    def __init__(
        self, config: ModelConfig, variant: Variant, backend: Backend, window: int | None
    ) -> None:
        super().__init__()
        self.num_heads, self.num_kv_heads = config.num_heads, config.num_kv_heads
        self.head_dim, self.scale = config.head_dim, config.head_dim**-0.5
        self.backend, self.window = backend, window
        self.operator = backend if isinstance(backend, HeadsOperator) else None
        hidden, bias = config.hidden_size, variant.attention_input_bias
        queries, keys = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        self.input = Linear(hidden, queries + 2 * keys, bias=bias)
        self.output = Linear(queries, hidden, bias=variant.attention_output_bias)
        self.head_norm = HeadNorm(config) if variant.head_norm else None

    def forward(
        self, x: Tensor, norm: RMSNorm, rotation: Rotation, pages: Pages, layout: Layout
    ) -> None:
        """Adds to `x` `(T, hidden)` in place; stores the new keys and values in `pages`."""
        heads = self.input(x, norm).view(len(x), -1, self.head_dim)  # (T, Hq + 2 Hkv, D)
        attended = self.attend(heads, rotation, pages, layout)  # (T, Hq, D)
        self.output(attended.view(len(x), -1), add_to=x)

    def attend(self, heads: Tensor, rotation: Rotation, pages: Pages, layout: Layout) -> Tensor:
        """Attention `(T, Hq, D)` of heads `(T, Hq + 2 Hkv, D)`, which may be rotated in place."""
        if self.operator is not None:
            return self.operator.attend_heads(
                heads, self.head_norm, rotation, pages, layout,
                num_heads=self.num_heads, scale=self.scale, window=self.window,
            )  # fmt: skip
        return self.attend_rotated(*self.rotated(heads, rotation), pages, layout)

    def rotated(self, heads: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor]:
        """Queries and keys `(T, Hq + Hkv, D)`, normalized and rotated; values as they are."""
        turning, value = heads[:, : -self.num_kv_heads], heads[:, -self.num_kv_heads :]
        if self.head_norm is not None:
            turning = self.head_norm(turning)
        return rotation.rotate(turning), value

    def attend_rotated(
        self, rotated: Tensor, value: Tensor, pages: Pages, layout: Layout
    ) -> Tensor:
        """Attention `(T, Hq, D)` of what `rotated` gives."""
        query, key = rotated[:, : self.num_heads], rotated[:, self.num_heads :]
        return self.backend.attention(
            query, key, value, pages, layout, scale=self.scale, window=self.window
        )

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        queries, keys = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        return {
            **self.input.rows("q_proj", 0, queries),
            **self.input.rows("k_proj", queries, queries + keys),
            **self.input.rows("v_proj", queries + keys),
            **self.output.rows("o_proj"),
            **(self.head_norm.checkpoint_tensors() if self.head_norm is not None else {}),
        }


class MLP(nn.Module):
    """`down(silu(gate(x)) * up(x))`: SwiGLU (arXiv 2002.05202)."""

    def __init__(self, config: ModelConfig, variant: Variant) -> None:
        super().__init__()
        hidden, width, bias = config.hidden_size, config.intermediate_size, variant.mlp_bias
        self.gate_up = Linear(hidden, 2 * width, bias=bias, is_gated=True)
        self.down = Linear(width, hidden, bias=bias)
        self.width = width

    def forward(self, x: Tensor, norm: RMSNorm) -> None:
        """Adds to `x` `(T, hidden)` in place."""
        self.down(self.gate_up(x, norm), add_to=x)

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        return {
            **self.gate_up.rows("gate_proj", 0, self.width),
            **self.gate_up.rows("up_proj", self.width),
            **self.down.rows("down_proj"),
        }


class DecoderLayer(nn.Module):
    """Attention, then MLP, each on a normalized input and added to the residual stream."""

    def __init__(
        self, config: ModelConfig, variant: Variant, backend: Backend, window: int | None
    ) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.attention = Attention(config, variant, backend, window)
        self.mlp_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config, variant)

    def forward(self, x: Tensor, rotation: Rotation, pages: Pages, layout: Layout) -> None:
        """Adds to `x` `(T, hidden)` in place."""
        self.attention(x, self.attention_norm, rotation, pages, layout)
        self.mlp(x, self.mlp_norm)

    def parts(self, pages: Pages) -> LayerParts:
        """What an operator of all layers is told of this one."""
        attention, mlp = self.attention, self.mlp
        return LayerParts(
            self.attention_norm, attention.input.matrix, attention.head_norm,
            attention.output.matrix, self.mlp_norm, mlp.gate_up.matrix, mlp.down.matrix,
            pages, attention.num_heads, attention.scale, attention.window,
        )  # fmt: skip

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        return {
            "input_layernorm.weight": self.attention_norm.weight,
            "post_attention_layernorm.weight": self.mlp_norm.weight,
            **prefixed("self_attn", self.attention.checkpoint_tensors()),
            **prefixed("mlp", self.mlp.checkpoint_tensors()),
        }


class Decoder(nn.Module):
    """A causal language model; a family is this class with its `Variant`."""

    def __init__(self, config: ModelConfig, backend: Backend, variant: Variant) -> None:
        super().__init__()
        self.vocab_size, self.backend = config.vocab_size, backend
        self.cache_specs = [PagedSpec(config.num_kv_heads, config.head_dim)] * config.num_layers
        self.points = points.names(config.num_layers)
        self.head = Linear(config.hidden_size, config.vocab_size, bias=False)
        is_tied = config.tie_word_embeddings  # then the head's weight is the embedding, too
        shape = (config.vocab_size, config.hidden_size)
        self.embedding = None if is_tied else nn.Parameter(torch.empty(shape))
        self.rotary = Rotary(config.rope, config.head_dim)
        self.layers = nn.ModuleList(
            DecoderLayer(config, variant, backend, window) for window in config.windows
        )
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.operator: LayersOperator | None = None  # if a backend has taken all layers over
        self._join: tuple[Sequence[Pages], Any] | None = None  # what it made of them, and a cache

    def forward(self, inputs: Inputs, cache: Sequence[Pages]) -> Tensor:
        x = F.embedding(inputs.ids, self._embedding).to(self.norm.weight.dtype)  # (T, hidden)
        reach = max(inputs.layout.context_lens)
        rotation = self.rotary(inputs.positions, x.dtype, reach)
        self.run_layers(x, rotation, cache, inputs.layout, inputs.watch)
        return self.logits(x[inputs.sample_rows])

    def logits(self, residual: Tensor) -> Tensor:
        """(S, V) float32 of rows `(S, hidden)` of the residual stream, behind whatever layer."""
        logits: Tensor = self.head(residual, self.norm)
        return logits.float()

    def run_layers(
        self,
        x: Tensor,
        rotation: Rotation,
        cache: Sequence[Pages],
        layout: Layout,
        watch: Watch | None = None,
    ) -> None:
        """Adds to `x` `(T, hidden)` in place."""
        if watch is not None:
            watched.run_layers(self, x, rotation, cache, layout, watch)
            return
        if self.operator is not None:
            self.operator.run_layers(x, self._joined(cache), rotation, layout)
            return
        for layer, pages in zip(self.layers, cache, strict=True):
            layer(x, rotation, pages, layout)

    def hand_over(
        self, operator: LinearOperator, formats: Formats, packed: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """Leave all products to `operator`, those of `packed` as they are there; all, packed.

        The embedding's rows stay as they are.
        """
        if self.embedding is None:
            rows = self.head.weight.detach().to(formats.cache)
            self.embedding = nn.Parameter(rows, requires_grad=False)
        self.operator = operator if isinstance(operator, LayersOperator) else None
        return {
            name: linear.hand_over(operator, formats.weights, packed.get(name))
            for name, linear in self.products()
        }

    def _joined(self, cache: Sequence[Pages]) -> Any:
        """The layers over `cache`, as `operator` takes them; a model has one cache for long."""
        if self._join is None or self._join[0] is not cache:
            assert self.operator is not None
            layers = cast(Iterable[DecoderLayer], self.layers)
            parts = [layer.parts(pages) for layer, pages in zip(layers, cache, strict=True)]
            self._join = cache, self.operator.join(parts)
        return self._join[1]

    def products(self) -> list[tuple[str, Linear]]:
        """Every linear layer by its name."""
        return [(name, part) for name, part in self.named_modules() if isinstance(part, Linear)]

    @property
    def _embedding(self) -> Tensor:
        return self.head.weight if self.embedding is None else self.embedding

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        tensors: dict[str, Tensor] = {"model.embed_tokens.weight": self._embedding}
        for index, layer in enumerate(cast(Iterable[DecoderLayer], self.layers)):
            tensors |= prefixed(f"model.layers.{index}", layer.checkpoint_tensors())
        tensors["model.norm.weight"] = self.norm.weight
        return tensors if self.embedding is None else {**tensors, **self.head.rows("lm_head")}


def prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """`tensors` with `prefix` and a dot before each name."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}
