"""GGUF files are read as they are defined, and refused when they lie.

Oracles: the `gguf` package writes the files, block layouts are decoded again by hand
from ggml's C structs, `transformers` computes the logits of what was converted.
"""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.torch import load_file

from minimsg.errors import CheckpointError, UnsupportedModel
from minimsg.hub.conversion import convert
from minimsg.hub.progress import silent
from minimsg.kernels import choose
from minimsg.models.gguf import GGUF
from minimsg.models.gguf_config import config_from_gguf
from minimsg.models.weights import load_model

from .gguf_files import encode, random_model, raw_gguf, raw_info, raw_string, write_gguf
from .paged import PagedRun

FAMILIES = ("llama", "qwen2", "qwen3")
TYPES = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")


def converted(file: Path, folder: Path) -> Path:
    folder.mkdir()
    convert(file, folder, silent)
    return folder


def logits(model: transformers.PreTrainedModel) -> torch.Tensor:
    ids = torch.arange(600).reshape(2, 300) % 251
    with torch.no_grad():
        output: torch.Tensor = model(ids).logits
    return output


def logits_of(folder: Path) -> torch.Tensor:
    load = transformers.AutoModelForCausalLM.from_pretrained
    return logits(load(folder, dtype=torch.float32, attn_implementation="eager"))


class TestConversion:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_converted_model_computes_what_the_original_does(
        self, family: str, tmp_path: Path
    ) -> None:
        model = random_model(family, tie_word_embeddings=False)
        write_gguf(tmp_path / "model.gguf", model)
        assert torch.equal(
            logits_of(converted(tmp_path / "model.gguf", tmp_path / "out")), logits(model)
        )

    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_model_without_an_output_tensor_is_tied_to_its_embedding(
        self, family: str, tmp_path: Path
    ) -> None:
        model = random_model(family, tie_word_embeddings=True)
        write_gguf(tmp_path / "model.gguf", model)
        folder = converted(tmp_path / "model.gguf", tmp_path / "out")
        assert "lm_head.weight" not in load_file(folder / "model.safetensors")
        assert torch.equal(logits_of(folder), logits(model))

    @pytest.mark.parametrize("family", FAMILIES)
    def test_our_own_model_of_it_computes_the_originals_logits(
        self, family: str, tmp_path: Path
    ) -> None:
        model = random_model(family)
        write_gguf(tmp_path / "model.gguf", model)
        folder = converted(tmp_path / "model.gguf", tmp_path / "out")
        cpu = torch.device("cpu")
        backend = choose(device=cpu, dtype=torch.float32, head_dim=32)
        ours = load_model(folder, dtype=torch.float32, device=cpu, backend=backend)
        ids = list(range(200))
        with torch.no_grad():
            expected = model(torch.tensor([ids])).logits[0]
        torch.testing.assert_close(
            PagedRun(ours).step({"a": ids})["a"], expected, atol=1e-4, rtol=0
        )

    def test_biases_of_llama_are_found_and_put_in_order(self, tmp_path: Path) -> None:
        model = random_model("llama", attention_bias=True, mlp_bias=True)
        write_gguf(tmp_path / "model.gguf", model)
        assert torch.equal(
            logits_of(converted(tmp_path / "model.gguf", tmp_path / "out")), logits(model)
        )

    @pytest.mark.parametrize("type", TYPES)
    def test_every_type_gives_exactly_the_values_that_it_defines(
        self, type: str, tmp_path: Path
    ) -> None:
        defined = write_gguf(tmp_path / "model.gguf", random_model("llama"), type=Type[type])
        folder = converted(tmp_path / "model.gguf", tmp_path / "out")
        tensors = load_file(folder / "model.safetensors")
        assert tensors.keys() == defined.keys()
        for name, values in tensors.items():
            assert values.dtype == torch.float32
            assert torch.equal(values, torch.from_numpy(defined[name])), name


