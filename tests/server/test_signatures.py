"""Signatures of thinking blocks: what is known again, what is not, and where the key lies."""

from __future__ import annotations

import hmac
import stat
import zlib
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minimsg.limits import LIMITS
from minimsg.server.signatures import KEY_FILE, Seal, server_key

KEY = bytes(range(32))
SEAL = Seal.of("alice", KEY)


@given(thinking=st.text(st.characters(codec="utf-8")))
def test_a_signature_gives_back_what_was_thought(thinking: str) -> None:
    assert SEAL.open(SEAL.sign(thinking)) == thinking


def test_a_signature_is_of_the_documented_form() -> None:
    tenant_key = hmac.digest(KEY, b"tenant alice", "sha256")
    signed = zlib.compress(b"plan")
    mac = hmac.new(tenant_key, b"\x01" + signed, "sha256").digest()
    assert SEAL.sign("plan") == urlsafe_b64encode(b"\x01" + mac + signed).decode()


def test_the_same_thought_has_the_same_signature() -> None:
    assert SEAL.sign("plan") == Seal.of("alice", KEY).sign("plan")


def test_another_tenant_and_another_server_do_not_know_it() -> None:
    signature = SEAL.sign("plan")
    assert Seal.of("bob", KEY).open(signature) is None
    assert Seal.of("alice", KEY[::-1]).open(signature) is None


@pytest.mark.parametrize(
    "signature", ["", "=", "ErUBCkYIA", "AQ==", "é", "\ud800", "A" * 100, "\n", "AQ" * 22]
)
def test_what_is_not_ours_is_not_opened(signature: str) -> None:
    assert SEAL.open(signature) is None


def test_no_single_character_can_be_changed_added_or_left_out() -> None:
    signature = SEAL.sign("Let me think about it.")
    for place, character in enumerate(signature):
        before, after = signature[:place], signature[place + 1 :]
        for other in ("A", "B", "_", "=", "\n", ""):
            if other != character:
                assert SEAL.open(before + other + after) is None, (place, other)
        assert SEAL.open(before + "\n" + character + after) is None
    assert SEAL.open(signature + "A") is None


def test_a_bomb_is_not_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zlib.compress(bytes(1 << 24))
    forged = urlsafe_b64encode(b"\x01" + bytes(32) + bomb).decode()
    monkeypatch.setattr(zlib, "decompress", lambda data: pytest.fail("inflated"))
    assert SEAL.open(forged) is None


def test_a_signature_that_is_too_long_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Seal, "_mac", lambda *args: pytest.fail("looked at"))
    assert SEAL.open("A" * (LIMITS.signature_chars + 4)) is None


def test_a_seal_does_not_show_its_key() -> None:
    assert SEAL.key not in repr(SEAL)


class TestServerKey:
    def test_it_is_made_once_and_only_its_owner_can_read_it(self, tmp_path: Path) -> None:
        folder = tmp_path / "new" / "data"
        key = server_key(folder)
        assert len(key) == 32
        assert server_key(folder) == key == (folder / KEY_FILE).read_bytes()
        assert stat.S_IMODE((folder / KEY_FILE).stat().st_mode) == 0o600
        assert [file.name for file in folder.iterdir()] == [KEY_FILE]

    def test_two_data_folders_have_two_keys(self, tmp_path: Path) -> None:
        assert server_key(tmp_path / "a") != server_key(tmp_path / "b")

    @pytest.mark.parametrize("content", [b"", b"short", bytes(33)])
    def test_a_file_that_holds_no_key_is_left_alone(
        self, tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / KEY_FILE).write_bytes(content)
        assert server_key(tmp_path) != server_key(tmp_path)
        assert (tmp_path / KEY_FILE).read_bytes() == content
        assert "for this run only" in caplog.text

    def test_a_folder_that_cannot_be_written_gives_a_key_for_this_run(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "file").write_text("no folder")
        assert len(server_key(tmp_path / "file")) == 32
        assert "for this run only" in caplog.text
