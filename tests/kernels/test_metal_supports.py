"""Where `metal_paged` runs, and what it says where it does not."""

from __future__ import annotations

import pytest
import torch

from minimsg.kernels.metal_paged import Backend

MPS = torch.device("mps")


@pytest.fixture
def an_apple_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)


def why_not(
    device: torch.device = MPS, dtype: torch.dtype = torch.float16, head_dim: int = 64
) -> str | None:
    return Backend().supports(device=device, dtype=dtype, head_dim=head_dim)


def test_it_does_not_run_on_a_cpu() -> None:
    assert why_not(torch.device("cpu")) == "it runs on Apple GPUs (mps) only, not on cpu"


def test_it_does_not_run_where_torch_sees_no_apple_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert why_not() == "torch sees no Apple GPU"


@pytest.mark.usefixtures("an_apple_gpu")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("head_dim", [64, 80, 128, 256])
def test_it_runs_on_an_apple_gpu(dtype: torch.dtype, head_dim: int) -> None:
    assert why_not(dtype=dtype, head_dim=head_dim) is None


@pytest.mark.usefixtures("an_apple_gpu")
def test_it_needs_a_torch_that_compiles_shaders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.mps, "compile_shader")
    assert "has no torch.mps.compile_shader" in str(why_not())


@pytest.mark.usefixtures("an_apple_gpu")
def test_other_formats_and_larger_heads_are_refused() -> None:
    assert why_not(dtype=torch.float64) == (
        "it knows float32, bfloat16 and float16, not torch.float64"
    )
    assert why_not(head_dim=320) == "heads of at most 256 dimensions fit its memory, not of 320"
