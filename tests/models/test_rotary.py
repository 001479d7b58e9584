"""The table of angles: what else holds it while it grows."""

from __future__ import annotations

import weakref

import torch

from minimsg.models.rope import Rotary
from minimsg.models.rope_config import DefaultRope


def test_angles_that_a_graph_reads_stay_in_memory_when_longer_sequences_come() -> None:
    rotary = Rotary(DefaultRope(theta=10000.0), head_dim=16)
    at_start, read = torch.zeros(1, dtype=torch.int64), []
    for reach in (1, 5000, 9000):
        rotary(at_start, torch.float32, reach)
        read.append(weakref.ref(rotary._cos))
    assert all(table() is not None for table in read)
