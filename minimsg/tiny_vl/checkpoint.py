"""The model's folder: its configuration, its vocabulary, and how weights come to lie in it.

A folder as the hub has them, which transformers loads as well. Importing this needs neither
torch nor numpy; `save` needs torch and safetensors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING, Final

from tokenizers import Tokenizer

from minimsg.tiny_vl.vocabulary import (
    IMAGE_END,
    IMAGE_PAD,
    IMAGE_START,
    TEMPLATE,
    TURN_END,
)

if TYPE_CHECKING:
    from torch import nn

FOLDER: Final = Path(__file__).parent / "model"  # what ships
WEIGHTS: Final = "model.safetensors"
SIDE: Final = 48  # pixels of a square picture
MOST_PIXELS: Final = 3_200  # of others: with fewer, pictures of 4 to 3 would lose a third
TEXT: Final[Mapping[str, object]] = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "hidden_act": "silu",
    "attention_bias": False,
    "max_position_embeddings": 32_768,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10_000.0,
        "mrope_section": [6, 5, 5],
        "mrope_interleaved": True,
    },
}
TOWER: Final[Mapping[str, object]] = {
    "depth": 5,
    "hidden_size": 96,
    "intermediate_size": 192,
    "num_heads": 4,
    "patch_size": 6,
    "spatial_merge_size": 2,
    "temporal_patch_size": 1,
    "out_hidden_size": 128,
    "num_position_embeddings": 64,
    "deepstack_visual_indexes": [1],
    "hidden_act": "gelu_pytorch_tanh",
}
PREPROCESSOR: Final[Mapping[str, object]] = {
    "image_processor_type": "Qwen2VLImageProcessorFast",
    "patch_size": 6,
    "merge_size": 2,
    "temporal_patch_size": 1,
    "size": {"shortest_edge": SIDE**2, "longest_edge": MOST_PIXELS},
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}


def copy_model(folder: Path) -> None:
    """Fill `folder` with the trained model that ships."""
    for file in sorted(FOLDER.iterdir()):
        copyfile(file, folder / file.name)


def is_copied(folder: Path) -> bool:
    """Whether `folder` holds the trained model that ships now, to be read."""
    try:
        return all(
            (folder / file.name).read_bytes() == file.read_bytes() for file in FOLDER.iterdir()
        )
    except OSError:
        return False


def write_description(folder: Path, tokenizer: Tokenizer) -> None:
    """Everything but the weights."""
    end = tokenizer.token_to_id(TURN_END)
    ids = {
        "image_token_id": tokenizer.token_to_id(IMAGE_PAD),
        "vision_start_token_id": tokenizer.token_to_id(IMAGE_START),
        "vision_end_token_id": tokenizer.token_to_id(IMAGE_END),
    }
    config = {
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "model_type": "qwen3_vl",
        "tie_word_embeddings": True,
        "eos_token_id": end,
        "torch_dtype": "float16",
        **ids,
        "text_config": {
            "model_type": "qwen3_vl_text",
            **TEXT,
            "vocab_size": tokenizer.get_vocab_size(),
        },
        "vision_config": {"model_type": "qwen3_vl", **TOWER},
    }
    texts = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": TURN_END}
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(TEMPLATE, "utf-8", newline="")
    files: dict[str, Mapping[str, object]] = {
        "config.json": config,
        "generation_config.json": {"do_sample": False, "eos_token_id": end},
        "preprocessor_config.json": PREPROCESSOR,
        "tokenizer_config.json": texts,
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", "utf-8")


def save_weights(network: nn.Module, folder: Path) -> None:
    """The weights in float16, under the names of a checkpoint."""
    import torch
    from safetensors.torch import save

    tensors = {
        name: value.detach().to(torch.float16).contiguous()
        for name, value in network.state_dict().items()
    }
    (folder / WEIGHTS).write_bytes(save(tensors, {"format": "pt"}))
