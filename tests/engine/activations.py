"""What transformers computes at each named point, and with which patches: the oracle of hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

Change = Callable[[Tensor], Tensor]
Modules = dict[str, tuple[Any, bool, tuple[int, ...]]]


def oracle_points(model: Any, ids: list[int]) -> dict[str, Tensor]:
    """Values `(T, ...)` at every point but `hook_rot_q`, computed without a cache of ours."""
    found: dict[str, Tensor] = {}
    with ExitStack() as hooks:
        for name in [*_module_points(model), *_norms(model)]:
            hooks.enter_context(at_point(model, name, partial(keep, found, name)))
        model.set_attn_implementation("eager")
        with torch.inference_mode():
            said = model(
                torch.tensor([ids]),
                output_hidden_states=True,
                output_attentions=True,
                use_cache=True,
            )
    for index, layer in enumerate(said.past_key_values.layers):
        found[f"blocks.{index}.attn.hook_rot_k"] = layer.keys[0].transpose(0, 1)
        found[f"blocks.{index}.attn.hook_pattern"] = said.attentions[index][0].transpose(0, 1)
        found[f"blocks.{index}.hook_resid_pre"] = said.hidden_states[index][0]
        mid = said.hidden_states[index][0] + found[f"blocks.{index}.hook_attn_out"]
        found[f"blocks.{index}.hook_resid_mid"] = mid
    return found


def oracle_logits(model: Any, ids: list[int], name: str, change: Change) -> Tensor:
    """(T, V) with the values at a point changed."""
    with at_point(model, name, change), torch.inference_mode():
        logits: Tensor = model(torch.tensor([ids])).logits[0]
        return logits


def keep(found: dict[str, Tensor], name: str, values: Tensor) -> Tensor:
    found[name] = values.clone()
    return values


@contextmanager
def at_point(model: Any, name: str, change: Change) -> Iterator[None]:
    """Within, what a module gives (or takes, of those that follow the point) is changed."""
    modules = {**_module_points(model), **_norms(model)}
    module, is_input, shape = modules[name]

    def changed(values: Tensor) -> Tensor:
        return change(values[0].view(values.shape[1], *shape)).reshape(values.shape)

    def before(module: Any, inputs: Any) -> Any:
        return (changed(inputs[0]), *inputs[1:])

    def after(module: Any, inputs: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (changed(output[0]), *output[1:])
        return changed(output)

    if is_input:
        handle = module.register_forward_pre_hook(before)
    else:
        handle = module.register_forward_hook(after)
    try:
        yield
    finally:
        handle.remove()


def _module_points(model: Any) -> Modules:
    """The module of each point, whether the point is what it takes, and the shape of a row."""
    found: Modules = {}
    found["hook_embed"] = (model.model.embed_tokens, False, (-1,))
    for index, layer in enumerate(model.model.layers):
        attention, heads = layer.self_attn, (-1, layer.self_attn.head_dim)
        found |= {
            f"blocks.{index}.attn.hook_q": (attention.q_proj, False, heads),
            f"blocks.{index}.attn.hook_k": (attention.k_proj, False, heads),
            f"blocks.{index}.attn.hook_v": (attention.v_proj, False, heads),
            f"blocks.{index}.attn.hook_z": (attention.o_proj, True, heads),
            f"blocks.{index}.hook_attn_out": (attention.o_proj, False, (-1,)),
            f"blocks.{index}.mlp.hook_post": (layer.mlp.down_proj, True, (-1,)),
            f"blocks.{index}.hook_mlp_out": (layer.mlp.down_proj, False, (-1,)),
            f"blocks.{index}.hook_resid_post": (layer, False, (-1,)),
        }
    return found


def _norms(model: Any) -> Modules:
    """As `_module_points`; what a norm gives has its weight in it."""
    found: Modules = {"ln_final.hook_normalized": (model.model.norm, False, (-1,))}
    for index, layer in enumerate(model.model.layers):
        found[f"blocks.{index}.ln1.hook_normalized"] = (layer.input_layernorm, False, (-1,))
        found[f"blocks.{index}.ln2.hook_normalized"] = (
            layer.post_attention_layernorm,
            False,
            (-1,),
        )
    return found


def norm_weight(model: Any, name: str) -> Tensor:
    weight: Tensor = _norms(model)[name][0].weight.detach()
    return weight
