"""Settings and free memory to pages and window; byte counts by hand."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch

from minimsg.config import EngineConfig
from minimsg.engine.cache import PagedKVCache, page_bytes
from minimsg.engine.memory import (
    CachePlan,
    container_free_bytes,
    parse_memory,
    plan_cache,
    system_free_bytes,
)
from minimsg.errors import ConfigError
from minimsg.models.contract import PagedSpec

SPECS = [PagedSpec(num_kv_heads=3, head_dim=64)] * 30
CPU = torch.device("cpu")


def plan(config: EngineConfig, model_context: int = 2048) -> CachePlan:
    return plan_cache(config, SPECS, model_context=model_context, dtype=torch.float32, device=CPU)


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [
        ("25%", 250),
        ("100%", 1000),
        ("12.5 %", 125),
        ("2GiB", 2 << 30),
        ("500MB", 500_000_000),
        ("500mb", 500_000_000),
        ("1.5 kib", 1536),
        ("1e9", 1_000_000_000),
        ("77", 77),
        ("77B", 77),
    ],
)
def test_memory_is_bytes_or_a_share_of_what_is_free(text: str, num_bytes: int) -> None:
    assert parse_memory(text, free=1000) == num_bytes


@pytest.mark.parametrize("text", ["", "0", "0%", "101%", "-1GB", "2 G B", "lots", "1e99", "nan"])
def test_memory_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="kv_memory is"):
        parse_memory(text, free=1000)


def test_a_page_costs_what_its_tensors_take() -> None:
    # 2 tensors x 30 layers x 16 slots x 3 heads x 64 numbers x 4 bytes
    assert page_bytes(SPECS, 16, torch.float32) == 737_280
    cache = PagedKVCache(SPECS, num_pages=2, page_size=16, dtype=torch.float32, device=CPU)
    assert cache.num_bytes == 2 * 737_280
    assert cache.layers[29].value.shape == (2, 16, 3, 64)


def test_memory_buys_whole_pages() -> None:
    config = EngineConfig(kv_memory=str(200 * 737_280 - 1))
    assert plan(config) == CachePlan(num_pages=199, max_context=2048)


def test_there_are_never_more_pages_than_full_windows_of_all_sequences() -> None:
    config = EngineConfig(kv_memory="1000GiB", max_sequences=3)
    assert plan(config) == CachePlan(num_pages=3 * 128, max_context=2048)


def test_a_window_that_does_not_fit_is_lowered_and_logged_with_both_numbers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "minimsg"):
        assert plan(EngineConfig(num_pages=8)) == CachePlan(num_pages=8, max_context=128)
    assert "from 2048 to 128 tokens" in caplog.text


def test_a_window_that_ends_inside_a_page_gets_that_page() -> None:
    config = EngineConfig(max_context=17, max_sequences=2, num_pages=99)
    assert plan(config) == CachePlan(num_pages=4, max_context=17)


@pytest.mark.parametrize(
    "config",
    [
        EngineConfig(max_context=2049),
        EngineConfig(max_context=0),
        EngineConfig(num_pages=0),
        EngineConfig(kv_memory="700kB"),
        EngineConfig(max_step_tokens=0),
        EngineConfig(max_sequences=0),
    ],
)
def test_settings_that_cannot_be_met_are_refused(config: EngineConfig) -> None:
    with pytest.raises(ConfigError):
        plan(config)


def test_the_systems_free_memory_is_a_sensible_number() -> None:
    assert 1 << 20 < system_free_bytes() < 1 << 50


def test_a_containers_limit_counts(tmp_path: Path) -> None:
    no_limit = container_free_bytes(tmp_path)
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("300\n")
    assert container_free_bytes(tmp_path) == 700
    (tmp_path / "memory.max").write_text("max\n")
    assert container_free_bytes(tmp_path) == no_limit > 1 << 60
