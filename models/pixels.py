"""A picture's pixels as a tower takes them: the size it is scaled to, and its patches.

The numbers are those of transformers' `Qwen2VLImageProcessorPil`, to the last bit, in the
same order of operations. Scaling itself, which needs Pillow, is in `prompt/picture.py`.
Knows sizes and colours; no file format, no torch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from minimsg.models.picture_config import PictureConfig

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_RATIO: Final = 200  # of the sides; what Qwen's preprocessor takes


def fitted_size(width: int, height: int, config: PictureConfig) -> tuple[int, int]:
    """Width and height that a picture is scaled to: multiples of the factor, within the bounds.

    Raises ValueError if one side is more than 200 times the other.
    """
    if max(width, height) > MAX_RATIO * min(width, height):
        raise ValueError(f"one side is more than {MAX_RATIO} times the other")
    factor = config.factor
    wide, high = round(width / factor) * factor, round(height / factor) * factor
    if wide * high > config.max_pixels:
        shrink = math.sqrt(height * width / config.max_pixels)
        wide = max(factor, math.floor(width / shrink / factor) * factor)
        high = max(factor, math.floor(height / shrink / factor) * factor)
    elif wide * high < config.min_pixels:
        grow = math.sqrt(config.min_pixels / (height * width))
        wide = math.ceil(width * grow / factor) * factor
        high = math.ceil(height * grow / factor) * factor
    return wide, high


def patches_of(
    pixels: bytes, width: int, height: int, config: PictureConfig, patch_size: int, frames: int
) -> NDArray[np.float32]:
    """Red, green and blue bytes of a scaled picture as patches `(N, 3 * frames * patch**2)`.

    Patches that become one token follow each other.
    """
    import numpy as np

    merge = config.factor // patch_size
    raw = np.frombuffer(pixels, dtype=np.uint8).reshape(height, width, 3)
    scaled = (raw.astype(np.float64) * config.scale).astype(np.float32)
    mean, std = np.array(config.mean, np.float32), np.array(config.std, np.float32)
    numbers = ((scaled - mean) / std).reshape(
        height // config.factor, merge, patch_size, width // config.factor, merge, patch_size, 3
    )
    cut = numbers.transpose(0, 3, 1, 4, 6, 2, 5)  # row, column, theirs inside, colour, pixels
    frame = cut.reshape(-1, 3, 1, patch_size**2)
    return np.repeat(frame, frames, axis=2).reshape(len(frame), -1)
