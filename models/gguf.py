"""The .gguf file format: header, metadata, tensors, and their values as float32.

Every length, count, type and offset is checked against the file's size before
anything is read or allocated, so that a truncated or lying file is refused with what
was seen and what was expected. Knows the container only: what the keys and tensors
of an architecture mean is in `gguf_config.py` and `gguf_weights.py`, the vocabulary in
`text/from_gguf.py`.

Format: the GGUF specification, versions 2 and 3, little endian. The `gguf` package
does the arithmetic of the quantized types.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from minimsg.errors import CheckpointError

Scalar: TypeAlias = int | float | bool | str
Value: TypeAlias = Scalar | list[Scalar]

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)
MAX_ARRAY: Final = 1 << 22  # elements of a metadata array; the largest vocabularies hold 2**18
MAX_AXES: Final = 4  # GGML_MAX_DIMS
MIN_ENTRY_BYTES: Final = 13  # a key of no letters, its type and a one-byte value

# GGUF value type -> struct format; 8 is a string, 9 an array
SCALARS: Final[Mapping[int, str]] = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
STRING: Final = 8
ARRAY: Final = 9


@dataclass(frozen=True)
class TensorType:
    """How values are stored: blocks of `block` values in `block_bytes` bytes."""

    name: str
    block: int
    block_bytes: int


# GGML type number -> layout (ggml.h, ggml-common.h)
TENSOR_TYPES: Final[Mapping[int, TensorType]] = {
    0: TensorType("F32", 1, 4),
    1: TensorType("F16", 1, 2),
    2: TensorType("Q4_0", 32, 18),
    3: TensorType("Q4_1", 32, 20),
    6: TensorType("Q5_0", 32, 22),
    7: TensorType("Q5_1", 32, 24),
    8: TensorType("Q8_0", 32, 34),
    12: TensorType("Q4_K", 256, 144),
    13: TensorType("Q5_K", 256, 176),
    14: TensorType("Q6_K", 256, 210),
    30: TensorType("BF16", 1, 2),
}


@dataclass(frozen=True)
class TensorInfo:
    """One tensor's place. Invariant: `start + num_bytes` lies within the file."""

    name: str
    shape: tuple[int, ...]  # outermost axis first, as torch counts them
    type: TensorType
    start: int  # bytes from the beginning of the file
    num_bytes: int


@dataclass(frozen=True)
class GGUF:
    """An opened file: its metadata and where its tensors lie."""

    path: Path
    metadata: Mapping[str, Value]
    tensors: Mapping[str, TensorInfo]

    @classmethod
    def open(cls, path: Path) -> GGUF:
        """Read and check everything but the weights.

        Raises:
            CheckpointError: the file breaks the format or does not hold what it says.
        """
        size = path.stat().st_size
        with path.open("rb") as file:
            cursor = _Cursor(path, file, size)
            num_tensors, num_entries = _read_header(cursor)
            metadata = _read_metadata(cursor, num_entries)
            tensors = _read_tensor_infos(cursor, num_tensors, _alignment(path, metadata))
        _refuse_overlap(path, tensors)
        return cls(path, metadata, {tensor.name: tensor for tensor in tensors})

    def dequantize(self, name: str) -> NDArray[np.float32]:
        """The values of a tensor, in its shape, exactly as the stored type defines them.

        Raises:
            CheckpointError: the file shrank since it was opened, or a value is not finite.
        """
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize

        info = self.tensors[name]
        raw = np.fromfile(self.path, dtype=np.uint8, count=info.num_bytes, offset=info.start)
        if raw.size != info.num_bytes:
            seen = f"tensor {name} has {raw.size:,} bytes"
            raise CheckpointError(self.path, seen, f"{info.num_bytes:,}")
        with np.errstate(invalid="ignore", over="ignore"):
            rows = raw.reshape(prod(info.shape[:-1]), -1)
            values = dequantize(rows, GGMLQuantizationType[info.type.name])
        if not np.isfinite(values).all():
            raise CheckpointError(self.path, f"tensor {name} holds NaN or infinity", "numbers")
        result: NDArray[np.float32] = values.reshape(info.shape)
        return result


@dataclass(frozen=True)
class _Cursor:
    """A read position that refuses to run past the end of the file."""

    path: Path
    file: BinaryIO
    size: int

    @property
    def left(self) -> int:
        return self.size - self.file.tell()

    def take(self, num_bytes: int, what: str) -> bytes:
        if num_bytes > self.left:
            raise self.error(f"{what} of {num_bytes:,} bytes", f"at most the {self.left:,} left")
        return self.file.read(num_bytes)

    def number(self, format: str, what: str) -> Scalar:
        value: Scalar = struct.unpack("<" + format, self.take(struct.calcsize(format), what))[0]
        return value

    def count(self, format: str, what: str) -> int:
        return int(self.number(format, what))

    def string(self, what: str) -> str:
        data = self.take(self.count("Q", f"the length of {what}"), what)
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise self.error(f"{what} is not UTF-8: {data[:40]!r}", "UTF-8") from None

    def error(self, seen: str, expected: str) -> CheckpointError:
        return CheckpointError(self.path, f"{seen} at byte {self.file.tell():,}", expected)


