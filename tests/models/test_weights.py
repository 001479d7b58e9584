"""Checkpoints are loaded whole and as they are, or refused with what is wrong."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from minimsg.errors import CheckpointError, MinimsgError
from minimsg.hub.checkpoint import check_folder
from minimsg.kernels import choose
from minimsg.kernels.cpu_native import Backend as Native
from minimsg.models.config import ModelConfig
from minimsg.models.contract import Model
from minimsg.models.parameters import parameter_shapes
from minimsg.models.weights import load_model

from .checkpoints import edit_config, save_checkpoint
from .paged import PagedRun

CPU = torch.device("cpu")
EMBEDDING = "model.embed_tokens.weight"


def load(folder: Path, dtype: torch.dtype = torch.float32) -> Model:
    """With the kernel that leaves the weights as they are."""
    backend = choose(device=CPU, dtype=dtype, head_dim=16, name="reference")
    return load_model(folder, dtype=dtype, device=CPU, backend=backend)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_checkpoint(tmp_path, "llama")
    return tmp_path


def tensors_of(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def rewrite(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    save_file(tensors, folder / "model.safetensors")


def split_in_shards(folder: Path) -> dict[str, str]:
    """Replace the single file by two shards and their index; returns the weight map."""
    tensors = tensors_of(folder)
    (folder / "model.safetensors").unlink()
    shards = {name: f"model-{number % 2}.safetensors" for number, name in enumerate(tensors)}
    for shard in set(shards.values()):
        save_file({n: t for n, t in tensors.items() if shards[n] == shard}, folder / shard)
    write_index(folder, shards)
    return shards


def write_index(folder: Path, weight_map: object) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def test_every_tensor_arrives_in_its_part_of_the_fused_weights(folder: Path) -> None:
    loaded = load(folder).checkpoint_tensors()
    for name, tensor in tensors_of(folder).items():
        assert torch.equal(loaded[name], tensor), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_are_converted_to_the_format_asked_for(folder: Path, dtype: torch.dtype) -> None:
    loaded = load(folder, dtype).checkpoint_tensors()
    assert torch.equal(loaded[EMBEDDING], tensors_of(folder)[EMBEDDING].to(dtype))


def test_shards_load_as_the_single_file_does(folder: Path) -> None:
    expected = tensors_of(folder)
    split_in_shards(folder)
    loaded = load(folder).checkpoint_tensors()
    assert loaded.keys() == expected.keys()
    assert all(torch.equal(loaded[name], expected[name]) for name in expected)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("settings", [{}, {"tie_word_embeddings": True, "attention_bias": True}])
def test_the_torch_free_table_of_weights_is_what_the_model_asks_for(
    family: str, settings: dict[str, object], tmp_path: Path
) -> None:
    save_checkpoint(tmp_path, family, **settings)
    tensors = load(tmp_path).checkpoint_tensors()
    assert parameter_shapes(ModelConfig.from_folder(tmp_path)) == {
        n: tuple(t.shape) for n, t in tensors.items()
    }


@pytest.fixture
def tied(tmp_path: Path) -> Path:
    save_checkpoint(tmp_path, "llama", tie_word_embeddings=True)
    (tmp_path / "tokenizer.json").write_text("{}")  # `check_folder` wants one
    return tmp_path


def test_a_copy_of_a_tied_head_and_old_rotary_buffers_are_ignored(tied: Path) -> None:
    tensors = tensors_of(tied)
    tensors["lm_head.weight"] = tensors[EMBEDDING].clone()
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.zeros(4)
    rewrite(tied, tensors)
    check_folder(tied)
    assert "lm_head.weight" not in load(tied).checkpoint_tensors()


def test_a_tied_head_that_is_another_matrix_is_refused(tied: Path) -> None:
    tensors = tensors_of(tied)
    rewrite(tied, {**tensors, "lm_head.weight": tensors[EMBEDDING] + 1e-3})
    split_in_shards(tied)
    with pytest.raises(CheckpointError, match=rf"lm_head\.weight differs from {EMBEDDING}"):
        load(tied)


def test_a_tied_head_is_compared_in_the_format_asked_for(tied: Path) -> None:
    tensors = tensors_of(tied)
    rewrite(tied, {**tensors, "lm_head.weight": tensors[EMBEDDING].bfloat16()})
    load(tied, torch.bfloat16)
    with pytest.raises(CheckpointError, match="differs"):
        load(tied)


def test_a_tied_head_of_another_shape_is_refused_from_its_header(tied: Path) -> None:
    rewrite(tied, {**tensors_of(tied), "lm_head.weight": torch.zeros(64, 32)})
    for use in (check_folder, load):
        with pytest.raises(CheckpointError, match=r"lm_head\.weight has shape \[64, 32\]"):
            use(tied)


def test_a_tied_matrix_that_is_stored_as_the_head_only_is_the_embedding_too(tied: Path) -> None:
    tensors = tensors_of(tied)
    matrix = tensors.pop(EMBEDDING)
    rewrite(tied, {**tensors, "lm_head.weight": matrix})
    check_folder(tied)
    assert torch.equal(load(tied).checkpoint_tensors()[EMBEDDING], matrix)


def test_a_missing_tensor_is_named(folder: Path) -> None:
    tensors = tensors_of(folder)
    del tensors["model.layers.1.mlp.up_proj.weight"]
    rewrite(folder, tensors)
    with pytest.raises(CheckpointError, match=r"model\.layers\.1\.mlp\.up_proj\.weight"):
        load(folder)


def test_an_untied_head_must_be_there(folder: Path) -> None:
    tensors = tensors_of(folder)
    del tensors["lm_head.weight"]
    rewrite(folder, tensors)
    with pytest.raises(CheckpointError, match=r"lm_head\.weight"):
        load(folder)


def test_an_unexpected_tensor_is_named(folder: Path) -> None:
    name = "model.layers.0.self_attn.q_norm.weight"
    rewrite(folder, {**tensors_of(folder), name: torch.ones(8)})
    with pytest.raises(CheckpointError, match=name):
        load(folder)


def test_a_wrong_shape_is_named_with_both_shapes(folder: Path) -> None:
    edit_config(folder, {"intermediate_size": 40})
    with pytest.raises(CheckpointError, match=r"mlp\.\w+_proj\.weight has shape .*48.*40"):
        load(folder)


def test_a_config_that_lies_about_size_takes_no_memory(folder: Path) -> None:
    edit_config(folder, {"hidden_size": 1 << 23})  # its weights would be hundreds of terabytes
    with pytest.raises(CheckpointError, match="shape"):
        load(folder)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_no_numbers_are_named(folder: Path, bad: float) -> None:
    tensors = tensors_of(folder)
    tensors["model.layers.1.mlp.down_proj.weight"][3, 5] = bad
    rewrite(folder, tensors)
    with pytest.raises(CheckpointError, match=r"model\.layers\.1\.mlp\.down_proj\.weight"):
        load(folder)


def test_weights_too_large_for_the_format_asked_for_are_named(folder: Path) -> None:
    tensors = tensors_of(folder)
    tensors["model.norm.weight"][0] = 1e6
    rewrite(folder, tensors)
    load(folder, torch.bfloat16)
    with pytest.raises(CheckpointError, match=r"model\.norm\.weight.*float16"):
        load(folder, torch.float16)


def test_integers_are_not_taken_for_weights(folder: Path) -> None:
    tensors = tensors_of(folder)
    rewrite(folder, {**tensors, EMBEDDING: tensors[EMBEDDING].to(torch.int8)})
    with pytest.raises(CheckpointError, match=f"{EMBEDDING} is I8"):
        load(folder)


def break_header(folder: Path, changes: dict[str, object]) -> None:
    """Rewrite entries of the header, keeping the data as they are."""
    file = folder / "model.safetensors"
    content = file.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    for name, change in changes.items():
        header[name] = {**header[name], "data_offsets": change}
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])


@pytest.mark.parametrize("length", [0, 1 << 40, (1 << 63) - 1, (1 << 64) - 1])
def test_a_header_length_that_lies_is_refused(folder: Path, length: int) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(struct.pack("<Q", length) + file.read_bytes()[8:])
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        load(folder)


@pytest.mark.parametrize("offsets", [[0, 1 << 60], [1 << 40, (1 << 40) + 128], [0, 128], [-4, 124]])
def test_offsets_outside_the_file_or_over_another_tensor_are_refused(
    folder: Path, offsets: list[int]
) -> None:
    break_header(folder, {"model.norm.weight": offsets})
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        load(folder)


@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_a_truncated_file_is_refused(folder: Path, kept: int) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        load(folder)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pt2", "model.pth"])
def test_pickled_weights_are_refused_and_never_opened(folder: Path, name: str) -> None:
    (folder / "model.safetensors").rename(folder / name)
    with pytest.raises(CheckpointError, match=rf"only as {name}.*expected model\.safetensors"):
        load(folder)


def test_a_folder_without_weights_says_so(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="no weights"):
        load(folder)


def test_a_shard_whose_name_no_folder_can_hold_is_missing(folder: Path) -> None:
    split_in_shards(folder)
    write_index(folder, {EMBEDDING: "m" * 300})
    with pytest.raises(CheckpointError, match="mmm: missing"):
        load(folder)


def test_a_missing_shard_is_named(folder: Path) -> None:
    split_in_shards(folder)
    (folder / "model-1.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model-1\.safetensors: missing"):
        load(folder)


@pytest.mark.parametrize("shard", ["../model.safetensors", "/etc/passwd", "a/b.safetensors", 3, ""])
def test_an_index_cannot_point_outside_its_folder(folder: Path, shard: object) -> None:
    weight_map = dict(split_in_shards(folder))
    write_index(folder, {**weight_map, EMBEDDING: shard})
    with pytest.raises(CheckpointError, match=r"index\.json"):
        load(folder)


def test_a_tensor_in_two_shards_is_refused(folder: Path) -> None:
    shards = split_in_shards(folder)
    other = next(shard for shard in set(shards.values()) if shard != shards[EMBEDDING])
    doubled = {**load_file(folder / other), EMBEDDING: torch.zeros(128, 32)}
    save_file(doubled, folder / other)
    with pytest.raises(CheckpointError, match=f"{EMBEDDING} is only in one"):
        load(folder)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"weight_map": []}', '{"weight_map": {}}'])
def test_an_index_without_a_map_is_refused(folder: Path, content: str) -> None:
    split_in_shards(folder)
    (folder / "model.safetensors.index.json").write_text(content)
    with pytest.raises(MinimsgError):
        load(folder)


def load_int8(folder: Path) -> Model:
    backend = choose(device=CPU, dtype=torch.int8, head_dim=16)
    return load_model(folder, dtype=torch.int8, device=CPU, backend=backend)


def logits(model: Model, cache: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return PagedRun(model, cache).step({"one": [1, 2, 3, 60]})["one"]


def is_kept(folder: Path) -> tuple[int, int]:
    """What tells one written file from another."""
    stat = (folder / "int8.safetensors").stat()
    return stat.st_ino, stat.st_mtime_ns


@pytest.fixture(params=[True, False], ids=["tied", "untied"])
def int8_folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    if why_not := Native().supports(device=CPU, dtype=torch.int8, head_dim=16):
        pytest.skip(why_not)
    save_checkpoint(tmp_path, "qwen2", tie_word_embeddings=request.param)
    (tmp_path / "minimsg.json").write_text("{}")
    return tmp_path


def test_quantized_weights_are_kept_and_a_second_start_maps_them(
    int8_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = logits(load_int8(int8_folder))
    before = is_kept(int8_folder)

    def pack(*_: object, **__: object) -> None:
        pytest.fail("it was quantized again")

    monkeypatch.setattr(Native, "pack", pack)
    assert torch.equal(logits(load_int8(int8_folder)), first)
    assert is_kept(int8_folder) == before


def test_int8_is_near_the_numbers_it_was_made_of(int8_folder: Path) -> None:
    plain, quantized = logits(load(int8_folder), torch.float32), logits(load_int8(int8_folder))
    # logits have a standard deviation of about 2 here; a wrong scale moves them as far
    assert 0 < (plain - quantized).abs().mean() < 0.15


def test_kept_weights_of_other_weights_are_made_anew(int8_folder: Path) -> None:
    first = logits(load_int8(int8_folder))
    tensors = {name: tensor * 1.5 for name, tensor in tensors_of(int8_folder).items()}
    save_file(tensors, int8_folder / "model.safetensors")
    changed = logits(load_int8(int8_folder))
    assert not torch.equal(changed, first)
    (int8_folder / "int8.safetensors").unlink()
    assert torch.equal(logits(load_int8(int8_folder)), changed)


@pytest.mark.parametrize("keep", [0, 7, 2_000])
def test_kept_weights_that_were_cut_are_made_anew(int8_folder: Path, keep: int) -> None:
    first = logits(load_int8(int8_folder))
    file = int8_folder / "int8.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    assert torch.equal(logits(load_int8(int8_folder)), first)
    assert file.stat().st_size > 2_000


@pytest.mark.parametrize("place", [1, 400, 5_000])
def test_kept_weights_with_another_byte_are_made_anew(int8_folder: Path, place: int) -> None:
    first = logits(load_int8(int8_folder))
    file = int8_folder / "int8.safetensors"
    data = bytearray(file.read_bytes())
    data[-place] ^= 0x40
    file.write_bytes(data)
    assert torch.equal(logits(load_int8(int8_folder)), first)


def test_kept_weights_of_another_shape_are_made_anew(int8_folder: Path) -> None:
    """They would be read beyond their end."""
    first = logits(load_int8(int8_folder))
    file = int8_folder / "int8.safetensors"
    with safe_open(file, framework="pt") as kept:
        metadata = kept.metadata()
    shorter = {name: tensor[:1].clone() for name, tensor in load_file(file).items()}
    save_file(shorter, file, metadata=metadata)
    assert torch.equal(logits(load_int8(int8_folder)), first)


def test_nothing_is_kept_in_a_folder_that_is_somebody_elses(int8_folder: Path) -> None:
    (int8_folder / "minimsg.json").unlink()
    load_int8(int8_folder)
    assert not (int8_folder / "int8.safetensors").exists()


def test_a_folder_that_cannot_be_written_is_loaded_all_the_same(
    int8_folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def mkstemp(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", mkstemp)
    load_int8(int8_folder)
    assert "the next start quantizes again" in caplog.text
    assert not (int8_folder / "int8.safetensors").exists()
