"""`minimsg doctor` says what is wrong and what to do, and its exit code agrees."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from minimsg import hub
from minimsg.cli.main import main


def diagnose(*arguments: str) -> tuple[int, dict[str, dict[str, object]]]:
    """Exit code, and the checks by name."""
    result = CliRunner().invoke(main, ["doctor", "--json", "--port", "0", *arguments])
    report = json.loads(result.output)
    assert report["would_serve"] == (result.exit_code == 0)
    return result.exit_code, {check["name"]: check for check in report["checks"]}


def test_a_machine_that_can_serve_is_told_so(tmp_path: Path) -> None:
    code, checks = diagnose("--data-dir", str(tmp_path))
    assert code == 0
    assert {"python", "engine", "memory", "port", "kernel reference"} <= checks.keys()


def test_only_what_is_not_ok_has_a_remedy(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for check in diagnose("--data-dir", str(file / "models"))[1].values():
        assert ("remedy" in check) != check["ok"]


def test_the_report_holds_machine_and_versions() -> None:
    report = json.loads(CliRunner().invoke(main, ["doctor", "--json", "--port", "0"]).output)
    assert report["machine"]["cores"] >= 1
    assert report["versions"]["torch"]


@pytest.mark.parametrize("has_apple_gpu", [False, True])
def test_a_kernel_that_no_hardware_has_run_is_marked_so(
    has_apple_gpu: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: has_apple_gpu)
    backends = ("minimsg.kernels.metal_paged", "minimsg.kernels.reference")
    monkeypatch.setattr("minimsg.kernels.BACKENDS", backends)
    kernel = diagnose("--data-dir", str(tmp_path))[1]["kernel metal_paged"]
    found = "can run on mps" if has_apple_gpu else "it runs on Apple GPUs (mps) only, not on cpu"
    assert kernel["ok"] == has_apple_gpu
    assert f"{found} (emulated in tests, not yet run on hardware)" in str(kernel["found"])


def test_a_port_in_use_is_found(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, checks = diagnose("--data-dir", str(tmp_path), "--port", str(port))
    assert code == 1
    assert not checks["port"]["ok"]
    assert "--port" in str(checks["port"]["remedy"])


def test_a_changed_byte_in_a_model_is_found(tmp_path: Path) -> None:
    folder = hub.pull("tiny", tmp_path)
    assert diagnose("--data-dir", str(tmp_path))[0] == 0
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert diagnose("--data-dir", str(tmp_path))[0] == 0, "sizes are right, and all that is asked"
    code, checks = diagnose("--data-dir", str(tmp_path), "--verify")
    assert code == 1
    assert "SHA-256" in str(checks["model tiny"]["found"])


def test_a_data_folder_that_is_a_file_is_found(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    code, checks = diagnose("--data-dir", str(file / "models"))
    assert code == 1
    assert not checks["data folder"]["ok"]


def test_for_a_person_each_check_is_a_line_with_a_remedy(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = str(other.getsockname()[1])
        result = CliRunner().invoke(main, ["doctor", "--data-dir", str(tmp_path), "--port", port])
    lines = result.output.splitlines()
    assert any(line.startswith("ok ") and "python" in line for line in lines)
    broken = next(number for number, line in enumerate(lines) if line.startswith("NO "))
    assert "port" in lines[broken]
    assert "choose another --port" in lines[broken + 1]


@pytest.mark.parametrize("package", ["torch", "gguf"])
def test_without_the_engine_it_still_works_and_names_the_command(package: str) -> None:
    hide = f"import sys; sys.modules['{package}'] = None"
    run = "from minimsg.cli.main import main; main(['doctor', '--json', '--port', '0'])"
    done = subprocess.run(
        [sys.executable, "-c", f"{hide}; {run}"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1, done.stderr
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert package in checks["engine"]["found"]
    assert "minimsg[engine]" in checks["engine"]["remedy"]
