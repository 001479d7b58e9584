"""The C file: each machine's way through it, equal bits in every batch, and its compilation."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import Tensor

from minimsg.errors import KernelUnavailable
from minimsg.kernels.compile import FLAGS, find_compiler, load_library
from minimsg.kernels.contract import HeadNorm, Layout, Pages, Rotation
from minimsg.kernels.cpu_native import Backend, library

from .cases import Case, Step, build
from .test_contract import CASES, TOLERANCE
from .test_linear import a_case, dequantized, in_float64, run
from .test_tiled import CASES as PROMPTS
from .test_tiled import rows_of, starts

CPU = torch.device("cpu")
QUICKLY = ("-O1", "-std=gnu11", "-fno-math-errno", "-DUNROLL=")  # compiled
PLAIN = (*QUICKLY, "-DMINIMSG_PLAIN")
WAYS = {
    "native": FLAGS,
    "plain C, 4 lanes": (*PLAIN, "-DLANES=4"),
    "any machine of this kind": QUICKLY,  # x86-64: SSE2
    "16 lanes, biased bytes as VNNI has them": (*PLAIN, "-DLANES=16", "-DMINIMSG_BIASED"),
}
PROMPTS = {name: case for name, case in PROMPTS.items() if case.head_dim % 16 == 0} | {
    "heads of 80, long": Case((300,), (300,), 4, 1, 80)
}


@pytest.fixture(params=list(WAYS.values()), ids=list(WAYS))
def backend(request: pytest.FixtureRequest) -> Backend:
    return made(request.param)


def made(flags: tuple[str, ...] = FLAGS) -> Backend:
    backend = Backend(flags)
    why_not = backend.supports(device=CPU, dtype=torch.float32, head_dim=64)
    if why_not is not None:
        pytest.skip(why_not)
    return backend


def attend(backend: Backend, step: Step, case: Case) -> Tensor:
    return backend.attention(
        step.query, step.key, step.value, step.pages, step.layout,
        scale=case.scale, window=case.window,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_every_machines_way_attends_as_float64_does(backend: Backend, dtype: torch.dtype) -> None:
    for name, case in CASES.items():
        step = build(case, dtype)
        error = (attend(backend, step, case).double() - step.expected).abs().max()
        assert error <= TOLERANCE[dtype], name


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8], ids=str)
def test_every_machines_way_multiplies_as_float64_does(
    backend: Backend, dtype: torch.dtype
) -> None:
    is_int8 = dtype is torch.int8
    for rows in (1, 6, 17):
        case = a_case(96, 50, rows, is_full=True, is_gated=True)
        weight = dequantized(case.weight) if is_int8 else case.weight.to(dtype)
        expected = in_float64(case, weight, is_rounded=is_int8)
        error = (run(backend, case, dtype).double() - expected).abs()
        assert error.quantile(0.9) < 1e-5
        assert error.max() < (2e-2 if is_int8 else 1e-5)  # see test_linear.py


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", PROMPTS.values(), ids=PROMPTS)
def test_chunks_of_any_length_give_the_bits_of_whole_prompts(
    backend: Backend, case: Case, dtype: torch.dtype
) -> None:
    """One token at a time too: what decoding sees is what a prompt has left."""
    step = build(case, dtype)
    whole = attend(backend, step, case)
    dirty = Pages(*(torch.full_like(step.pages.key, torch.nan) for _ in "kv"))
    numbers = random.Random(1)
    done = [0] * len(case.contexts)
    while any(count < context for count, context in zip(done, case.contexts, strict=True)):
        new = [
            min(numbers.choice((0, 1, 1, 5, 16, 37)), context - count)
            for count, context in zip(done, case.contexts, strict=True)
        ]
        rows = rows_of(case, done, new)
        done = [count + n for count, n in zip(done, new, strict=True)]
        layout = Layout(starts(new), list(done), step.layout.page_tables, step.layout.slots[rows])
        part = Step(
            step.query[rows], step.key[rows], step.value[rows], dirty, layout, step.expected
        )
        assert torch.equal(attend(backend, part, case), whole[rows])


def test_the_number_of_threads_changes_no_bit() -> None:
    case = CASES["decode, prompt, chunk, decode"]
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            step = build(case, torch.bfloat16)
            linear = run(made(), a_case(576, 200, 9, is_full=True, is_gated=True), torch.int8)
            results.append((attend(made(), step, case), linear))
    finally:
        torch.set_num_threads(before)
    for attended, linear in results[1:]:
        assert torch.equal(attended, results[0][0])
        assert torch.equal(linear, results[0][1])


def test_two_engines_compute_at_once_in_threads_of_their_own() -> None:
    case = CASES["decode, prompt, chunk, decode"]

    def work(seed: int) -> float:
        backend, step = made(), build(case, torch.float32, seed)
        for _ in range(20):
            result = attend(backend, step, case)
        return (result.double() - step.expected).abs().max().item()

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(work, range(8))) <= TOLERANCE[torch.float32]


@pytest.mark.parametrize("has_norm", [False, True])
@pytest.mark.parametrize("head_dim", [16, 80])
def test_heads_are_normalized_and_turned_before_they_attend(head_dim: int, has_norm: bool) -> None:
    """As `Attention` in models/layers.py does in plain torch, here in float64."""
    case = Case((40, 9), (3, 1), num_heads=4, num_kv_heads=2, head_dim=head_dim)
    step = build(case, torch.float32)
    heads = torch.cat((step.query, step.key, step.value), dim=1)
    angles = torch.randn(len(heads), head_dim // 2).double()
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat((-angles.sin(), angles.sin()), -1)
    norms = Norms(torch.rand(head_dim) + 0.5, torch.rand(head_dim) + 0.5) if has_norm else None
    q = _turned(step.query, cos, sin, norms.query_weight if norms else None)
    k = _turned(step.key, cos, sin, norms.key_weight if norms else None)
    reference = build(case, torch.float32)
    expected = made().attention(
        q.float(), k.float(), step.value, reference.pages, reference.layout, scale=case.scale
    )
    result = made().attend_heads(
        heads, norms, Rotation(cos[:, None].float(), sin[:, None].float()), step.pages,
        step.layout, num_heads=4, scale=case.scale, window=None,
    )  # fmt: skip
    assert (result - expected).abs().max() < 1e-5
    slots = (-1, case.num_kv_heads, head_dim)
    stored = step.pages.key.view(slots)[step.layout.slots]
    assert (stored.double() - k).abs().max() < 1e-5


class Norms(HeadNorm):
    def __init__(self, query: Tensor, key: Tensor) -> None:
        self._weights = query, key

    @property
    def query_weight(self) -> Tensor:
        return self._weights[0]

    @property
    def key_weight(self) -> Tensor:
        return self._weights[1]

    @property
    def epsilon(self) -> float:
        return 1e-6


def _turned(heads: Tensor, cos: Tensor, sin: Tensor, weight: Tensor | None) -> Tensor:
    heads = heads.double()
    if weight is not None:
        squares = heads.pow(2).mean(dim=-1, keepdim=True)
        heads = heads / (squares + 1e-6).sqrt() * weight.double()
    return heads * cos[:, None] + heads.roll(heads.shape[-1] // 2, -1) * sin[:, None]


def test_a_query_that_is_not_finite_spoils_its_own_rows_only() -> None:
    case = CASES["decode, prompt, chunk, decode"]
    step = build(case, torch.float32)
    sound = attend(made(), step, case)
    step.query[5, 1] = torch.nan
    result = attend(made(), step, case)
    assert result[5, 1].isnan().all()
    result[5, 1] = sound[5, 1]
    assert torch.equal(result, sound)


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    return tmp_path / "minimsg" / "kernels"


def a_source(folder: Path, number: int) -> Path:
    source = folder / "source.c"
    source.write_text(f"int number(void) {{ return {number}; }}\n")
    return source


def test_a_library_is_compiled_once_and_again_when_its_source_changes(
    cache_folder: Path, tmp_path: Path
) -> None:
    for number, libraries in ((1, 1), (1, 1), (2, 2)):
        assert load_library(a_source(tmp_path, number)).number() == number
        assert len(list(cache_folder.iterdir())) == libraries


def test_many_who_compile_at_once_all_get_a_whole_library(
    cache_folder: Path, tmp_path: Path
) -> None:
    source = a_source(tmp_path, 7)
    with ThreadPoolExecutor(4) as pool:
        assert [lib.number() for lib in pool.map(load_library, [source] * 4)] == [7] * 4
    assert len(list(cache_folder.iterdir())) == 1


def test_a_broken_source_says_what_is_wrong(cache_folder: Path, tmp_path: Path) -> None:
    source = a_source(tmp_path, 1)
    source.write_text("int number(void) { return 1 }\n")
    with pytest.raises(KernelUnavailable, match=r"cannot compile it: [\s\S]*error"):
        load_library(source)
    assert not list(cache_folder.iterdir())


def test_a_broken_library_says_what_is_wrong(
    cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "minimsg.kernels.compile._compile", lambda *given: given[-1].write_bytes(b"no library")
    )
    with pytest.raises(KernelUnavailable, match=r"cannot be stored or loaded: .*short"):
        load_library(a_source(tmp_path, 1))


def test_a_library_that_was_cut_is_made_anew(cache_folder: Path, tmp_path: Path) -> None:
    load_library(a_source(tmp_path, 8))
    (only,) = cache_folder.iterdir()
    only.unlink()  # what is loaded stays so
    only.write_bytes(b"")
    assert load_library(a_source(tmp_path, 8)).number() == 8


@pytest.mark.parametrize(
    ("compiler", "why"),
    [
        ('gcc "', "No closing quotation"),
        ("{here}/no-interpreter", "does not say its version"),
        ("true", "has made nothing"),
    ],
)
def test_a_compiler_that_is_none_is_told_of(
    cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, why: str
) -> None:
    script = tmp_path / "no-interpreter"
    script.write_text("#!/no/such/program\n")
    script.chmod(0o755)
    monkeypatch.setenv("CC", compiler.format(here=tmp_path))
    with pytest.raises(KernelUnavailable, match=why):
        load_library(a_source(tmp_path, 1))


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")  # a folder cannot be made below it, even by root
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "file")
    assert load_library(a_source(tmp_path, 5)).number() == 5


def test_it_shares_the_openmp_of_torch() -> None:
    """Two pools of threads would fight for the cores (and were a fifth slower)."""
    made()
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("no /proc on this system")
    loaded = {line.split()[-1] for line in maps.read_text().splitlines() if "omp" in line}
    assert len({path for path in loaded if Path(path).name.startswith(("libgomp", "libomp"))}) == 1


SANITIZED = """
import torch
from minimsg.kernels.cpu_native import Backend
from tests.kernels.cases import build
from tests.kernels.test_contract import CASES
from tests.kernels.test_linear import a_case, run
backend = Backend(("-O1", "-g", "-march=native", "-std=gnu11", "-fno-math-errno",
                   "-fsanitize=address,undefined", "-fno-sanitize-recover=all"))
for dtype in (torch.float32, torch.bfloat16):
    for case in CASES.values():
        step = build(case, dtype)
        backend.attention(step.query, step.key, step.value, step.pages, step.layout,
                          scale=case.scale, window=case.window)
for dtype in (torch.float32, torch.bfloat16, torch.int8):
    for inputs, outputs in ((32, 16), (42, 123), (1, 7), (576, 1)):
        for rows in (0, 1, 5, 150):
            run(backend, a_case(inputs, outputs, rows, is_full=True, is_gated=True), dtype)
print("sound")
"""


@pytest.mark.sanitize
def test_address_and_undefined_behaviour_sanitizers_find_nothing() -> None:
    compiler = find_compiler()
    names = ("libasan.so", "libubsan.so")
    preload = [
        subprocess.run(
            [*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in names
    ]
    environment = os.environ | {"LD_PRELOAD": " ".join(preload), "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(
        [sys.executable, "-c", SANITIZED],
        cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "sound"


def test_the_library_is_loaded_once_a_process() -> None:
    made()
    assert library() is library()
