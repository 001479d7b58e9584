"""The page's modules in Node, where it is there: what a function of one makes of some values."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from minimsg.inspector.files import page_files

ASK = """
const [module, name] = process.argv.slice(2);
const { [name]: asked } = await import(module);
let text = "";
for await (const part of process.stdin) text += part;
process.stdout.write(JSON.stringify(JSON.parse(text).map((values) => asked(...values))));
"""


def ask(folder: Path, module: str, function: str, values: list[list[Any]]) -> list[Any]:
    """What `function` of `module` returns for each list of arguments. Skips without Node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is missing")
    (folder / "package.json").write_text('{"type": "module"}')
    for name, data in page_files().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "ask.js").write_text(ASK)
    done = subprocess.run(
        [node, "ask.js", f"./{module}", function],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers
