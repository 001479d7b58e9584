"""A stand-in for `llama-bench` and `llama-batched-bench`: notes its flags, prints their JSON.

The forms are those that llama.cpp 0c1e570 prints: a list of one object, a log around a line.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

PREFILL_SPEED, DECODE_SPEED = 100.0, 10.0


def main(program: Path, flags: list[str]) -> None:
    with (program.parent / "asked.jsonl").open("a") as asked:
        asked.write(json.dumps({"program": program.name, "flags": flags}) + "\n")
    quiet = os.environ["DO_NOT_TRACK"]
    if "batched" in program.name:
        print("\nmain: some log\n")
        print(json.dumps({"pp": 256, "tg": 16, "pl": 1, "speed_tg": DECODE_SPEED, "t": 1.5}))
    else:
        facts = {"build_commit": "abc1234", "n_threads": 1, "quiet": quiet}
        print(json.dumps([facts | {"avg_ts": PREFILL_SPEED, "samples_ts": [PREFILL_SPEED]}]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
