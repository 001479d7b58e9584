"""The model in plain torch, in batches and with gradients: Qwen3-VL as it is trained.

The same maths as `models/qwen3_vl.py` and transformers (arXiv 2511.21631 section 2), said for
learning: every picture of a batch has the same size, nothing is cached and nothing happens in
place. Modules are named so that `state_dict` has the names of a checkpoint. What is subtle
(the stretched table of positions, the interleaved axes) is imported from the served model.

Rows: B conversations of T tokens, with M pictures of N patches. H is a width.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimsg.models.config import ModelConfig
from minimsg.models.qwen3_vl import interleaved, stretched
from minimsg.models.rope import inverse_frequencies
from minimsg.models.vision import PlaneRotary, places_of
from minimsg.models.vision_config import VisionConfig

EPSILON: Final = 1e-6


class Turn(NamedTuple):
    """Cosine and sine of rotary angles, for the last axis of heads `(B, heads, T, D)`."""

    cos: Tensor
    sin: Tensor

    def __call__(self, heads: Tensor) -> Tensor:
        half = heads.shape[-1] // 2
        return heads * self.cos + heads.roll(half, -1) * self.sin


class Network(nn.Module):
    """Token ids and pictures to logits. The head is the embedding."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.model = Halves(config)

    def see(self, patches: Tensor, rows: int) -> Tensor:
        """Patches `(M, N, values)` of `rows` rows as tokens, `(levels, M, tokens, H)`."""
        levels: Tensor = self.model.visual(patches, rows)
        return levels

    def read(self, ids: Tensor, axes: Tensor, mask: Tensor, sight: Tensor, seen: Tensor) -> Tensor:
        """Hidden states `(B, T, H)`; `head` makes logits of those that matter.

        `ids` `(B, T)`, `axes` `(3, B, T)`, `mask` `(B, T, T)` of what may be seen, `sight`
        `(B, T)` where tokens of pictures stand, in the order of `seen`.
        """
        hidden: Tensor = self.model.language_model(ids, axes, mask, sight, seen.flatten(1, 2))
        return hidden

    def head(self, hidden: Tensor) -> Tensor:
        """Logits `(..., V)` of hidden states `(..., H)`."""
        return F.linear(hidden, self.model.language_model.embed_tokens.weight)


class Halves(nn.Module):
    """The names of the two in a checkpoint."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.vision is not None
        self.visual = Tower(config.vision, config.hidden_size)
        self.language_model = Decoder(config)


class Decoder(nn.Module):
    """Qwen3's blocks; the first ones get what the tower's deeper levels saw added."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.vision is not None
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_layers))
        self.norm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.frequencies = inverse_frequencies(config.rope, config.head_dim)  # (D / 2,)
        self.turned_by = interleaved(config.vision.sections, config.head_dim // 2)

    def forward(
        self, ids: Tensor, axes: Tensor, mask: Tensor, sight: Tensor, levels: Tensor
    ) -> Tensor:
        first, *deeper = levels
        x = self.embed_tokens(ids).masked_scatter(sight[..., None], first)
        turn = self._turn(axes)
        for index, layer in enumerate(self.layers):
            x = layer(x, turn, mask[:, None])
            if index < len(deeper):
                x = x + torch.zeros_like(x).masked_scatter(sight[..., None], deeper[index])
        normed: Tensor = self.norm(x)
        return normed

    def _turn(self, axes: Tensor) -> Turn:
        angles = axes[self.turned_by].permute(1, 2, 0) * self.frequencies  # (B, T, D / 2)
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        return Turn(torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1))


