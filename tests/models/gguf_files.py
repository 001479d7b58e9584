"""Small .gguf files: from a transformers model as llama.cpp would write them, or byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from minimsg.builtin import CHATML, CONTROL_TOKENS, byte_tokenizer

VOCAB = 320  # more rows than tokens, as padded embeddings have
SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 256,  # one block of the K types
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
}
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def random_model(family: str, **settings: object) -> transformers.PreTrainedModel:
    """A transformers model of random weights in float32; norms and biases are random too."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(family, **{**SIZES, "head_dim": 32, **settings})
    create = transformers.AutoModelForCausalLM.from_config
    model: transformers.PreTrainedModel = create(config, attn_implementation="eager")  # type: ignore[no-untyped-call]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(mean=float("norm" in name), std=0.1)
    model.eval()  # type: ignore[no-untyped-call]
    return model


def write_gguf(
    file: Path,
    model: transformers.PreTrainedModel,
    *,
    type: Type = Type.F32,
    metadata: Mapping[str, object] | None = None,
    extra: Mapping[str, NDArray[np.float32]] | None = None,
    without: Sequence[str] = (),
) -> dict[str, NDArray[np.float32]]:
    """Write `model` with its matrices in `type`; returns the values that the file defines.

    `metadata` is added, `extra` tensors too; `without` names tensors to leave out.
    """
    config = model.config
    writer = gguf.GGUFWriter(file, config.model_type)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    add_byte_vocabulary(writer)
    for key, value in (metadata or {}).items():
        writer.add_key_value(key, value, _value_type(value))

    defined: dict[str, NDArray[np.float32]] = {}
    for name, parameter in model.named_parameters():
        values = parameter.detach().numpy()
        stored_as = type if values.ndim == 2 else Type.F32
        encoded = encode(values, stored_as)
        defined[name] = gguf.quants.dequantize(encoded, stored_as).reshape(values.shape)
        source = _source_name(name)
        if source not in without:
            rows = _llama_cpp_rows(name, len(values), config)
            writer.add_tensor(source, encoded[rows], raw_dtype=stored_as)
    for name, values in (extra or {}).items():
        writer.add_tensor(name, values)
    _finish(writer)
    return defined


def add_byte_vocabulary(writer: gguf.GGUFWriter) -> None:
    """256 bytes, one merge and three control tokens, with a ChatML template."""
    vocabulary = byte_tokenizer().get_vocab(with_added_tokens=True)
    tokens = [*sorted(vocabulary, key=vocabulary.__getitem__), "he"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in CONTROL_TOKENS else 1 for token in tokens])
    writer.add_token_merges(["h e"])
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_chat_template(CHATML)


def raw_gguf(
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    num_tensors: int | None = None,
    num_entries: int | None = None,
    entries: Sequence[bytes] = (),
    infos: Sequence[bytes] = (),
    data: bytes = b"",
) -> bytes:
    """A file written by hand, so that it can lie."""
    counts = (
        len(infos) if num_tensors is None else num_tensors,
        len(entries) if num_entries is None else num_entries,
    )
    head = magic + struct.pack("<IQQ", version, *counts) + b"".join(entries) + b"".join(infos)
    return head + b"\0" * (-len(head) % 32) + data


def raw_string(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(data)) + data


def raw_info(name: str, shape: Sequence[int], type: int, offset: int) -> bytes:
    """A tensor's description; `shape` innermost first, as it lies in the file."""
    head = raw_string(name) + struct.pack("<I", len(shape))
    return head + struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", type, offset)


def _source_name(name: str) -> str:
    module, kind = name.rsplit(".", 1)
    if module in NAMES:
        return f"{NAMES[module]}.{kind}"
    _, _, layer, rest = module.split(".", 3)
    return f"blk.{layer}.{NAMES[rest]}.{kind}"


def _llama_cpp_rows(name: str, num_rows: int, config: transformers.PretrainedConfig) -> list[int]:
    """The model's row in each row of the file: `LlamaModel.permute` of llama.cpp's converter."""
    if config.model_type != "llama" or not ("q_proj" in name or "k_proj" in name):
        return list(range(num_rows))
    heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
    size = num_rows // heads
    return [
        head * size + half * (size // 2) + i
        for head in range(heads)
        for i in range(size // 2)
        for half in range(2)
    ]


def encode(values: NDArray[np.float32], type: Type) -> NDArray[np.generic]:
    """Stored bytes; the K types, which gguf cannot write, get random bits and small scales."""
    try:
        return np.asarray(gguf.quants.quantize(values, type))
    except NotImplementedError:
        return random_blocks(type, values.size).reshape(values.shape[0], -1)


def random_blocks(type: Type, num_values: int) -> NDArray[np.uint8]:
    """Blocks of random bits whose half-precision scales are small numbers."""
    block, size = gguf.GGML_QUANT_SIZES[type]
    generator = np.random.RandomState(num_values)
    blocks = generator.randint(0, 256, (num_values // block, size)).astype(np.uint8)
    start, stop = {Type.Q4_K: (0, 4), Type.Q5_K: (0, 4), Type.Q6_K: (208, 210)}[type]
    scales = generator.uniform(0.001, 0.01, (len(blocks), (stop - start) // 2))
    blocks[:, start:stop] = scales.astype("<f2").view(np.uint8)
    return blocks


def _value_type(value: object) -> gguf.GGUFValueType:
    return gguf.GGUFValueType.get_type(value)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
