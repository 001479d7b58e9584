"""A model that sees in the number formats that its kernel runs, and from the library."""

from __future__ import annotations

import base64
from io import BytesIO
from pathlib import Path

import pytest
import torch

from minimsg import load
from minimsg.engine.types import Token
from minimsg.models.config import ModelConfig

from .paged import KERNELS
from .paged import load as load_model
from .seeing_checkpoints import FAMILIES, picture, save_chatting, save_seeing
from .seeing_run import span_of

MEAN_ERROR = {torch.bfloat16: 0.02, torch.int8: 0.05}  # of a standard deviation


@pytest.mark.skipif("cpu_native" not in KERNELS, reason="needs a C compiler")
@pytest.mark.parametrize("dtype", MEAN_ERROR, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_tower_in_few_bits_sees_nearly_the_same(
    family: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    save_seeing(tmp_path, family)
    span = span_of(picture(30, 40), 0, ModelConfig.from_folder(tmp_path))
    exact, rounded = (
        load_model(tmp_path, kernel, each).see(span.pixels, span.rows, span.columns)  # type: ignore[attr-defined]
        for kernel, each in (("cpu", torch.float32), ("cpu_native", dtype))
    )
    assert (rounded - exact).abs().mean() <= MEAN_ERROR[dtype] * exact.std()


def test_the_library_shows_a_picture_to_its_model(tmp_path: Path) -> None:
    oracle = save_chatting(tmp_path)
    model = load(str(tmp_path), dtype="float32", num_pages=128)
    stream, cats = BytesIO(), picture(30, 40)
    cats.save(stream, "PNG")
    source = {"type": "base64", "media_type": "image/png"}
    source["data"] = base64.b64encode(stream.getvalue()).decode()
    content = [{"type": "image", "source": source}, {"type": "text", "text": "What is it?"}]
    (first, *_) = model.steps([{"role": "user", "content": content}], max_tokens=1, temperature=0)
    ids = first.batch.input_ids
    expected = int(oracle.logits(ids, [cats])[-1].argmax())
    assert [each.id for each in first.outputs if isinstance(each, Token)] == [expected]
