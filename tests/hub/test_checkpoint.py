"""A Hugging Face folder is used in place if it is complete, and refused by name if not.

transformers saves the checkpoints.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minimsg import builtin, hub
from minimsg.errors import CheckpointError, UnsupportedModel

from ..models.gguf_files import random_model  # noqa: TID252 tests have no absolute name


class TestLocalFolder:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """A checkpoint as transformers saves it, with our byte tokenizer."""
        folder = tmp_path / "checkpoint"
        random_model("qwen2").save_pretrained(folder)
        builtin.byte_tokenizer().save(str(folder / "tokenizer.json"))
        return folder

    def test_it_is_used_in_place(self, folder: Path, data_dir: Path) -> None:
        assert hub.pull(str(folder), data_dir) == folder
        assert hub.resolve(str(folder), data_dir) == folder
        assert not data_dir.exists()

    def test_shards_are_read_through_their_index(self, folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        random_model("qwen2").save_pretrained(folder, max_shard_size="1MB")
        assert len(list(folder.glob("*.safetensors"))) > 1
        assert hub.resolve(str(folder)) == folder

    def test_a_missing_shard_is_named(self, folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        random_model("qwen2").save_pretrained(folder, max_shard_size="1MB")
        shard = min(folder.glob("*.safetensors"))
        shard.unlink()
        with pytest.raises(CheckpointError, match=f"{shard.name}: missing"):
            hub.resolve(str(folder))

    def test_an_index_that_leads_elsewhere_is_refused(self, folder: Path) -> None:
        index = {"weight_map": {"lm_head.weight": "../model.safetensors"}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        (folder / "model.safetensors").unlink()
        with pytest.raises(CheckpointError, match=r"the shard '\.\./model\.safetensors'"):
            hub.resolve(str(folder))

    def test_pickled_weights_are_refused(self, folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
        with pytest.raises(CheckpointError, match=r"only as pytorch_model\.bin"):
            hub.resolve(str(folder))

    @pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
    def test_a_missing_file_is_named(self, name: str, folder: Path) -> None:
        (folder / name).unlink()
        with pytest.raises(CheckpointError, match=f"{name}(: no such file|.* or model)"):
            hub.resolve(str(folder))

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (
                {"num_hidden_layers": 3, "layer_types": None},
                r"lacks model\.layers\.2\..* and 9 more",
            ),
            ({"num_hidden_layers": 1, "layer_types": None}, r"also holds model\.layers\.1\."),
            ({"intermediate_size": 256}, r"expected \[256, 256\]"),
            ({"vocab_size": "many"}, "vocab_size is 'many'"),
        ],
    )
    def test_weights_that_do_not_fit_the_config_are_refused(
        self, change: dict[str, object], words: str, folder: Path
    ) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | change))
        with pytest.raises(CheckpointError, match=words):
            hub.resolve(str(folder))

    def test_a_family_that_is_not_ours_is_refused(self, folder: Path) -> None:
        (folder / "config.json").write_text('{"model_type": "mamba"}')
        with pytest.raises(UnsupportedModel, match="'mamba'"):
            hub.resolve(str(folder))
