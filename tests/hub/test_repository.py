"""A hub repository is fetched by the real library, from a server of ours on the loopback.

Each pull is a process of its own: the library reads the hub's address once, at import.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from minimsg import builtin, hub
from minimsg.errors import ConfigError
from minimsg.hub import store

from ..models.gguf_files import random_model  # noqa: TID252 tests have no absolute name
from .conftest import names_in
from .fake_hub import FakeHub, handler_of


class TestHubRepository:
    @pytest.fixture
    def fake(self, tmp_path: Path) -> Iterator[FakeHub]:
        folder = tmp_path / "published"
        random_model("qwen3").save_pretrained(folder)
        builtin.byte_tokenizer().save(str(folder / "tokenizer.json"))
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        unwanted = {
            "README.md": b"words",
            "pytorch_model.bin": b"pickle",
            "onnx/config.json": b"{}",
        }
        fake = FakeHub(files | unwanted)
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(fake))
        fake.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield fake
        server.shutdown()
        server.server_close()
        thread.join()

    def pull(self, fake: FakeHub, data_dir: Path, name: str = "org/repo") -> tuple[int, str]:
        """Exit code and output of `minimsg pull`; the library reads its address at import."""
        environment = {
            **os.environ,
            "HF_ENDPOINT": fake.address,
            "HF_HOME": str(data_dir.parent / "hf"),
            "HF_HUB_DISABLE_XET": "1",
            "NO_PROXY": "127.0.0.1",
        }
        command = [sys.executable, "-c", "from minimsg.cli.main import main; main()"]
        done = subprocess.run(
            [*command, "pull", name, "--data-dir", str(data_dir)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stderr + done.stdout

    def test_only_what_serving_needs_is_fetched(self, fake: FakeHub, data_dir: Path) -> None:
        code, output = self.pull(fake, data_dir)
        folder = data_dir / "models" / "org--repo"
        assert (code, output.splitlines()[-1]) == (0, str(folder)), output
        wanted = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"}
        assert fake.fetched == wanted
        for name in wanted:
            assert (folder / name).read_bytes() == fake.files[name]
        assert "model.safetensors (" in output
        assert hub.resolve("org/repo", data_dir) == folder
        manifest = store.check(folder, hashes=True)
        assert (manifest.name, manifest.license) == ("org/repo", "apache-2.0")

    def test_a_transfer_that_broke_off_goes_on_where_it_stopped(
        self, fake: FakeHub, data_dir: Path
    ) -> None:
        fake.files["LICENSE"] = bytes(25 << 20)  # the library writes in pieces of 10 MiB
        fake.cut_once = "LICENSE"
        code, output = self.pull(fake, data_dir)
        assert code == 0, output
        assert fake.ranges == [f"bytes={10 << 20}-"]
        assert (data_dir / "models" / "org--repo" / "LICENSE").read_bytes() == bytes(25 << 20)

    def test_a_pull_that_failed_keeps_the_files_that_were_complete(
        self, fake: FakeHub, data_dir: Path
    ) -> None:
        fake.files["LICENSE"] = b"words"  # the last file, and not the listed one
        fake.hashes["LICENSE"] = "0" * 64
        assert self.pull(fake, data_dir)[0] == 2
        assert "model.safetensors" in fake.fetched
        fake.fetched.clear()
        fake.hashes.clear()
        code, output = self.pull(fake, data_dir)
        assert code == 0, output
        assert fake.fetched == {"LICENSE"}

    def test_a_file_that_is_not_the_listed_one_is_refused(
        self, fake: FakeHub, data_dir: Path
    ) -> None:
        fake.hashes["model.safetensors"] = "0" * 64
        code, output = self.pull(fake, data_dir)
        assert code == 2
        assert "model.safetensors: SHA-256" in output
        assert names_in(data_dir) == []

    def test_weights_that_do_not_fit_the_config_are_refused(
        self, fake: FakeHub, data_dir: Path
    ) -> None:
        config = json.loads(fake.files["config.json"])
        change = {"num_hidden_layers": 5, "layer_types": None}
        fake.files["config.json"] = json.dumps(config | change).encode()
        code, output = self.pull(fake, data_dir)
        assert code == 2
        assert "lacks model.layers.2." in output.replace("\n", "")
        assert names_in(data_dir) == []

    def test_a_repository_without_safetensors_is_refused(
        self, fake: FakeHub, data_dir: Path
    ) -> None:
        del fake.files["model.safetensors"]
        code, output = self.pull(fake, data_dir)
        assert code == 2
        assert "no safetensors" in output
        assert fake.fetched == set()

    def test_an_unknown_repository_is_said_to_be_unknown(
        self, fake: FakeHub, data_dir: Path
    ) -> None:
        code, output = self.pull(fake, data_dir, "org/other")
        assert code == 2
        assert "org/other could not be fetched from the hub" in output

    def test_without_the_library_the_command_that_adds_it_is_said(
        self, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("minimsg.hub.extras.find_spec", lambda package: None)
        with pytest.raises(ConfigError, match=r"pip install 'minimsg\[hub\]'"):
            hub.pull("org/repo", data_dir)
