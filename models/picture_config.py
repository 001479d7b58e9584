"""How pictures are scaled before a tower sees them: what preprocessor_config.json says.

transformers 5 writes the same object into processor_config.json, under `image_processor`,
and reads it from there first. Older files have `min_pixels` and `max_pixels` where later
ones have `size`. Torch-free, and knows no picture: `pixels.py` does what is said here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minimsg.errors import CheckpointError, UnsupportedModel
from minimsg.fields import Fields

Colour = tuple[float, float, float]

HALF: Final[Colour] = (0.5, 0.5, 0.5)
# CLIP (arXiv 2103.00020), as its preprocessor was published
CLIP_MEAN: Final[Colour] = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD: Final[Colour] = (0.26862954, 0.26130258, 0.27577711)
BICUBIC: Final = 3  # Pillow's number of it
MAX_PIXELS: Final = 1 << 32  # of a bound; far above what any tower takes


@dataclass(frozen=True)
class PictureConfig:
    """Bounds on a picture's pixels, its sides' divisor, and how colours become numbers."""

    factor: int  # of which both sides are multiples
    min_pixels: int
    max_pixels: int
    mean: Colour
    std: Colour
    scale: float  # of a colour from 0 to 255

    @classmethod
    def parse(
        cls,
        fields: Fields,
        model_type: str,
        patch_size: int,
        merge_size: int,
        temporal_patch_size: int,
    ) -> PictureConfig:
        """Read a preprocessor's object; what it does not say is the family's default.

        Raises CheckpointError, UnsupportedModel.
        """
        sizes = {
            "patch_size": patch_size,
            "merge_size": merge_size,
            "temporal_patch_size": temporal_patch_size,
        }
        _refuse_other_maths(fields, sizes)
        mean, std, least, most = DEFAULTS[model_type]
        size = fields.nested("size")
        least = size.integer("shortest_edge", least, maximum=MAX_PIXELS)
        least = fields.integer("min_pixels", least, maximum=MAX_PIXELS)
        most = size.integer("longest_edge", most, maximum=MAX_PIXELS)
        most = fields.integer("max_pixels", most, maximum=MAX_PIXELS)
        factor = patch_size * merge_size
        if not factor**2 <= most or least > most:
            seen = f"pictures of {least} to {most} pixels"
            raise CheckpointError(fields.source, seen, f"a range that holds {factor**2}")
        return cls(
            factor=factor,
            min_pixels=least,
            max_pixels=most,
            mean=_colour(fields, "image_mean", mean),
            std=_colour(fields, "image_std", std),
            scale=fields.number("rescale_factor", 1 / 255),
        )


DEFAULTS: Final[Mapping[str, tuple[Colour, Colour, int, int]]] = {
    "qwen2_5_vl": (CLIP_MEAN, CLIP_STD, 56 * 56, 28 * 28 * 1280),
    "qwen3_vl": (HALF, HALF, 256 * 256, 4096 * 4096),
}


def preprocessor_fields(folder: Path) -> Fields:
    """What the folder says of its pictures; nothing if it has no such file."""
    whole = Fields.from_file(folder / "processor_config.json", is_required=False)
    if "image_processor" in whole:
        return whole.nested("image_processor")
    return Fields.from_file(folder / "preprocessor_config.json", is_required=False)


def _refuse_other_maths(fields: Fields, sizes: Mapping[str, int]) -> None:
    for key, value in sizes.items():
        if fields.data.get(key, value) != value:
            seen = f"{key} {fields.data[key]!r}"
            raise CheckpointError(fields.source, seen, f"{value}, as in config.json")
    for key in ("do_resize", "do_rescale", "do_normalize", "do_convert_rgb"):
        if not fields.boolean(key, True):
            raise UnsupportedModel(f"{fields.source}: {key} is false")
    if fields.integer("resample", BICUBIC, minimum=0) != BICUBIC:
        raise UnsupportedModel(f"{fields.source}: resample is not bicubic ({BICUBIC})")


def _colour(fields: Fields, key: str, default: Colour) -> Colour:
    match fields.data.get(key, default):
        case [float(red) | int(red), float(green) | int(green), float(blue) | int(blue)] as colour:
            if key != "image_std" or min(colour) > 0:
                return float(red), float(green), float(blue)
    seen = f"{key} is {fields.data[key]!r:.100}"
    raise CheckpointError(fields.source, seen, "three numbers, above 0 for image_std")
