"""Where angles come from a table, and where they must not."""

from __future__ import annotations

import torch

from minimsg.models.rope import Rotary
from minimsg.models.rope_config import DefaultRope


def test_only_a_cpu_has_a_table_for_a_captured_graph_could_not_follow_it() -> None:
    rotary = Rotary(DefaultRope(theta=10000.0), head_dim=16)
    for device, num_positions in (("meta", 0), ("cpu", 8192)):
        positions = torch.zeros(3, dtype=torch.int64, device=device)
        assert rotary(positions, torch.float32, reach=5000).cos.shape == (3, 1, 16)
        assert len(rotary._cos) == num_positions
        assert len(rotary._sin) == num_positions
        rotary = Rotary(DefaultRope(theta=10000.0), head_dim=16)
