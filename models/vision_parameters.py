"""The names and shapes of a tower's weights, without torch. Names are Hugging Face's.

Two spellings are about: `visual.*` beside `model.*`, and `model.visual.*` beside
`model.language_model.*`; here is the first, and `plain_name` makes it of the second.
"""

from __future__ import annotations

from minimsg.models.vision_config import VisionConfig

Shape = tuple[int, ...]


def plain_name(name: str) -> str:
    """A stored tensor's name in the spelling that is used here."""
    for prefix, plain in (("model.language_model.", "model."), ("model.visual.", "visual.")):
        if name.startswith(prefix):
            return plain + name.removeprefix(prefix)
    return name


def tower_shapes(config: VisionConfig, model_type: str, hidden_size: int) -> dict[str, Shape]:
    """The shape of each weight of a tower, by name; `hidden_size` is the decoder's."""
    make = _window_tower if model_type == "qwen2_5_vl" else _deep_tower
    return {f"visual.{name}": shape for name, shape in make(config, hidden_size).items()}


def _window_tower(config: VisionConfig, hidden_size: int) -> dict[str, Shape]:
    width, inner = config.hidden_size, config.intermediate_size
    block: dict[str, Shape] = {
        "norm1.weight": (width,),
        **_linear("attn.qkv", width, 3 * width),
        **_linear("attn.proj", width, width),
        "norm2.weight": (width,),
        **_linear("mlp.gate_proj", width, inner),
        **_linear("mlp.up_proj", width, inner),
        **_linear("mlp.down_proj", inner, width),
    }
    merged = width * config.merge_size**2
    return {
        "patch_embed.proj.weight": _patch(config),
        **_blocks(config, block),
        "merger.ln_q.weight": (width,),
        **_linear("merger.mlp.0", merged, merged),
        **_linear("merger.mlp.2", merged, hidden_size),
    }


def _deep_tower(config: VisionConfig, hidden_size: int) -> dict[str, Shape]:
    width, inner = config.hidden_size, config.intermediate_size
    block: dict[str, Shape] = {
        **_layer_norm("norm1", width),
        **_linear("attn.qkv", width, 3 * width),
        **_linear("attn.proj", width, width),
        **_layer_norm("norm2", width),
        **_linear("mlp.linear_fc1", width, inner),
        **_linear("mlp.linear_fc2", inner, width),
    }
    merged = width * config.merge_size**2
    shapes: dict[str, Shape] = {
        "patch_embed.proj.weight": _patch(config),
        "patch_embed.proj.bias": (width,),
        "pos_embed.weight": (config.num_positions, width),
        **_blocks(config, block),
    }
    deep = [(f"deepstack_merger_list.{index}", merged) for index in range(len(config.deepstack))]
    for name, normed in [("merger", width), *deep]:
        shapes |= _layer_norm(f"{name}.norm", normed)
        shapes |= _linear(f"{name}.linear_fc1", merged, merged)
        shapes |= _linear(f"{name}.linear_fc2", merged, hidden_size)
    return shapes


def _patch(config: VisionConfig) -> Shape:
    side = config.patch_size
    return (config.hidden_size, 3, config.temporal_patch_size, side, side)


def _blocks(config: VisionConfig, block: dict[str, Shape]) -> dict[str, Shape]:
    return {
        f"blocks.{index}.{name}": shape
        for index in range(config.num_blocks)
        for name, shape in block.items()
    }


def _linear(name: str, inputs: int, outputs: int) -> dict[str, Shape]:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _layer_norm(name: str, size: int) -> dict[str, Shape]:
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}
