"""The safetensors format is read and written as the `safetensors` library does."""

from __future__ import annotations

import json
import struct
import tracemalloc
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from minimsg.errors import CheckpointError
from minimsg.models.tensors import TensorHeader, read_header, write_safetensors

TENSORS = {
    "a": torch.arange(6, dtype=torch.float32).reshape(2, 3),
    "b.c": torch.ones(5, dtype=torch.bfloat16),
    "scalar": torch.tensor(3, dtype=torch.int64),
    "empty": torch.empty(0, 4, dtype=torch.float16),
}
HEADERS = {
    "a": TensorHeader("F32", (2, 3)),
    "b.c": TensorHeader("BF16", (5,)),
    "scalar": TensorHeader("I64", ()),
    "empty": TensorHeader("F16", (0, 4)),
}


def test_the_librarys_file_is_read(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "m.safetensors", metadata={"format": "pt"})
    assert read_header(tmp_path / "m.safetensors") == HEADERS


def test_the_library_reads_our_file(tmp_path: Path) -> None:
    file = tmp_path / "m.safetensors"
    raw = {name: tensor.contiguous().view(-1) for name, tensor in TENSORS.items()}
    data = [(name, memoryview(t.view(torch.uint8).numpy().tobytes())) for name, t in raw.items()]
    write_safetensors(file, HEADERS, data)
    assert read_header(file) == HEADERS
    loaded = load_file(file)
    assert loaded.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert torch.equal(loaded[name], tensor)


def file_of(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(begin: int, end: int, shape: object = (2,), dtype: object = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


LIES: dict[str, tuple[bytes, str]] = {
    "an empty file": (b"", "in a file of 0"),
    "a header of 2**63 bytes": (file_of({}, length=2**63), "9,223,372,036,854,775,808"),
    "a header past the end": (file_of({}, length=3), "a header of 3 bytes in a file of 10"),
    "a header that is no JSON": (file_of(b"{]"), "a broken header"),
    "a header that is no object": (file_of([1]), "a broken header"),
    "a header nested too deep": (file_of(b"[" * 100_000), "a broken header"),
    "a name twice": (
        file_of(b'{"a": %b, "a": %b}' % ((json.dumps(entry(0, 8)).encode(),) * 2), bytes(8)),
        "a name occurs twice",
    ),
    "an end past the file": (file_of({"a": entry(0, 8)}, bytes(7)), "7 bytes of data; expected 8"),
    "bytes that belong to nothing": (file_of({"a": entry(0, 8)}, bytes(9)), "9 bytes of data"),
    "a size that is not the shape's": (file_of({"a": entry(0, 4)}, bytes(4)), "8 bytes from 0"),
    "a shape of 2**80 values": (
        file_of({"a": entry(0, 8, shape=[2**40, 2**40])}, bytes(8)),
        "tensor a at bytes 0 to 8",
    ),
    "tensors on top of each other": (
        file_of({"a": entry(0, 8), "b": entry(4, 12)}, bytes(12)),
        "tensor b at bytes 4 to 12",
    ),
    "a gap": (file_of({"a": entry(0, 8), "b": entry(12, 20)}, bytes(20)), "8 bytes from 8"),
    "a negative offset": (file_of({"a": entry(-8, 0)}), "tensor a at bytes -8 to 0"),
    "a negative axis": (file_of({"a": entry(0, 8, shape=[-2])}, bytes(8)), r"shape \[-2\]"),
    "an axis that is no integer": (file_of({"a": entry(0, 8, shape=[True])}), r"shape \[True\]"),
    "an unknown type": (file_of({"a": entry(0, 8, dtype="F31")}, bytes(8)), "dtype 'F31'"),
    "an entry without a type": (file_of({"a": {"shape": [1]}}), "a broken header"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lying_file_is_refused_with_what_was_seen(lie: str, tmp_path: Path) -> None:
    data, words = LIES[lie]
    file = tmp_path / "m.safetensors"
    file.write_bytes(data)
    tracemalloc.start()
    with pytest.raises(CheckpointError, match=words) as caught:
        read_header(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.file == str(file)
    assert peak < 4 << 20