def _read_header(cursor: _Cursor) -> tuple[int, int]:
    """The numbers of tensors and of metadata entries."""
    magic = cursor.file.read(4)
    if magic != MAGIC:
        raise CheckpointError(cursor.path, f"it begins with {magic!r}", f"{MAGIC!r}")
    version = cursor.count("I", "the version")
    if version not in VERSIONS:
        raise cursor.error(f"version {version}", "2 or 3, little endian")
    num_tensors = cursor.count("Q", "the number of tensors")
    num_entries = cursor.count("Q", "the number of metadata entries")
    if (num_tensors + num_entries) * MIN_ENTRY_BYTES > cursor.left:
        seen = f"{num_tensors:,} tensors and {num_entries:,} metadata entries announced"
        raise cursor.error(seen, f"what fits into the {cursor.left:,} bytes left")
    return num_tensors, num_entries


def _read_metadata(cursor: _Cursor, num_entries: int) -> dict[str, Value]:
    metadata: dict[str, Value] = {}
    for _ in range(num_entries):
        key = cursor.string("a metadata key")
        if key in metadata:
            raise cursor.error(f"a second value of {key!r}", "one")
        metadata[key] = _read_value(cursor, key)
    return metadata


def _read_value(cursor: _Cursor, key: str) -> Value:
    kind = cursor.count("I", f"the type of {key}")
    if kind == STRING:
        return cursor.string(key)
    if kind == ARRAY:
        return _read_array(cursor, key)
    if kind not in SCALARS:
        raise cursor.error(f"value type {kind} of {key!r}", "0 to 12")
    return cursor.number(SCALARS[kind], key)


def _read_array(cursor: _Cursor, key: str) -> list[Scalar]:
    kind = cursor.count("I", f"the element type of {key}")
    count = cursor.count("Q", f"the length of {key}")
    if count > MAX_ARRAY:
        raise cursor.error(f"{count:,} elements in {key!r}", f"at most {MAX_ARRAY:,}")
    if kind == STRING:
        return [cursor.string(f"element {i} of {key}") for i in range(count)]
    if kind not in SCALARS:
        raise cursor.error(f"element type {kind} of {key!r}", "a number, truth value or string")
    format = f"<{count}{SCALARS[kind]}"
    return list(struct.unpack(format, cursor.take(struct.calcsize(format), key)))


def _alignment(path: Path, metadata: Mapping[str, Value]) -> int:
    """The unit of tensor offsets in bytes; 32 unless the file says otherwise."""
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 8 or alignment % 8:
        raise CheckpointError(path, f"general.alignment is {alignment!r}", "a multiple of 8")
    return alignment


def _read_tensor_infos(cursor: _Cursor, num_tensors: int, alignment: int) -> list[TensorInfo]:
    described = [_read_tensor_info(cursor) for _ in range(num_tensors)]
    data_start = -(-cursor.file.tell() // alignment) * alignment
    names: set[str] = set()
    infos: list[TensorInfo] = []
    for name, shape, type, offset in described:
        num_bytes = prod(shape) // type.block * type.block_bytes
        where = f"tensor {name} ({type.name}, {list(shape)}, {num_bytes:,} bytes at {offset:,})"
        if name in names:
            raise CheckpointError(cursor.path, f"a second tensor {name}", "one")
        if offset % alignment:
            raise CheckpointError(cursor.path, where, f"an offset that {alignment} divides")
        if data_start + offset + num_bytes > cursor.size:
            room = max(cursor.size - data_start, 0)
            raise CheckpointError(cursor.path, where, f"an end within the {room:,} bytes of data")
        names.add(name)
        infos.append(TensorInfo(name, shape, type, data_start + offset, num_bytes))
    return infos


def _read_tensor_info(cursor: _Cursor) -> tuple[str, tuple[int, ...], TensorType, int]:
    """Name, shape, type, and offset in the data section."""
    name = cursor.string("a tensor name")
    num_axes = cursor.count("I", f"the number of axes of {name}")
    if not 1 <= num_axes <= MAX_AXES:
        raise cursor.error(f"{num_axes} axes of tensor {name}", f"1 to {MAX_AXES}")
    # stored innermost first
    shape = tuple(cursor.count("Q", f"the shape of {name}") for _ in range(num_axes))[::-1]
    kind = cursor.count("I", f"the type of tensor {name}")
    if kind not in TENSOR_TYPES:
        known = ", ".join(type.name for type in TENSOR_TYPES.values())
        raise cursor.error(f"tensor {name} of type number {kind}", f"one of {known}")
    type = TENSOR_TYPES[kind]
    if 0 in shape or shape[-1] % type.block:
        expected = f"positive sizes, the last a multiple of {type.block}"
        raise cursor.error(f"tensor {name} of type {type.name} and shape {list(shape)}", expected)
    return name, shape, type, cursor.count("Q", f"the offset of {name}")


def _refuse_overlap(path: Path, tensors: list[TensorInfo]) -> None:
    ordered = sorted(tensors, key=lambda tensor: tensor.start)
    for before, after in pairwise(ordered):
        if before.start + before.num_bytes > after.start:
            seen = f"tensors {before.name} and {after.name} overlap"
            raise CheckpointError(path, seen, "every byte in one tensor at most")
