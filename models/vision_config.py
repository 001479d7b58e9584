"""What a config.json says of a model's eyes: the tower, and how pictures enter the decoder.

Reads both spellings: hub configs of Qwen2.5-VL are flat (the decoder's keys at the top),
later ones nest `text_config` beside `vision_config`. Torch-free. How pictures are scaled
before the tower sees them is in `picture_config.py`; what the tower makes of them in
`qwen2_5_vl.py` and `qwen3_vl.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from minimsg.errors import CheckpointError, UnsupportedModel
from minimsg.fields import Fields
from minimsg.models.picture_config import PictureConfig
from minimsg.models.rope_config import DEFAULT_THETA

SEEING: Final = frozenset({"qwen2_5_vl", "qwen3_vl"})  # families with a tower

# Defaults of the families' configs in transformers
TEXT_THETA: Final[Mapping[str, float]] = {"qwen2_5_vl": 1e6, "qwen3_vl": 5e5}
SECTIONS: Final[Mapping[str, list[int]]] = {"qwen2_5_vl": [16, 24, 24], "qwen3_vl": [24, 20, 20]}
ACTIVATION: Final[Mapping[str, str]] = {"qwen2_5_vl": "silu", "qwen3_vl": "gelu_pytorch_tanh"}

MULTIMODAL_ROPE: Final = ("mrope_section", "mrope_interleaved")
MAX_BLOCKS: Final = 1024  # several times the deepest published tower


@dataclass(frozen=True)
class VisionConfig:
    """A tower's shape. Invariant: its heads' size is a multiple of 4, two axes of pairs."""

    num_blocks: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    patch_size: int  # pixels, either way
    temporal_patch_size: int  # frames; a picture is as many equal ones
    merge_size: int  # patches, either way, that become one token
    rope_theta: float
    image_id: int  # stands for each token of a picture,
    start_id: int  # between these two
    end_id: int
    sections: tuple[int, int, int]  # frequencies that turn by time, row and column
    pictures: PictureConfig
    window_size: int = 0  # of qwen2_5_vl: pixels, either way, that most blocks see;
    full_blocks: frozenset[int] = frozenset()  # these see everything
    num_positions: int = 0  # of qwen3_vl: of a square table
    deepstack: tuple[int, ...] = ()  # of qwen3_vl: blocks whose output the decoder gets as well

    @property
    def patch_values(self) -> int:
        """Numbers of a patch: colours, frames, rows, columns."""
        return 3 * self.temporal_patch_size * self.patch_size**2


def text_fields(fields: Fields) -> Fields:
    """The decoder's keys as one flat object, rotary positions without those of pictures."""
    model_type = fields.text("model_type")
    outer = {key: value for key, value in fields.data.items() if key not in _NESTED}
    inner = fields.nested("text_config").data
    flat = {"rope_theta": TEXT_THETA[model_type], **outer, **inner, "model_type": model_type}
    is_tied = any(bool(each.get("tie_word_embeddings")) for each in (outer, inner))
    for key in ("rope_scaling", "rope_parameters"):
        if isinstance(rope := flat.get(key), dict):
            flat[key] = {name: _plain(rope[name]) for name in rope if name not in MULTIMODAL_ROPE}
    return Fields({**flat, "tie_word_embeddings": is_tied}, fields.source)


_NESTED: Final = ("text_config", "vision_config")


def _plain(value: object) -> object:
    """Qwen2.5-VL's old name for rotary positions of three axes is no kind of frequencies."""
    return "default" if value == "mrope" else value


