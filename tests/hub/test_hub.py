"""Names are resolved and pulled: a .gguf file, built-in models, what is not there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from minimsg import hub
from minimsg.builtin import WRITERS
from minimsg.errors import CheckpointError, ConfigError, MinimsgError, ModelNotFound
from minimsg.hub import store
from minimsg.tiny_vl.checkpoint import copy_model, is_copied

from ..models.gguf_files import random_model, write_gguf  # noqa: TID252 tests have no absolute name
from .conftest import names_in


class TestGGUFSource:
    def test_a_pulled_file_is_a_whole_model_folder(self, gguf_file: Path, data_dir: Path) -> None:
        folder = hub.pull(str(gguf_file), data_dir)
        digest = hashlib.sha256(gguf_file.read_bytes()).hexdigest()
        assert folder == data_dir / "models" / f"small-{digest[:12]}"
        manifest = json.loads((folder / "minimsg.json").read_text())
        assert (manifest["source"], manifest["license"]) == (str(gguf_file), "mit")
        assert manifest["files"].keys() | {"minimsg.json"} == {p.name for p in folder.iterdir()}
        for name, record in manifest["files"].items():
            data = (folder / name).read_bytes()
            assert record == {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        assert names_in(data_dir) == [folder.name]

    def test_it_is_found_again_by_its_path_and_by_its_name(
        self, gguf_file: Path, data_dir: Path
    ) -> None:
        folder = hub.pull(str(gguf_file), data_dir)
        assert hub.resolve(str(gguf_file), data_dir) == folder
        assert hub.resolve(folder.name, data_dir) == folder
        assert [model.name for _, model in hub.list_models(data_dir)] == [folder.name]

    def test_a_second_pull_changes_nothing(self, gguf_file: Path, data_dir: Path) -> None:
        folder = hub.pull(str(gguf_file), data_dir)
        before = (folder / "minimsg.json").stat().st_mtime_ns
        assert hub.pull(str(gguf_file), data_dir) == folder
        assert (folder / "minimsg.json").stat().st_mtime_ns == before

    def test_the_ending_may_be_in_capitals(
        self, gguf_file: Path, data_dir: Path, tmp_path: Path
    ) -> None:
        file = tmp_path / f"{'X' * 200}.GGUF"
        file.write_bytes(gguf_file.read_bytes())
        folder = hub.pull(str(file), data_dir)
        assert folder.name.startswith("XXX")
        assert hub.resolve(str(file), data_dir) == folder

    @pytest.mark.parametrize(
        ("key", "value", "words"),
        [
            ("tokenizer.ggml.eos_token_id", -1, "eos_token_id is -1"),
            ("tokenizer.ggml.eos_token_id", "2", "eos_token_id is '2'"),
            ("tokenizer.ggml.eos_token_id", 10**9, "config.json: eos_token_id has 1000000000"),
            ("general.sampling.temp", float("nan"), "general.sampling.temp is nan"),
            ("general.sampling.temp", float("inf"), "general.sampling.temp is inf"),
            ("general.sampling.temp", "hot", "general.sampling.temp is 'hot'"),
            ("general.sampling.temp", -1.0, "generation_config.json: temperature is -1"),
            ("general.sampling.top_k", -1, "generation_config.json: top_k is -1"),
            ("tokenizer.chat_template", "{{ x", "chat_template.jinja: "),
            ("tokenizer.chat_template", "", "chat_template.jinja: "),
            ("tokenizer.chat_template", 7, "tokenizer.chat_template is 7"),
        ],
    )
    def test_what_could_not_be_served_is_not_pulled(
        self, key: str, value: object, words: str, data_dir: Path, tmp_path: Path
    ) -> None:
        file = tmp_path / "bad.gguf"
        write_gguf(file, random_model("llama"), metadata={key: value})
        with pytest.raises(MinimsgError, match=rf"bad\.gguf: .*{words}"):
            hub.pull(str(file), data_dir)
        assert names_in(data_dir) == []

    def test_another_file_of_the_same_name_is_another_model(
        self, gguf_file: Path, data_dir: Path, tmp_path: Path
    ) -> None:
        other = tmp_path / gguf_file.name
        write_gguf(other, random_model("qwen2"))
        assert hub.pull(str(gguf_file), data_dir) != hub.pull(str(other), data_dir)

    def test_conversion_reports_its_bytes(self, gguf_file: Path, data_dir: Path) -> None:
        seen: list[tuple[str, int, int | None]] = []
        folder = hub.pull(str(gguf_file), data_dir, lambda *report: seen.append(report))
        weights = sum(p.numel() * 4 for p in random_model("llama").parameters())
        assert seen[-1] == ("converting", weights, weights)
        assert weights < (folder / "model.safetensors").stat().st_size < weights + 4096

    def test_a_broken_file_leaves_nothing_behind(self, gguf_file: Path, data_dir: Path) -> None:
        broken = data_dir.parent / "broken.gguf"
        broken.write_bytes(gguf_file.read_bytes()[:-100])
        with pytest.raises(
            CheckpointError, match=r"broken\.gguf: tensor .* expected an end within"
        ):
            hub.pull(str(broken), data_dir)
        assert names_in(data_dir) == []

    def test_a_full_disk_is_an_error_of_ours(
        self, gguf_file: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*arguments: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("minimsg.hub.conversion.write_safetensors", full)
        with pytest.raises(ConfigError, match="No space left"):
            hub.pull(str(gguf_file), data_dir)
        assert names_in(data_dir) == []


class TestNames:
    def test_an_unknown_name_is_answered_with_what_is_here_and_what_could_be(
        self, data_dir: Path
    ) -> None:
        hub.resolve("tiny", data_dir)
        words = r"no model 'nonsense' in .*\(there: tiny\); `minimsg pull` takes smollm2, tiny"
        with pytest.raises(ModelNotFound, match=words):
            hub.resolve("nonsense", data_dir)

    @pytest.mark.parametrize("name", ["smollm2", "Qwen/Qwen3-0.6B"])
    def test_a_model_that_can_be_pulled_is_answered_with_the_command(
        self, name: str, data_dir: Path
    ) -> None:
        with pytest.raises(ModelNotFound, match=f"`minimsg pull {name}` fetches it"):
            hub.resolve(name, data_dir)

    @pytest.mark.parametrize(
        "name",
        ["nonsense", "absent.gguf", "a/b/c", "../x", "", "a/b.gguf", "n" * 300, "ü" * 130, "a\0b"],
    )
    def test_what_is_no_source_is_refused(self, name: str, data_dir: Path) -> None:
        for use in (hub.pull, hub.resolve):
            with pytest.raises(ModelNotFound, match="no model"):
                use(name, data_dir)
        assert not data_dir.exists() or names_in(data_dir) == []

    @pytest.mark.parametrize("name", ["../../etc", "/etc/x", "..", ".", "a/../../b", "C:\\x", ""])
    def test_no_name_leads_out_of_the_models_folder(self, name: str) -> None:
        folder = store.folder_name(name)
        assert Path(folder).name == folder
        assert folder not in ("", ".", "..")

    def test_names_that_are_too_long_for_a_folder_stay_apart(self, tmp_path: Path) -> None:
        folders = {store.folder_name("ü" * 200 + end) for end in "ab"}
        assert len(folders) == 2
        for folder in folders:
            (tmp_path / folder).mkdir()

    def test_ensure_makes_what_is_not_here(self, gguf_file: Path, data_dir: Path) -> None:
        assert hub.ensure(str(gguf_file), data_dir) == hub.resolve(str(gguf_file), data_dir)

    def test_the_data_folder_follows_its_environment_name(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("MINIMSG_DATA_DIR", str(tmp_path / "elsewhere"))
        assert hub.resolve("scripted") == tmp_path / "elsewhere" / "models" / "scripted"

    @pytest.mark.parametrize("get", [hub.resolve, hub.pull])
    def test_a_trained_model_of_an_earlier_version_is_replaced(
        self, get: Callable[[str, Path], Path], data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def write_earlier(folder: Path) -> None:
            copy_model(folder)
            (folder / "model.safetensors").write_bytes(b"other weights")

        with monkeypatch.context() as patch:
            patch.setitem(WRITERS, "tiny-vl", write_earlier)
            assert not is_copied(hub.pull("tiny-vl", data_dir))
        assert is_copied(get("tiny-vl", data_dir))

    def test_a_copy_that_cannot_be_read_is_made_again(
        self, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = hub.pull("tiny-vl", data_dir)
        read_bytes = Path.read_bytes

        def denied(path: Path) -> bytes:
            if path.parent == folder:
                raise PermissionError(13, "Permission denied")
            return read_bytes(path)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", denied)
            assert hub.resolve("tiny-vl", data_dir) == folder
        assert is_copied(folder)
