"""What is said of checked steps: the layer that is furthest off; no number is the worst."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .node import ask

SAID = """
import { checksOf, sentence } from "./checked.js";
export const said = (errors) => {
  const checks = checksOf(errors.map((layer_errors) => ({ layer_errors })));
  return checks && sentence(checks);
};
"""
CASES: list[tuple[list[Any], str | None]] = [
    ([], None),
    ([None, None], None),
    (
        [None, [1e-7, 2e-3, 0]],
        "1 step checked: largest error 2.0e-3 (layer 1) in the last of them, "
        "2.0e-3 (layer 1) in all.",
    ),
    (
        [[1e-7, 2e-3, 0], None, [3.3e-6, 0, 0], None],
        "2 steps checked: largest error 3.3e-6 (layer 0) in the last of them, "
        "2.0e-3 (layer 1) in all.",
    ),
    (
        [[1.0, None], [0, 0]],
        "2 steps checked: largest error 0 in the last of them, no number (layer 1) in all.",
    ),
]


def test_the_layer_furthest_off_is_named(tmp_path: Path) -> None:
    (tmp_path / "said.js").write_text(SAID)
    said = ask(tmp_path, "said.js", "said", [[errors] for errors, _ in CASES])
    assert said == [expected for _, expected in CASES]