def parse_vision(
    fields: Fields, pictures: Fields, *, head_dim: int, hidden_size: int, vocab_size: int
) -> VisionConfig:
    """The tower of a whole config.json, and of its preprocessor's.

    Raises CheckpointError, UnsupportedModel.
    """
    model_type, tower = fields.text("model_type"), fields.nested("vision_config")
    _refuse_other_maths(tower, model_type, hidden_size)
    has_windows = model_type == "qwen2_5_vl"
    num_blocks = tower.integer("depth", maximum=MAX_BLOCKS)
    patch_size, merge_size = tower.integer("patch_size"), tower.integer("spatial_merge_size", 2)
    temporal_patch_size = tower.integer("temporal_patch_size", 2)
    config = VisionConfig(
        num_blocks=num_blocks,
        hidden_size=tower.integer("hidden_size"),
        intermediate_size=tower.integer("intermediate_size"),
        num_heads=tower.integer("num_heads"),
        patch_size=patch_size,
        temporal_patch_size=temporal_patch_size,
        merge_size=merge_size,
        rope_theta=tower.nested("rope_parameters").number("rope_theta", DEFAULT_THETA, above=1.0),
        image_id=_id(fields, "image_token_id", vocab_size),
        start_id=_id(fields, "vision_start_token_id", vocab_size),
        end_id=_id(fields, "vision_end_token_id", vocab_size),
        sections=_sections(fields, model_type, head_dim),
        pictures=PictureConfig.parse(
            pictures, model_type, patch_size, merge_size, temporal_patch_size
        ),
        window_size=tower.integer("window_size", 112) if has_windows else 0,
        full_blocks=frozenset(_blocks(tower, "fullatt_block_indexes", num_blocks, has_windows)),
        num_positions=0 if has_windows else tower.integer("num_position_embeddings", 2304),
        deepstack=_blocks(tower, "deepstack_visual_indexes", num_blocks, not has_windows),
    )
    _check_shapes(config, tower.source)
    return config


def _refuse_other_maths(tower: Fields, model_type: str, hidden_size: int) -> None:
    expected = {
        "hidden_act": ACTIVATION[model_type],
        "in_channels": 3,
        "in_chans": 3,
        "out_hidden_size": hidden_size,
    }
    for key, value in expected.items():
        if tower.data.get(key, value) != value:
            seen = f"{tower.source}: {key} = {tower.data[key]!r}"
            raise UnsupportedModel(f"{seen} is not supported; {value!r} is")
    kind = tower.nested("rope_parameters").text("rope_type", "axial")
    if kind != "axial":
        raise UnsupportedModel(f"{tower.source}: rope type {kind!r}; known is axial")


def _sections(fields: Fields, model_type: str, head_dim: int) -> tuple[int, int, int]:
    """How many frequencies each axis has; where they lie is the family's business."""
    text = fields.nested("text_config") if "text_config" in fields else fields
    rope = text.nested("rope_scaling")
    rope = rope if rope.data else text.nested("rope_parameters")
    is_interleaved = model_type == "qwen3_vl"
    if rope.boolean("mrope_interleaved", is_interleaved) != is_interleaved:
        raise UnsupportedModel(f"{rope.source}: mrope_interleaved is {not is_interleaved}")
    sections = rope.data.get("mrope_section", SECTIONS[model_type])
    match sections:
        case [int(time), int(row), int(column)] if min(time, row, column) >= 0:
            if time + row + column == head_dim // 2:
                return time, row, column
    expected = f"three numbers that add up to {head_dim // 2}, half of a head"
    raise CheckpointError(rope.source, f"mrope_section is {sections!r:.100}", expected)


def _blocks(tower: Fields, key: str, num_blocks: int, is_wanted: bool) -> tuple[int, ...]:
    """Places of blocks, in rising order."""
    places = tower.data.get(key, []) if is_wanted else []
    if not isinstance(places, list) or not all(type(each) is int for each in places):
        raise CheckpointError(tower.source, f"{key} is {places!r:.100}", "a list of places")
    if list(places) != sorted(set(places)) or any(not 0 <= p < num_blocks for p in places):
        expected = f"rising places of blocks, below {num_blocks}"
        raise CheckpointError(tower.source, f"{key} is {places!r:.100}", expected)
    return tuple(places)


def _id(fields: Fields, key: str, vocab_size: int) -> int:
    return fields.integer(key, minimum=0, maximum=vocab_size - 1)


def _check_shapes(config: VisionConfig, source: object) -> None:
    if config.hidden_size % (4 * config.num_heads):
        seen = f"{config.num_heads} heads of hidden_size {config.hidden_size}"
        raise CheckpointError(source, seen, "heads whose size is a multiple of 4")
    side = round(config.num_positions**0.5)
    if side**2 != config.num_positions:
        seen = f"num_position_embeddings {config.num_positions}"
        raise CheckpointError(source, seen, "a square number")
    if config.window_size and config.window_size < config.merge_size * config.patch_size:
        seen = f"window_size {config.window_size}"
        raise CheckpointError(source, seen, f"at least {config.merge_size * config.patch_size}")