ROPES: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "linear": (
        {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4},
        {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
    ),
    "linear, since no kind is named": (
        {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4},
        {"rope.scaling.factor": 4.0},
    ),
    "none, in so many words": (
        {"rope_type": "default", "rope_theta": 1e4},
        {"rope.scaling.type": "none", "rope.scaling.factor": 4.0},
    ),
    "linear by nothing": (
        {"rope_type": "default", "rope_theta": 1e4},
        {"rope.scaling.type": "linear", "rope.scaling.factor": 0.0},
    ),
    "yarn": (
        {
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 128,
            "rope_theta": 1e6,
        },
        {
            "rope.scaling.type": "yarn",
            "rope.scaling.factor": 4.0,
            "rope.scaling.original_context_length": 128,
            "rope.scaling.finetuned": True,
        },
    ),
}


class TestRope:
    @pytest.mark.parametrize("kind", ROPES)
    def test_scaling_by_parameters_survives(self, kind: str, tmp_path: Path) -> None:
        rope, keys = ROPES[kind]
        model = random_model("qwen3", rope_parameters=rope)
        metadata = {f"qwen3.{key}": value for key, value in keys.items()}
        write_gguf(tmp_path / "model.gguf", model, metadata=metadata)
        assert torch.equal(
            logits_of(converted(tmp_path / "model.gguf", tmp_path / "out")), logits(model)
        )

    def test_llama_3s_divisors_become_its_parameters_again(self, tmp_path: Path) -> None:
        rope: dict[str, float | str] = {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
            "rope_theta": 500_000.0,
        }
        model = random_model("llama", rope_parameters=rope)
        write_gguf(tmp_path / "model.gguf", model, extra={"rope_freqs.weight": divisors(rope)})
        folder = converted(tmp_path / "model.gguf", tmp_path / "out")
        assert torch.equal(logits_of(folder), logits(model))

    def test_divisors_of_another_origin_are_refused(self, tmp_path: Path) -> None:
        odd = np.linspace(1, 3, 16, dtype=np.float32)
        write_gguf(tmp_path / "m.gguf", random_model("llama"), extra={"rope_freqs.weight": odd})
        with pytest.raises(UnsupportedModel, match="not the scaling of Llama 3"):
            config_from_gguf(GGUF.open(tmp_path / "m.gguf"))

    @pytest.mark.parametrize("stored", [np.ones(8), np.ones(17), np.zeros(16)])
    def test_divisors_that_do_not_fit_the_heads_are_refused(
        self, stored: NDArray[np.float64], tmp_path: Path
    ) -> None:
        extra = {"rope_freqs.weight": stored.astype(np.float32)}
        write_gguf(tmp_path / "m.gguf", random_model("llama"), extra=extra)
        with pytest.raises(CheckpointError, match=f"with {stored.size} values.*expected 16"):
            config_from_gguf(GGUF.open(tmp_path / "m.gguf"))


def divisors(rope: dict[str, float | str]) -> NDArray[np.float32]:
    """`rope_freqs.weight` as llama.cpp's converter computes it, frequency by frequency."""
    factor, low, high = (float(rope[k]) for k in ("factor", "low_freq_factor", "high_freq_factor"))
    old = float(rope["original_max_position_embeddings"])
    values = []
    for i in range(0, 32, 2):
        wavelength = 2 * np.pi * float(rope["rope_theta"]) ** (i / 32)
        if wavelength < old / high:
            values.append(1.0)
        elif wavelength > old / low:
            values.append(factor)
        else:
            smooth = (old / wavelength - low) / (high - low)
            values.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(values, np.float32)


