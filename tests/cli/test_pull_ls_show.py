"""The three commands that have to do with models on the disk, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from minimsg.cli.ls import count, size
from minimsg.cli.main import main

from ..models.gguf_files import random_model, write_gguf  # noqa: TID252 tests have no absolute name


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


def run(*arguments: object, data_dir: Path) -> Result:
    words = [str(argument) for argument in arguments]
    return CliRunner().invoke(main, [*words, "--data-dir", str(data_dir)])


def stdout(*arguments: object, data_dir: Path) -> str:
    result = run(*arguments, data_dir=data_dir)
    assert result.exit_code == 0, result.output
    return result.stdout


class TestPull:
    def test_the_folder_is_all_that_stands_on_standard_output(self, data_dir: Path) -> None:
        folder = data_dir / "models" / "tiny"
        assert stdout("pull", "tiny", data_dir=data_dir) == f"{folder}\n"
        assert (folder / "model.safetensors").is_file()

    def test_progress_goes_to_standard_error_one_line_a_stage(
        self, data_dir: Path, tmp_path: Path
    ) -> None:
        write_gguf(tmp_path / "m.gguf", random_model("llama"))
        result = run("pull", tmp_path / "m.gguf", data_dir=data_dir)
        assert result.stdout.splitlines() == [str(*(data_dir / "models").iterdir())]
        assert result.stderr.splitlines() == ["converting (5 MB)"]

    def test_a_model_that_cannot_be_had_is_exit_code_2_and_one_paragraph(
        self, data_dir: Path
    ) -> None:
        result = run("pull", "nonsense", data_dir=data_dir)
        assert result.exit_code == 2
        assert result.stderr.startswith("Error: no model 'nonsense'")
        assert "Traceback" not in result.output

    @pytest.mark.parametrize(
        ("name", "why"),
        [
            ("./no-such.gguf", "no such file or folder: ./no-such.gguf"),
            ("/etc/passwd", "/etc/passwd is not a model"),
            ("smolm2", "did you mean smollm2?"),
        ],
    )
    def test_a_name_that_says_what_is_wrong_with_it_is_answered_with_that(
        self, data_dir: Path, name: str, why: str
    ) -> None:
        for verb in ("pull", "show"):
            result = run(verb, name, data_dir=data_dir)
            assert result.exit_code == 2
            assert why in result.stderr

    def test_the_data_folder_may_come_from_the_environment(self, data_dir: Path) -> None:
        result = CliRunner().invoke(
            main, ["pull", "scripted"], env={"MINIMSG_DATA_DIR": str(data_dir)}
        )
        assert result.stdout == f"{data_dir / 'models' / 'scripted'}\n"

    def test_verify_repairs_what_has_the_right_size_and_wrong_contents(
        self, data_dir: Path
    ) -> None:
        run("pull", "tiny", data_dir=data_dir)
        template = data_dir / "models" / "tiny" / "chat_template.jinja"
        good = template.read_text()
        template.write_text("x" * len(good))
        run("pull", "tiny", data_dir=data_dir)
        assert template.read_text() != good
        run("pull", "tiny", "--verify", data_dir=data_dir)
        assert template.read_text() == good


class TestLs:
    def test_an_empty_folder_says_what_to_do(self, data_dir: Path) -> None:
        assert "`minimsg pull smollm2`" in stdout("ls", data_dir=data_dir)
        assert json.loads(stdout("ls", "--json", data_dir=data_dir)) == []

    def test_a_model_is_a_line(self, data_dir: Path) -> None:
        run("pull", "tiny", data_dir=data_dir)
        title, line = stdout("ls", data_dir=data_dir).splitlines()
        assert title.split() == ["NAME", "ARCHITECTURE", "PARAMETERS", "SIZE", "SOURCE"]
        assert line.split()[:3] == ["tiny", "qwen3", "90.7K"]
        assert line.endswith("built in")

    def test_json_has_the_numbers(self, data_dir: Path) -> None:
        run("pull", "tiny", data_dir=data_dir)
        (model,) = json.loads(stdout("ls", "--json", data_dir=data_dir))
        # embedding; per layer q, o; k, v; three MLP matrices; two norms and two head norms
        layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64 + 2 * 16
        files = (data_dir / "models" / "tiny").iterdir()
        assert model == {
            "name": "tiny",
            "architecture": "qwen3",
            "parameters": 259 * 64 + 2 * layer + 64,
            "size_bytes": sum(f.stat().st_size for f in files if f.name != "minimsg.json"),
            "source": "built in",
        }

    def test_a_damaged_model_is_named_and_hides_no_other(self, data_dir: Path) -> None:
        for name in ("tiny", "scripted"):
            run("pull", name, data_dir=data_dir)
        (data_dir / "models" / "scripted" / "tokenizer.json").unlink()
        result = run("ls", data_dir=data_dir)
        assert "tiny" in result.stdout
        assert "scripted" not in result.stdout
        assert result.stderr.startswith("damaged: ")
        assert "tokenizer.json: missing" in result.stderr


class TestShow:
    def test_json_tells_all_of_a_model(self, data_dir: Path) -> None:
        facts = json.loads(stdout("show", "tiny", "--json", data_dir=data_dir))
        expected = {
            "name": "tiny",
            "folder": str(data_dir / "models" / "tiny"),
            "source": "built in",
            "license": "Apache-2.0",
            "architecture": "qwen3",
            "stored_as": ["F32"],
            "layers": 2,
            "heads": 4,
            "kv_heads": 2,
            "head_dim": 16,
            "max_context": 2048,
            "rope": {"kind": "default", "theta": 10000.0},
            "end_tokens": {"<|im_end|>": 258},
            "control_tokens": 3,
            "chat_template": "found",
        }
        assert {key: facts[key] for key in expected} == expected
        assert facts["sampling"]["temperature"] == 1
        assert facts["files"]["model.safetensors"] > 90_000 * 4
        assert facts["auto_dtype"] in ("float32 on cpu", "bfloat16 on cpu", "bfloat16 on cuda")

    def test_without_torch_only_the_number_format_is_unknown(
        self, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("minimsg.hub.describe.find_spec", lambda name: None)
        output = stdout("show", "tiny", data_dir=data_dir)
        assert "auto dtype         unknown: torch is not installed" in output
        assert "head dim           16" in output

    def test_a_folder_used_in_place_shows_its_own_files(
        self, data_dir: Path, tmp_path: Path
    ) -> None:
        source = Path(stdout("pull", "tiny", data_dir=data_dir).strip())
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            (tmp_path / name).write_bytes((source / name).read_bytes())
        facts = json.loads(stdout("show", tmp_path, "--json", data_dir=data_dir))
        assert facts["files"].keys() >= {"config.json", "tokenizer.json", "model.safetensors"}
        assert facts["chat_template"] == "none: a base model, which cannot chat"
        assert facts["source"] == "a folder, used in place"

    def test_what_is_not_here_is_said_with_the_cure(self, data_dir: Path) -> None:
        result = run("show", "smollm2", data_dir=data_dir)
        assert result.exit_code == 2
        assert "`minimsg pull smollm2` fetches it" in result.stderr


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (999, "999"), (90_688, "90.7K"), (134_515_008, "134.5M")]
)
def test_counts_are_rounded_to_a_unit(number: int, text: str) -> None:
    assert count(number) == text


@pytest.mark.parametrize(
    ("number", "text"), [(12, "12 B"), (3_522_656, "3.5 MB"), (16_060_522_752, "16.1 GB")]
)
def test_sizes_are_rounded_to_a_unit(number: int, text: str) -> None:
    assert size(number) == text
