"""What the Triton backend decides before anything is launched; triton itself is not needed."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from minimsg.kernels import triton_paged
from minimsg.kernels.contract import Layout
from minimsg.kernels.triton_paged import DTYPES, MAX_HEAD_DIM, Backend
from minimsg.kernels.triton_plan import MAX_SPLITS, blocks_for, num_splits, plan_for

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture(autouse=True)
def triton_is_installed_and_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_paged, "find_spec", lambda name: name)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)


def test_it_is_imported_and_asked_without_importing_triton() -> None:
    ask = (
        "import sys, torch; from minimsg.kernels.triton_paged import Backend; "
        "print(Backend().supports(device=torch.device('cpu'), dtype=torch.float32, head_dim=64)); "
        "assert 'minimsg.kernels.triton_kernels' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "it runs on CUDA only, not on cpu", done.stderr


def test_it_says_that_triton_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_paged, "find_spec", lambda name: None)
    assert why_not(CUDA) == "the package triton is not installed"


def test_it_says_that_the_device_is_missing_or_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert why_not(CUDA) == "there is no CUDA device"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert why_not(CUDA) == "compute capability (8, 0) is needed, the device has (7, 5)"
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    assert why_not(CUDA) is None


def test_it_refuses_formats_and_heads_that_it_does_not_know() -> None:
    assert "not torch.float64" in str(why_not(CUDA, torch.float64))
    assert "not 257" in str(why_not(CUDA, head_dim=257))


def test_the_interpreter_is_refused_bfloat16_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert why_not(CPU, torch.float32) is None
    assert "bfloat16" in str(why_not(CPU, torch.bfloat16))


def test_a_plan_parts_decode_rows_from_tiles_and_puts_the_longest_tiles_first() -> None:
    """Five new tokens after ten, one after seven, one that is the first, nine of nine."""
    layout = Layout(
        [0, 5, 6, 7, 16], [15, 8, 1, 9], torch.zeros(4, 1).long(), torch.arange(16)
    )  # fmt: skip
    plan = plan_for(layout, tile_tokens=4)
    assert plan.starts.tolist() == [0, 5, 6, 7, 16]
    assert plan.lengths.tolist() == [15, 8, 1, 9]
    assert plan.decoding.tolist() == [1, 2]
    assert plan.longest == 8
    assert plan.tiles.tolist() == [[0, 4], [0, 0], [3, 8], [3, 4], [3, 0]]
    assert {each.dtype for each in (plan.starts, plan.lengths, plan.decoding, plan.tiles)} == {
        torch.int32
    }


def test_a_plan_of_one_kind_only_has_nothing_of_the_other() -> None:
    tables, slots = torch.zeros(1, 1).long(), torch.arange(1)
    assert plan_for(Layout([0, 1], [7], tables, slots), 4).tiles.shape == (0, 2)
    prompt = plan_for(Layout([0, 2], [2], tables, torch.arange(2)), 4)
    assert (prompt.decoding.numel(), prompt.longest) == (0, 0)


@pytest.mark.parametrize(
    ("programs", "longest", "splits"),
    [
        (8, 8192, 64),  # 432 programs fill 108 processors: 54 each, as a power of two
        (64, 8192, 8),
        (1024, 8192, 1),
        (8, 256, 2),  # no share below 128 tokens
        (8, 1, 1),
        (1, 1 << 20, MAX_SPLITS),
    ],
)
def test_sequences_are_split_until_the_device_is_full(
    programs: int, longest: int, splits: int
) -> None:
    assert num_splits(programs, longest, num_processors=108) == splits


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("head_dim", [16, 64, 80, 128, MAX_HEAD_DIM])
@pytest.mark.parametrize("group", [1, 3, 4, 8, 12])
def test_blocks_are_powers_of_two_that_fit_a_processor(
    group: int, head_dim: int, dtype: torch.dtype
) -> None:
    blocks = blocks_for(group, head_dim, dtype)
    sizes = (blocks.group, blocks.head_dim, blocks.keys, blocks.decode_rows, blocks.prefill_rows)
    assert all(size & (size - 1) == 0 for size in sizes)
    assert blocks.group >= group
    assert blocks.head_dim >= head_dim
    assert min(blocks.keys, blocks.decode_rows, blocks.head_dim, blocks.prefill_rows) >= 16
    assert blocks.tokens * blocks.group == blocks.prefill_rows
    keys_and_values = 4 * blocks.keys * blocks.head_dim * dtype.itemsize
    query = blocks.prefill_rows * blocks.head_dim * dtype.itemsize
    assert keys_and_values + query <= 99 << 10


def why_not(
    device: torch.device, dtype: torch.dtype = torch.bfloat16, head_dim: int = 64
) -> str | None:
    return Backend().supports(device=device, dtype=dtype, head_dim=head_dim)
