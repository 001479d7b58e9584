"""Which kernel is taken, and what is said of those that are not."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest
import torch

from minimsg.errors import KernelUnavailable
from minimsg.kernels import choose, cpu_native

CPU = torch.device("cpu")
CUDA = torch.device("cuda")


@pytest.fixture(autouse=True)
def no_kernel_is_forced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("MINIMSG_KERNEL", raising=False)
    yield
    cpu_native.library.cache_clear()


def test_the_compiled_kernel_is_taken_on_a_cpu() -> None:
    assert choose(device=CPU, dtype=torch.bfloat16, head_dim=64).name == "cpu_native"


@pytest.mark.parametrize(
    ("compiler", "why"),
    [
        ("no-such-compiler", r"there is no C compiler \(no-such-compiler\)"),
        ("false", "false cannot compile it: exit status 1"),
    ],
)
def test_stock_torch_is_taken_where_nothing_can_be_compiled(
    compiler: str, why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CC", compiler)
    cpu_native.library.cache_clear()
    caplog.set_level(logging.INFO, "minimsg.kernels")
    assert choose(device=CPU, dtype=torch.bfloat16, head_dim=64).name == "cpu"
    assert re.search(f"kernel cpu_native passed over: {why}", caplog.text)


def test_heads_of_no_whole_vectors_are_left_to_stock_torch() -> None:
    assert choose(device=CPU, dtype=torch.float32, head_dim=72).name == "cpu"


def test_int8_has_no_second_choice_and_says_why() -> None:
    """A number format that was asked for by name is not replaced by another."""
    with pytest.raises(
        KernelUnavailable, match=r"runs on cpu in int8\. kernel cpu_native: a head is 72"
    ):
        choose(device=CPU, dtype=torch.int8, head_dim=72)


def test_only_kernels_whose_rows_are_equal_are_deterministic() -> None:
    for head_dim, name in ((64, "cpu_native"), (72, "tiled")):
        chosen = choose(device=CPU, dtype=torch.float32, head_dim=head_dim, deterministic=True)
        assert chosen.name == name
    with pytest.raises(
        KernelUnavailable, match="depend on what else runs; cpu_native and tiled can"
    ):
        choose(device=CPU, dtype=torch.float32, head_dim=64, name="cpu", deterministic=True)


def test_a_kernel_that_cannot_run_is_passed_over_with_a_logged_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "minimsg.kernels")
    assert choose(device=CUDA, dtype=torch.bfloat16, head_dim=64).name == "reference"
    assert "kernel cpu passed over: it runs on the CPU only, not on cuda" in caplog.text


def test_float64_is_left_to_the_reference() -> None:
    assert choose(device=CPU, dtype=torch.float64, head_dim=64).name == "reference"


def test_the_environment_forces_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIMSG_KERNEL", "reference")
    assert choose(device=CPU, dtype=torch.float32, head_dim=64).name == "reference"


def test_a_name_is_stronger_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIMSG_KERNEL", "reference")
    assert choose(device=CPU, dtype=torch.float32, head_dim=64, name="cpu").name == "cpu"


def test_a_forced_kernel_that_cannot_run_is_an_error_with_the_reason() -> None:
    with pytest.raises(
        KernelUnavailable, match=r"runs on cuda in float32\. kernel cpu: it runs on the CPU only"
    ):
        choose(device=CUDA, dtype=torch.float32, head_dim=64, name="cpu")


def test_an_unknown_kernel_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(KernelUnavailable, match="'warp'; there are cpu_native, cpu, "):
        choose(device=CPU, dtype=torch.float32, head_dim=64, name="warp")


def test_each_engine_gets_a_backend_of_its_own() -> None:
    """Scratch is not shared between threads."""
    first, second = (choose(device=CPU, dtype=torch.float32, head_dim=64) for _ in range(2))
    assert first is not second
