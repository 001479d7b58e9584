"""A model is whole or not there, whoever is killed, slower, or damaged on the disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minimsg import hub
from minimsg.errors import CheckpointError, ModelNotFound
from minimsg.hub import staging, store

from .conftest import names_in

PULL_AND_HANG = """
import sys, time
from pathlib import Path
from minimsg import hub

def progress(stage, done, total):
    print(stage, flush=True)
    time.sleep(60)

hub.pull(sys.argv[1], Path(sys.argv[2]), progress)
"""
PULL = "import sys; from pathlib import Path; from minimsg import hub; "
PULL += "print(hub.pull(sys.argv[1], Path(sys.argv[2])))"


class TestWholeOrNotAtAll:
    @pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX")
    def test_a_killed_pull_leaves_no_model_and_does_not_stop_the_next(
        self, gguf_file: Path, data_dir: Path
    ) -> None:
        command = [sys.executable, "-c", PULL_AND_HANG, str(gguf_file), str(data_dir)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "converting\n"  # weights are being written
            process.send_signal(signal.SIGKILL)
        assert [name[:9] for name in names_in(data_dir)] == [".partial-"]
        with pytest.raises(ModelNotFound):
            hub.resolve(str(gguf_file), data_dir)
        assert hub.list_models(data_dir) == []
        folder = hub.pull(str(gguf_file), data_dir)
        assert hub.resolve(str(gguf_file), data_dir) == folder
        if staging.HAS_LOCKS:
            assert names_in(data_dir) == [folder.name]

    @pytest.mark.skipif(not staging.HAS_LOCKS, reason="needs file locks")
    def test_a_pull_that_keeps_silent_for_hours_keeps_its_folder(self, data_dir: Path) -> None:
        target = data_dir / "models" / "slow"

        def fill(folder: Path) -> store.Origin:
            work = folder.parent
            for path in (*work.rglob("*"), work):
                os.utime(path, (time.time() - 7200,) * 2)
            hub.pull("scripted", data_dir)  # another one sweeps
            (folder / "file").write_text("arrived")
            return store.Origin("here", None)

        store.build(target, "slow", fill)
        assert (target / "file").read_text() == "arrived"
        assert names_in(data_dir) == ["scripted", "slow"]

    def test_what_was_left_without_a_lock_is_removed_once_it_is_old(
        self, gguf_file: Path, data_dir: Path
    ) -> None:
        old, fresh = (data_dir / "models" / f".partial-{age}" for age in ("old", "fresh"))
        for work in (old, fresh):
            (work / "small").mkdir(parents=True)
        for path in (old / "small", old):
            os.utime(path, (time.time() - 7200,) * 2)
        hub.pull(str(gguf_file), data_dir)
        assert not old.exists()
        assert fresh.exists()

    def test_pulls_of_the_same_model_at_once_all_succeed(
        self, gguf_file: Path, data_dir: Path
    ) -> None:
        command = [sys.executable, "-c", PULL, str(gguf_file), str(data_dir)]
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        printed = {process.communicate(timeout=120)[0] for process in started}
        assert [process.returncode for process in started] == [0, 0, 0]
        assert printed == {f"{hub.resolve(str(gguf_file), data_dir)}\n"}
        assert len(names_in(data_dir)) == 1

    def test_the_slower_of_two_builders_takes_the_model_of_the_faster(self, data_dir: Path) -> None:
        target = data_dir / "models" / "m"

        def fill(text: str, meanwhile: bool, folder: Path) -> store.Origin:
            (folder / "file").write_text(text)
            if meanwhile:
                store.build(target, "m", lambda inner: fill("faster", False, inner))
            return store.Origin("here", None)

        store.build(target, "m", lambda folder: fill("slower", True, folder))
        assert (target / "file").read_text() == "faster"
        assert names_in(data_dir) == ["m"]


class TestDamage:
    @pytest.fixture
    def folder(self, gguf_file: Path, data_dir: Path) -> Path:
        return hub.pull(str(gguf_file), data_dir)

    def test_a_shorter_file_is_refused_with_both_sizes_and_the_cure(
        self, folder: Path, data_dir: Path
    ) -> None:
        weights = folder / "model.safetensors"
        size = weights.stat().st_size
        with weights.open("r+b") as file:
            file.truncate(size - 1)
        words = f"model.safetensors: {size - 1:,} bytes; expected {size:,} bytes .*minimsg pull"
        with pytest.raises(CheckpointError, match=words):
            hub.resolve(folder.name, data_dir)

    def test_a_missing_file_is_said_and_made_again_by_pull(
        self, folder: Path, gguf_file: Path, data_dir: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (folder / "tokenizer.json").unlink()
        with pytest.raises(CheckpointError, match=r"tokenizer\.json: missing"):
            hub.resolve(str(gguf_file), data_dir)
        hub.pull(str(gguf_file), data_dir)
        assert "tokenizer.json: missing" in caplog.text
        assert hub.resolve(str(gguf_file), data_dir) == folder
        assert names_in(data_dir) == [folder.name]

    def test_only_verify_sees_changed_contents_and_repairs_them(
        self, folder: Path, gguf_file: Path, data_dir: Path
    ) -> None:
        weights = folder / "model.safetensors"
        good = weights.read_bytes()
        weights.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        with pytest.raises(CheckpointError, match="SHA-256"):
            store.check(folder, hashes=True)
        hub.pull(str(gguf_file), data_dir)
        assert weights.read_bytes() != good
        hub.pull(str(gguf_file), data_dir, verify=True)
        assert weights.read_bytes() == good

    @pytest.mark.parametrize(
        "manifest",
        [
            "",
            "[]",
            "{}",
            '{"files": {"config.json": 1}}',
            "\0",
            "[" * 200_000,
            '{"name": "m", "source": "s", "created_at": "t", "files": {"f": {"size": "1"}}}',
        ],
    )
    def test_a_folder_without_a_sound_manifest_is_no_model(
        self, manifest: str, folder: Path, data_dir: Path
    ) -> None:
        (folder / "minimsg.json").write_text(manifest)
        with pytest.raises(CheckpointError, match=r"minimsg\.json: unreadable"):
            hub.resolve(folder.name, data_dir)
        assert hub.list_models(data_dir) == []

    def test_a_broken_manifest_is_made_again_by_pull(self, data_dir: Path) -> None:
        folder = hub.pull("scripted", data_dir)
        (folder / "minimsg.json").write_text("[" * 200_000)
        assert hub.pull("scripted", data_dir) == folder
        assert [path for path, _ in hub.list_models(data_dir)] == [folder]

    def test_a_file_name_that_no_folder_can_hold_is_missing(self, data_dir: Path) -> None:
        folder = hub.pull("scripted", data_dir)
        manifest = folder / "minimsg.json"
        data = json.loads(manifest.read_text())
        data["files"]["f" * 300] = {"size": 1, "sha256": ""}
        manifest.write_text(json.dumps(data))
        with pytest.raises(CheckpointError, match="fff: missing"):
            hub.resolve("scripted", data_dir)