class Layer(nn.Module):
    """Attention with normalized heads, then SwiGLU."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = GatedMLP(config)

    def forward(self, x: Tensor, turn: Turn, mask: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), turn, mask)
        summed: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return summed


class Attention(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        hidden, self.head_dim = config.hidden_size, config.head_dim
        query, key = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
        self.q_proj = nn.Linear(hidden, query, bias=False)
        self.k_proj = nn.Linear(hidden, key, bias=False)
        self.v_proj = nn.Linear(hidden, key, bias=False)
        self.o_proj = nn.Linear(query, hidden, bias=False)
        self.q_norm = nn.RMSNorm(config.head_dim, config.rms_norm_eps)
        self.k_norm = nn.RMSNorm(config.head_dim, config.rms_norm_eps)

    def forward(self, x: Tensor, turn: Turn, mask: Tensor) -> Tensor:
        split = (self.q_proj(x), self.k_proj(x), self.v_proj(x))
        query, key, value = (part.unflatten(-1, (-1, self.head_dim)) for part in split)
        query, key = self.q_norm(query).transpose(1, 2), self.k_norm(key).transpose(1, 2)
        attended = F.scaled_dot_product_attention(
            turn(query), turn(key), value.transpose(1, 2), mask, enable_gqa=True
        )
        output: Tensor = self.o_proj(attended.transpose(1, 2).flatten(2))
        return output


class GatedMLP(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        hidden, width = config.hidden_size, config.intermediate_size
        self.gate_proj = nn.Linear(hidden, width, bias=False)
        self.up_proj = nn.Linear(hidden, width, bias=False)
        self.down_proj = nn.Linear(width, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return output


class Tower(nn.Module):
    """Patches to what the decoder gets: once at its end, and once after each deeper level."""

    def __init__(self, config: VisionConfig, hidden_size: int) -> None:
        super().__init__()
        self.config = config
        self.patch_embed = nn.ModuleDict({"proj": PatchEmbedding(config)})
        self.pos_embed = nn.Embedding(config.num_positions, config.hidden_size)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_blocks))
        self.merger = Merger(config, hidden_size, is_late=False)
        self.deepstack_merger_list = nn.ModuleList(
            Merger(config, hidden_size, is_late=True) for _ in config.deepstack
        )
        self.rotary = PlaneRotary(config)

    def forward(self, patches: Tensor, rows: int) -> Tensor:
        """`(M, N, values)` to `(1 + levels, M, N / merge**2, H of the decoder)`."""
        merge = self.config.merge_size
        size = rows, patches.shape[1] // rows
        places = places_of(size[0] // merge, size[1] // merge, merge, patches.device)
        x = self.patch_embed["proj"](patches) + stretched(self.pos_embed.weight, places, size)
        rotation = self.rotary(places)  # (N, 1, D)
        turn = Turn(rotation.cos.transpose(0, 1), rotation.sin.transpose(0, 1))
        levels: list[Tensor] = []
        for index, block in enumerate(self.blocks):
            x = block(x, turn)
            if index in self.config.deepstack:
                levels.append(self.deepstack_merger_list[len(levels)](x))
        return torch.stack([self.merger(x), *levels])


class PatchEmbedding(nn.Linear):
    """A product whose weight is stored as that of a convolution."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__(config.patch_values, config.hidden_size)
        side, frames = config.patch_size, config.temporal_patch_size
        shape = (config.hidden_size, 3, frames, side, side)
        self.weight = nn.Parameter(self.weight.detach().view(shape))

    def forward(self, patches: Tensor) -> Tensor:
        return F.linear(patches, self.weight.flatten(1), self.bias)


class Block(nn.Module):
    """LayerNorm, attention of all patches of a picture; LayerNorm, GELU."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        hidden, width, self.num_heads = (
            config.hidden_size,
            config.intermediate_size,
            config.num_heads,
        )
        self.norm1 = nn.LayerNorm(hidden, EPSILON)
        self.attn = nn.ModuleDict(
            {"qkv": nn.Linear(hidden, 3 * hidden), "proj": nn.Linear(hidden, hidden)}
        )
        self.norm2 = nn.LayerNorm(hidden, EPSILON)
        self.mlp = nn.ModuleDict(
            {"linear_fc1": nn.Linear(hidden, width), "linear_fc2": nn.Linear(width, hidden)}
        )

    def forward(self, x: Tensor, turn: Turn) -> Tensor:
        x = x + self._attended(self.norm1(x), turn)
        raised = F.gelu(self.mlp["linear_fc1"](self.norm2(x)), approximate="tanh")
        summed: Tensor = x + self.mlp["linear_fc2"](raised)
        return summed

    def _attended(self, x: Tensor, turn: Turn) -> Tensor:
        heads = self.attn["qkv"](x).unflatten(-1, (3, self.num_heads, -1))
        query, key, value = (part.transpose(1, 2) for part in heads.unbind(2))
        attended = F.scaled_dot_product_attention(turn(query), turn(key), value)
        output: Tensor = self.attn["proj"](attended.transpose(1, 2).flatten(2))
        return output


class Merger(nn.Module):
    """The patches of a token, one behind the other, to that token; the norm before or after."""

    def __init__(self, config: VisionConfig, hidden_size: int, *, is_late: bool) -> None:
        super().__init__()
        self.width, self.is_late = config.hidden_size * config.merge_size**2, is_late
        self.norm = nn.LayerNorm(self.width if is_late else config.hidden_size, EPSILON)
        self.linear_fc1 = nn.Linear(self.width, self.width)
        self.linear_fc2 = nn.Linear(self.width, hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        together = (len(x), -1, self.width)
        x = self.norm(x.view(together)) if self.is_late else self.norm(x).view(together)
        tokens: Tensor = self.linear_fc2(F.gelu(self.linear_fc1(x)))
        return tokens