class TestConfig:
    def test_sizes_ids_and_constants_are_the_originals(self, tmp_path: Path) -> None:
        model = random_model("qwen3", rope_parameters={"rope_type": "default", "rope_theta": 1e6})
        metadata = {"tokenizer.ggml.eot_token_id": 7, "tokenizer.ggml.bos_token_id": 256}
        write_gguf(tmp_path / "m.gguf", model, metadata=metadata)
        config = config_from_gguf(GGUF.open(tmp_path / "m.gguf"))
        expected = {
            "model_type": "qwen3",
            "architectures": ["Qwen3ForCausalLM"],
            "vocab_size": 320,
            "hidden_size": 256,
            "intermediate_size": 512,
            "num_hidden_layers": 2,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 32,
            "max_position_embeddings": 512,
            "rms_norm_eps": 1e-5,
            "rope_theta": 1e6,
            "rope_scaling": None,
            "bos_token_id": 256,
            "eos_token_id": [258, 7],
        }
        assert {key: config[key] for key in expected} == expected

    @pytest.mark.parametrize(
        ("metadata", "words"),
        [
            ({"llama.rope.scaling.type": "longrope"}, "longrope"),
            ({"llama.attention.sliding_window": 128}, "sliding_window = 128"),
            ({"llama.expert_count": 8}, "expert_count = 8"),
            ({"llama.rope.dimension_count": 16}, "head size 32"),
            ({"llama.attention.clamp_kqv": 8.0}, "clamp_kqv"),
        ],
    )
    def test_a_setting_that_changes_the_maths_and_is_not_understood_is_refused(
        self, metadata: dict[str, object], words: str, tmp_path: Path
    ) -> None:
        write_gguf(tmp_path / "m.gguf", random_model("llama"), metadata=metadata)
        with pytest.raises(UnsupportedModel, match=words):
            config_from_gguf(GGUF.open(tmp_path / "m.gguf"))

    def test_another_architecture_is_refused_by_name(self, tmp_path: Path) -> None:
        name = raw_string("general.architecture") + struct.pack("<I", 8) + raw_string("mamba")
        (tmp_path / "m.gguf").write_bytes(raw_gguf(entries=[name]))
        with pytest.raises(UnsupportedModel, match="'mamba'; known: llama, qwen2, qwen3"):
            config_from_gguf(GGUF.open(tmp_path / "m.gguf"))

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"without": ["blk.1.attn_v.weight"]}, "lacks blk.1.attn_v.weight"),
            ({"extra": {"blk.0.odd.weight": np.ones(4, np.float32)}}, "holds blk.0.odd.weight"),
            ({"without": ["token_embd.weight"]}, "no tensor token_embd.weight"),
            ({"metadata": {"qwen3.feed_forward_length": 1024}}, r"expected \[1024, 256\]"),
            ({"metadata": {"qwen3.block_count": 2**31 - 1}}, "block_count is 2147483647"),
            (
                {"metadata": {"qwen3.block_count": 5000}},
                "block_count is 5000; expected an integer from 1 to 1,024",
            ),
            ({"metadata": {"qwen3.embedding_length": -1}}, "is -1; expected an integer"),
        ],
    )
    def test_weights_that_do_not_fit_the_metadata_are_refused(
        self, change: dict[str, object], words: str, tmp_path: Path
    ) -> None:
        write_gguf(tmp_path / "m.gguf", random_model("qwen3"), **change)  # type: ignore[arg-type]
        with pytest.raises(CheckpointError, match=words):
            converted(tmp_path / "m.gguf", tmp_path / "out")


# One block of each layout, decoded value by value from the structs in ggml-common.h.


def half(data: bytes) -> float:
    return float(struct.unpack("<e", data)[0])


