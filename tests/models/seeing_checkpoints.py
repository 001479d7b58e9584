"""Tiny random checkpoints that see, made and judged by transformers, and pictures for them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from PIL import Image
from tokenizers import AddedToken
from torch import Tensor, nn
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from minimsg.builtin import TURN_END, byte_tokenizer

from .checkpoints import edit_config

IMAGE_ID, START_ID, END_ID = 120, 122, 123
PATCH, MERGE = 4, 2
FACTOR = PATCH * MERGE

TEXT = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": None,
}
TOWER = {
    "depth": 3,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_heads": 2,
    "patch_size": PATCH,
    "spatial_merge_size": MERGE,
    "temporal_patch_size": 2,
    "out_hidden_size": 64,
}
IDS = {
    "image_token_id": IMAGE_ID,
    "video_token_id": 121,
    "vision_start_token_id": START_ID,
    "vision_end_token_id": END_ID,
}
ROPE = {"rope_type": "default", "rope_theta": 1e4}
FAMILIES: dict[str, tuple[Any, Any, dict[str, object], dict[str, object]]] = {
    "qwen2_5_vl": (
        transformers.Qwen2_5_VLConfig,
        transformers.Qwen2_5_VLForConditionalGeneration,
        {"num_hidden_layers": 2, "rope_parameters": {**ROPE, "mrope_section": [2, 3, 3]}},
        {"window_size": 2 * FACTOR, "fullatt_block_indexes": [1]},
    ),
    "qwen3_vl": (
        transformers.Qwen3VLConfig,
        transformers.Qwen3VLForConditionalGeneration,
        {
            "num_hidden_layers": 3,
            "head_dim": 32,
            "rope_parameters": {**ROPE, "mrope_section": [6, 5, 5], "mrope_interleaved": True},
        },
        {"num_position_embeddings": 36, "deepstack_visual_indexes": [0, 2]},
    ),
}
PREPROCESSOR: dict[str, Any] = {
    "patch_size": PATCH,
    "merge_size": MERGE,
    "temporal_patch_size": 2,
    "size": {"shortest_edge": 4 * FACTOR**2, "longest_edge": 40 * FACTOR**2},
    "image_mean": [0.4, 0.5, 0.6],
    "image_std": [0.2, 0.25, 0.3],
}


class SeeingOracle:
    """A transformers model with its own preprocessing."""

    def __init__(self, model: Any, processor: Any, image_id: int) -> None:
        self.model, self.processor, self.image_id = model, processor, image_id

    def pixels(self, pictures: Sequence[Image.Image]) -> Any:
        return self.processor(list(pictures), return_tensors="pt")

    def logits(self, ids: list[int], pictures: Sequence[Image.Image]) -> Tensor:
        """`(T, V)` of one sequence, computed without any cache."""
        types = torch.tensor([[int(id == self.image_id) for id in ids]])
        with torch.inference_mode():
            output = self.model(
                input_ids=torch.tensor([ids]), mm_token_type_ids=types,
                **(self.pixels(pictures) if pictures else {}),
            )  # fmt: skip
        return cast(Tensor, output.logits[0])


IMAGE_TOKENS = ("<|image_pad|>", "<|vision_start|>", "<|vision_end|>")
CHATTING_IDS = dict(zip(IDS, (259, 258, 260, 261), strict=True))
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for item in message['content'] %}{{ item['text'] }}{% endfor %}{% endif %}"
    "{{ '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def save_chatting(folder: Path, family: str = "qwen3_vl") -> SeeingOracle:
    """The same with a vocabulary of bytes, the tokens of images behind, and a chat template."""
    size = {"vocab_size": 262, "max_position_embeddings": 2048}
    oracle = save_seeing(folder, family, CHATTING_IDS, **size)
    tokenizer = byte_tokenizer()
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in IMAGE_TOKENS]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    (folder / "generation_config.json").write_text("{}")
    edit_config(folder, {"eos_token_id": TURN_END})
    return oracle


def save_seeing(
    folder: Path, family: str, ids: Mapping[str, int] = IDS, **settings: object
) -> SeeingOracle:
    """Write a model of `family` with its preprocessor; all its weights are random."""
    make_config, make_model, text, tower = FAMILIES[family]
    config = make_config(
        text_config={**TEXT, **text, **settings},
        vision_config={**TOWER, **tower},
        **ids,
        tie_word_embeddings=bool(settings.get("tie_word_embeddings", False)),
    )
    model = make_model(config).eval()
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in cast(nn.Module, model).named_parameters():
            noise = torch.randn(weight.shape, generator=random) * 0.3
            is_norm = "norm" in name or "ln_q" in name
            weight.copy_(1 + noise if is_norm and name.endswith("weight") else noise)
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSOR))
    processor = Qwen2VLImageProcessorPil(**PREPROCESSOR)
    return SeeingOracle(model, processor, ids["image_token_id"])


def picture(width: int, height: int, seed: int = 0) -> Image.Image:
    """Noise over a gradient, so that no two places look alike."""
    random = np.random.default_rng(seed)
    ramp = np.linspace(0, 120, width * height * 3).reshape(height, width, 3)
    colours: NDArray[np.float64] = ramp + random.integers(0, 130, ramp.shape)
    return Image.fromarray(colours.astype(np.uint8))
