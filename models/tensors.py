"""The safetensors format: a header read without its weights, a file written as a stream.

Only one tensor is in memory while a file is written, and nothing but the header when
one is looked at, so neither torch nor the memory for a model is needed. Offsets are
checked against the file's size before they are believed.

Format: 8 bytes of header length, little endian; a JSON object name -> dtype, shape,
data_offsets; the data. Source: the safetensors README.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Final

from minimsg.errors import CheckpointError

MAX_HEADER_BYTES: Final = 100_000_000  # safetensors' own bound
ITEM_BYTES: Final = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}  # fmt: skip


@dataclass(frozen=True)
class TensorHeader:
    """One tensor of a file: its type and shape."""

    dtype: str  # as the format spells it: F32, BF16 ...
    shape: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        return prod(self.shape) * ITEM_BYTES[self.dtype]


def read_header(file: Path) -> dict[str, TensorHeader]:
    """Names, types and shapes of a file's tensors.

    Raises:
        CheckpointError: the header is broken, or the data are not exactly what it says.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else -1
        if not 2 <= length <= min(size - 8, MAX_HEADER_BYTES):
            seen = f"a header of {length:,} bytes in a file of {size:,}"
            raise CheckpointError(file, seen, f"2 to {MAX_HEADER_BYTES:,}, within the file")
        text = stream.read(length)
    try:
        entries = json.loads(text, object_pairs_hook=_refuse_duplicates)
        entries.pop("__metadata__", None)
        places = {name: _read_entry(entry) for name, entry in entries.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            file, f"a broken header ({error!s:.80})", "names and offsets"
        ) from None
    _refuse_gaps(file, places, size - 8 - length)
    return {name: header for name, (header, _, _) in places.items()}


def write_safetensors(
    file: Path, headers: Mapping[str, TensorHeader], data: Iterable[tuple[str, memoryview]]
) -> None:
    """Write the tensors of `data`, which come in the order of `headers`, each as its raw bytes."""
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, header in headers.items():
        ends = [offset, offset := offset + header.num_bytes]
        entries[name] = {"dtype": header.dtype, "shape": header.shape, "data_offsets": ends}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data begin at a multiple of 8
    with file.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for (name, header), (given, values) in zip(headers.items(), data, strict=True):
            assert (name, header.num_bytes) == (given, values.nbytes)
            stream.write(values)


def _refuse_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a name occurs twice")
    return entries


def _read_entry(entry: Mapping[str, object]) -> tuple[TensorHeader, int, int]:
    dtype, shape, ends = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or not all(type(axis) is int and axis >= 0 for axis in shape):
        raise ValueError(f"shape {shape!r}")
    if not isinstance(ends, list) or not all(type(end) is int for end in ends) or len(ends) != 2:
        raise ValueError(f"data_offsets {ends!r}")
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        raise ValueError(f"dtype {dtype!r}")
    return TensorHeader(dtype, tuple(shape)), ends[0], ends[1]


def _refuse_gaps(
    file: Path, places: Mapping[str, tuple[TensorHeader, int, int]], data_bytes: int
) -> None:
    """Tensors must follow each other without gap or overlap and end where the file ends."""
    position = 0
    for name, (header, begin, end) in sorted(places.items(), key=lambda item: item[1][1:]):
        if begin != position or end - begin != header.num_bytes:
            seen = f"tensor {name} at bytes {begin:,} to {end:,} of the data"
            raise CheckpointError(file, seen, f"{header.num_bytes:,} bytes from {position:,}")
        position = end
    if position != data_bytes:
        raise CheckpointError(file, f"{data_bytes:,} bytes of data", f"{position:,}")
