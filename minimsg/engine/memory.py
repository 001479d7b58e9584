"""How many pages the KV cache gets and how long the window is, from settings and memory.

Knows bytes and devices. The rule that everything above relies on is made here: the
pool always holds one full window, so a sequence that is alone can always finish.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from minimsg.config import EngineConfig
from minimsg.engine.cache import page_bytes
from minimsg.errors import ConfigError
from minimsg.models.contract import PagedSpec

logger = logging.getLogger("minimsg")

UNITS = {"": 1, "b": 1}
UNITS |= {f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", start=1)}
UNITS |= {f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", start=1)}
UNKNOWN_FREE_BYTES = 4 << 30  # where the system does not tell; lazily used


@dataclass(frozen=True)
class CachePlan:
    """What was decided: the size of the pool and the window that it holds."""

    num_pages: int
    max_context: int


def plan_cache(
    config: EngineConfig,
    specs: Sequence[PagedSpec],
    *,
    model_context: int,
    dtype: torch.dtype,
    device: torch.device,
) -> CachePlan:
    """The plan for a model whose own window is `model_context` tokens.

    Raises `ConfigError` on settings that cannot be met; a window that does not fit the
    memory is lowered, which is logged.
    """
    if min(config.max_step_tokens, config.max_sequences) < 1:
        raise ConfigError("max_step_tokens and max_sequences must be at least 1")
    if not 0 <= config.pin_budget <= 1:  # nor is NaN
        raise ConfigError(f"pin_budget is {config.pin_budget}; it is a share, 0 to 1")
    window = requested_window(config.max_context, model_context)
    pages_a_window = -(-window // config.page_size)
    if config.num_pages is None:
        num_bytes = parse_memory(config.kv_memory, free_bytes(device))
        num_pages = num_bytes // page_bytes(specs, config.page_size, dtype)
        setting = f"kv_memory {config.kv_memory} holds {num_pages} pages"
    else:
        num_pages, setting = config.num_pages, f"num_pages is {config.num_pages}"
    if num_pages < 1:
        raise ConfigError(f"{setting}; at least one of {config.page_size} tokens is needed")
    num_pages = min(num_pages, config.max_sequences * pages_a_window)
    if num_pages < pages_a_window:
        lowered = num_pages * config.page_size
        logger.warning("%s: the window is lowered from %d to %d tokens", setting, window, lowered)
        window = lowered
    logger.info("KV cache of %d pages of %d tokens, window %d", num_pages, config.page_size, window)
    return CachePlan(num_pages, window)


def requested_window(max_context: int | None, model_context: int) -> int:
    """The window asked for, in tokens, at most the model's own."""
    if max_context is None:
        return model_context
    if not 1 <= max_context <= model_context:
        raise ConfigError(f"max_context is {max_context}; the model takes 1 to {model_context}")
    return max_context


def parse_memory(text: str, free: int) -> int:
    """Bytes of `"2GiB"`, `"500MB"`, `"1e9"`, or of a share of the free bytes, `"25%"`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e\d+)?)\s*(%|[a-z]*)\s*", text.lower())
    number, unit = (float(match[1]), match[2]) if match else (0.0, "")
    if unit == "%" and 0 < number <= 100:
        return int(free * number / 100)
    if unit in UNITS and 0 < number * UNITS[unit] < 2**60:
        return int(number * UNITS[unit])
    raise ConfigError(f"kv_memory is {text!r}; write bytes (2GiB, 500MB, 1e9) or a share (25%)")


def free_bytes(device: torch.device) -> int:
    """Memory that the cache could take on a device, in bytes."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
    return min(system_free_bytes(), container_free_bytes())


def system_free_bytes() -> int:
    """Main memory that can be had without swapping, file caches included."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # not Linux
    names = getattr(os, "sysconf_names", {})
    pages = next((name for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES") if name in names), None)
    if pages is None:
        return UNKNOWN_FREE_BYTES
    return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")


def container_free_bytes(folder: Path = Path("/sys/fs/cgroup")) -> int:
    """What the container's limit (cgroup v2) leaves; no bound where there is none."""
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
    except OSError:
        return sys.maxsize
    return sys.maxsize if limit == "max" else max(0, int(limit) - used)
