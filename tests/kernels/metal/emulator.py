"""A stand-in for `torch.mps.compile_shader`: compiles a shader with g++ and runs it on the CPU.

Knows the part of Metal's syntax that names a kernel's parameters, and how torch binds
arguments (a tensor by its address, whatever its strides; a float as 32 bits), and refuses
what a GPU would silently misread. The language is `metal_stdlib`, the threads `fibres.h`.
"""

from __future__ import annotations

import ctypes
import hashlib
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

HERE = Path(__file__).parent
FLAGS = ["-std=c++17", "-O1", "-shared", "-fPIC", "-w"]
FLAGS += ["-U_FORTIFY_SOURCE"]  # fibres jump from stack to stack, which it takes for an attack
FLAGS += ["-fno-gnu-unique"]  # each shader has fibres of its own
LANES, MAX_THREADS = 32, 1024
DTYPES = {"float": torch.float32, "half": torch.float16, "bfloat": torch.bfloat16}

POSITIONS = {
    "threadgroup_position_in_grid": "emulated::group",
    "threads_per_grid": "emulated::grid",
    "thread_position_in_grid": "emulated::position_in_grid()",
    "thread_index_in_threadgroup": "emulated::current",
    "simdgroup_index_in_threadgroup": "emulated::current / emulated::WIDTH",
    "thread_index_in_simdgroup": "emulated::current % emulated::WIDTH",
}


class ShaderError(Exception):
    """A kernel did what would go wrong on a GPU, or was called in such a way."""


def why_not() -> str | None:
    """Why shaders cannot be emulated here; None if they can."""
    if sys.platform != "linux":
        return "the emulation needs Linux (ucontext, sections of ELF)"
    return None if shutil.which("g++") else "no g++ is installed"


Order = Callable[[int], list[int]]  # in which order so many simdgroups, or lanes, are run


def forward(count: int) -> list[int]:
    return list(range(count))


def backward(count: int) -> list[int]:
    return list(reversed(range(count)))


def shuffled(count: int) -> list[int]:
    return random.Random(count).sample(range(count), count)


@dataclass
class Emulator:
    """Compiled shaders in `folder`, by their text. The rest may be changed between calls."""

    folder: Path
    flags: tuple[str, ...] = ()  # of the compiler, beyond FLAGS
    order: Order = forward
    removed_line: int = 0  # of the source: a barrier there is passed over
    libraries: dict[str, Library] = field(default_factory=dict)

    def compile_shader(self, source: str) -> Library:
        """As `torch.mps.compile_shader`; the same text is compiled once."""
        if source not in self.libraries:
            self.libraries[source] = Library(source, self)
        return self.libraries[source]


@dataclass(frozen=True)
class Parameter:
    """One buffer of a kernel: `device const half* query [[buffer(0)]]`."""

    type: str
    is_pointer: bool

    def check(self, argument: Tensor | float, dtypes: dict[str, torch.dtype]) -> None:
        """Refuse what torch would bind to it as other bits than the kernel reads."""
        wanted = dtypes.get(self.type.split()[-1], torch.int32)
        if isinstance(argument, Tensor):
            if argument.dtype != wanted or not argument.is_contiguous() or not argument.numel():
                raise ShaderError(f"{self.type} was given {argument.dtype} {argument.shape}")
        elif type(argument) is not float or self.is_pointer or wanted != torch.float32:
            raise ShaderError(f"{self.type} was given {argument!r}")


class Library:
    """The kernels of one shader, each an attribute."""

    def __init__(self, source: str, emulator: Emulator) -> None:
        source.encode("ascii")  # torch reads no more
        element = re.search(r"#define ELEMENT (\w+)", source)
        self._dtypes = DTYPES | ({"ELEMENT": DTYPES[element[1]]} if element else {})
        self._emulator = emulator
        self._parameters, drivers = {}, []
        for name, text in re.findall(r"^kernel void (\w+)\((.*?)\)\s*\{", source, re.M | re.S):
            self._parameters[name], driver = _driver(name, text)
            drivers.append(driver)
        self._compiled = _compile(source + "".join(drivers), emulator.folder, emulator.flags)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in self._parameters:
            raise AttributeError(name)

        def call(*arguments: Tensor | float, threads: list[int], group_size: list[int]) -> None:
            self._run(name, arguments, threads, group_size)

        return call

    def _run(
        self, name: str, arguments: tuple[Tensor | float, ...], threads: list[int], size: list[int]
    ) -> None:
        for parameter, argument in zip(self._parameters[name], arguments, strict=True):
            parameter.check(argument, self._dtypes)
        if len(threads) != 2 or len(size) != 2 or size[0] * size[1] > MAX_THREADS:
            raise ShaderError(f"groups of {size} in a grid of {threads}")
        floats = [ctypes.c_float(a) for a in arguments if not isinstance(a, Tensor)]
        rest = iter(floats)
        addresses = [
            a.data_ptr() if isinstance(a, Tensor) else ctypes.addressof(next(rest))
            for a in arguments
        ]
        num_simdgroups = -(-size[0] * size[1] // LANES)
        dispatch = self._compiled[f"run_{name}"]
        dispatch.restype = ctypes.c_char_p
        failure = dispatch(
            self._emulator.removed_line,
            (ctypes.c_void_p * len(addresses))(*addresses),
            *(_numbers(each) for each in (threads, size)),
            *(_numbers(self._emulator.order(count)) for count in (num_simdgroups, LANES)),
        )
        if failure:
            raise ShaderError(f"{name}: {failure.decode()}")


DRIVER = """
extern "C" const char* run_{name}(int removed_line, void** buffers, const unsigned* grid,
                                  const unsigned* size, const unsigned* simdgroups,
                                  const unsigned* lanes) {{
    emulated::removed_line = removed_line;
    auto body = [](void** buffers) {{ {name}({passed}); }};
    return emulated::dispatch(
        body, buffers, {{grid[0], grid[1]}}, {{size[0], size[1]}}, {{simdgroups, lanes}});
}}
"""


def _driver(name: str, parameters: str) -> tuple[list[Parameter], str]:
    """What a kernel takes, and C++ that calls it with the buffers and the thread's position."""
    buffers: list[Parameter] = []
    passed = []
    for declared, attribute in re.findall(r"([^,\[\]]+?)\s*\[\[(.+?)\]\]", parameters):
        if attribute in POSITIONS:
            passed.append(POSITIONS[attribute])
            continue
        type_name = declared.rpartition(" ")[0].strip()
        if attribute != f"buffer({len(buffers)})":  # torch binds arguments in their order
            raise ShaderError(f"{name}: {attribute} is no position, nor the next buffer")
        is_pointer, slot = type_name.endswith("*"), f"buffers[{len(buffers)}]"
        passed.append(f"({type_name}){slot}" if is_pointer else f"*({type_name[:-1]}*){slot}")
        buffers.append(Parameter(type_name.rstrip("*&"), is_pointer))
    return buffers, DRIVER.format(name=name, passed=", ".join(passed))


def _compile(source: str, folder: Path, flags: tuple[str, ...]) -> ctypes.CDLL:
    stem = folder / hashlib.sha256(source.encode()).hexdigest()[:16]
    text, library = stem.with_suffix(".cpp"), stem.with_suffix(".so")
    text.write_text(source)
    command: list[str | Path] = ["g++", *FLAGS, *flags, f"-I{HERE}", text, "-o", library]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ShaderError(done.stderr)
    return ctypes.CDLL(str(library))


def _numbers(numbers: list[int]) -> ctypes.Array[ctypes.c_uint]:
    return (ctypes.c_uint * len(numbers))(*numbers)