def q4_1(block: bytes) -> list[float]:
    scale, minimum, bits = half(block[:2]), half(block[2:4]), block[4:]
    return [scale * (bits[i % 16] >> 4 * (i // 16) & 15) + minimum for i in range(32)]


def q5_0(block: bytes) -> list[float]:
    scale, high, bits = half(block[:2]), int.from_bytes(block[2:6], "little"), block[6:]
    low = [bits[i % 16] >> 4 * (i // 16) & 15 for i in range(32)]
    return [scale * ((low[i] | (high >> i & 1) << 4) - 16) for i in range(32)]


def q4_k(block: bytes) -> list[float]:
    scale, minimum, packed, bits = half(block[:2]), half(block[2:4]), block[4:16], block[16:]
    values = []
    for group in range(8):
        if group < 4:
            s, m = packed[group] & 63, packed[group + 4] & 63
        else:
            s = packed[group + 4] & 15 | packed[group - 4] >> 6 << 4
            m = packed[group + 4] >> 4 | packed[group] >> 6 << 4
        quarter = bits[32 * (group // 2) : 32 * (group // 2) + 32]
        values += [scale * s * (b >> 4 * (group % 2) & 15) - minimum * m for b in quarter]
    return values


def q6_k(block: bytes) -> list[float]:
    low, high, scales, scale = block[:128], block[128:192], block[192:208], half(block[208:])
    values = [0.0] * 256
    for i in range(256):
        side, row, column = i // 128, i % 128 // 32, i % 32
        nibble = low[64 * side + 32 * (row % 2) + column] >> 4 * (row // 2) & 15
        top = high[32 * side + column] >> 2 * row & 3
        factor = struct.unpack("b", scales[i // 16 : i // 16 + 1])[0]
        values[i] = scale * factor * ((nibble | top << 4) - 32)
    return values


@pytest.mark.parametrize("decode", [q4_1, q5_0, q4_k, q6_k])
def test_a_block_decoded_by_hand_has_the_same_values(
    decode: Callable[[bytes], list[float]], tmp_path: Path
) -> None:
    type = Type[decode.__name__.upper()]
    values = np.linspace(-3, 5, 256, dtype=np.float32).reshape(1, 256)
    data = encode(values, type).astype(np.uint8).tobytes()
    file = tmp_path / "one.gguf"
    file.write_bytes(raw_gguf(infos=[raw_info("t", [256], int(type), 0)], data=data))
    size = gguf.GGML_QUANT_SIZES[type][1]
    expected = [
        v for start in range(0, len(data), size) for v in decode(data[start : start + size])
    ]
    np.testing.assert_allclose(GGUF.open(file).dequantize("t"), expected, rtol=1e-5, atol=1e-7)


def entry(key: str, kind: int, value: bytes) -> bytes:
    return raw_string(key) + struct.pack("<I", kind) + value


F32_OF_8 = raw_info("t", [8], 0, 0)
LIES: dict[str, tuple[bytes, str]] = {
    "another magic": (raw_gguf(magic=b"GGML"), "begins with b'GGML'"),
    "an empty file": (b"", "begins with b''"),
    "a version of the past": (raw_gguf(version=1), "version 1"),
    "big endian": (raw_gguf(version=3 << 24), "little endian"),
    "more tensors than bytes": (raw_gguf(num_tensors=2**63), "tensors and 0 metadata"),
    "more keys than bytes": (raw_gguf(num_entries=2**63), "metadata entries announced"),
    "a key longer than the file": (
        raw_gguf(entries=[struct.pack("<Q", 2**62) + bytes(20)]),
        "a metadata key of 4,611,686,018,427,387,904 bytes",
    ),
    "a key that is not UTF-8": (
        raw_gguf(entries=[raw_string(b"\xff") + struct.pack("<IB", 0, 1)]),
        "not UTF-8",
    ),
    "a key twice": (raw_gguf(entries=[entry("k", 0, b"\1")] * 2), "a second value of 'k'"),
    "a value of unknown type": (raw_gguf(entries=[entry("k", 13, bytes(8))]), "value type 13"),
    "an array longer than any": (
        raw_gguf(entries=[entry("k", 9, struct.pack("<IQ", 0, 2**40))]),
        "1,099,511,627,776 elements",
    ),
    "an array longer than the file": (
        raw_gguf(entries=[entry("k", 9, struct.pack("<IQ", 10, 2**20))]),
        "k of 8,388,608 bytes",
    ),
    "an array of arrays": (
        raw_gguf(entries=[entry("k", 9, struct.pack("<IQ", 9, 1) + bytes(12))]),
        "element type 9",
    ),
    "an alignment of 7": (
        raw_gguf(entries=[entry("general.alignment", 4, struct.pack("<I", 7))]),
        "general.alignment is 7",
    ),
    "a tensor past the end": (raw_gguf(infos=[F32_OF_8], data=bytes(31)), "32 bytes at 0"),
    "a tensor far past the end": (
        raw_gguf(infos=[raw_info("t", [8], 0, 2**63)], data=bytes(64)),
        "an end within the 64 bytes",
    ),
    "a shape of 2**120 values": (
        raw_gguf(infos=[raw_info("t", [2**60, 2**60], 0, 0)], data=bytes(64)),
        "an end within the 64 bytes",
    ),
    "an axis of size 0": (raw_gguf(infos=[raw_info("t", [8, 0], 0, 0)]), "positive sizes"),
    "five axes": (raw_gguf(infos=[raw_info("t", [1] * 5, 0, 0)]), "5 axes"),
    "no axes": (raw_gguf(infos=[raw_info("t", [], 0, 0)]), "0 axes"),
    "rows of part blocks": (raw_gguf(infos=[raw_info("t", [33], 8, 0)]), "a multiple of 32"),
    "a type of another day": (
        raw_gguf(infos=[raw_info("t", [8], 99, 0)]),
        "type number 99 at byte .* expected one of F32, F16, Q4_0",
    ),
    "an offset between the lines": (
        raw_gguf(infos=[raw_info("t", [1], 0, 4)], data=bytes(64)),
        "an offset that 32 divides",
    ),
    "tensors on top of each other": (
        raw_gguf(infos=[raw_info("t", [16], 0, 0), raw_info("u", [8], 0, 32)], data=bytes(64)),
        "t and u overlap",
    ),
    "a tensor twice": (
        raw_gguf(infos=[F32_OF_8, raw_info("t", [8], 0, 32)], data=bytes(64)),
        "a second tensor t",
    ),
}


class TestLies:
    @pytest.mark.parametrize("lie", LIES)
    def test_a_lying_file_is_refused_with_what_was_seen(self, lie: str, tmp_path: Path) -> None:
        data, words = LIES[lie]
        file = tmp_path / "model.gguf"
        file.write_bytes(data)
        tracemalloc.start()
        with pytest.raises(CheckpointError, match=words) as caught:
            GGUF.open(file)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert caught.value.file == str(file)
        assert peak < 1 << 20

    def test_a_file_cut_anywhere_is_refused(self, tmp_path: Path) -> None:
        whole = tmp_path / "whole.gguf"
        write_gguf(whole, random_model("qwen3"), type=Type.Q8_0)
        data = whole.read_bytes()
        file = tmp_path / "cut.gguf"
        for size in (*range(0, 2000, 7), len(data) // 2, len(data) - 33):
            file.write_bytes(data[:size])
            with pytest.raises(CheckpointError):
                GGUF.open(file)

    def test_a_file_that_shrinks_after_it_was_opened_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "model.gguf"
        file.write_bytes(raw_gguf(infos=[F32_OF_8], data=bytes(32)))
        opened = GGUF.open(file)
        file.write_bytes(file.read_bytes()[:-4])
        with pytest.raises(CheckpointError, match="28 bytes; expected 32"):
            opened.dequantize("t")

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_a_weight_that_is_no_number_is_refused(self, value: float, tmp_path: Path) -> None:
        file = tmp_path / "model.gguf"
        file.write_bytes(raw_gguf(infos=[F32_OF_8], data=struct.pack("<8f", *[1.0] * 7, value)))
        with pytest.raises(CheckpointError, match="NaN or infinity"):
            GGUF.open(file).dequantize("t")

    @settings(max_examples=300)
    @given(st.data())
    def test_changed_bytes_are_read_or_refused_but_never_crash(self, data: st.DataObject) -> None:
        file = self.file
        content = bytearray(self.content)
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, 1200))] = data.draw(st.integers(0, 255))
        file.write_bytes(content)
        try:
            opened = GGUF.open(file)
        except CheckpointError:
            return
        for info in opened.tensors.values():
            assert info.start + info.num_bytes <= len(content)

    @pytest.fixture(autouse=True)
    def _small_file(self, tmp_path: Path) -> None:
        entries = [entry(f"key {i}", 9, struct.pack("<IQ3H", 2, 3, 1, 2, 3)) for i in range(12)]
        infos = [raw_info(f"tensor {i}", [8, 2], 0, 64 * i) for i in range(12)]
        self.file = tmp_path / "changed.gguf"
        self.content = raw_gguf(entries=entries, infos=infos, data=bytes(64 * 12))
