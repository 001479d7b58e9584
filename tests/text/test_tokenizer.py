"""The oracle is the `tokenizers` library on the whole file, control tokens included."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
import tokenizers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minimsg.errors import CheckpointError, InternalError, InvalidRequest
from minimsg.text import tokenizer as module
from minimsg.text.tokenizer import Tokenizer

TOKENIZERS = ["byte_level", "pieces", "qwen3", pytest.param("smollm2", marks=pytest.mark.weights)]
TEXTS = [
    "",
    " ",
    "Hello",
    " Hello  world\n\n\n",
    "e\u0301 vs é, \u1112\u1161\u11ab vs 한, \u212b vs Å",
    "\u0344\u0958\ufb2a NFC takes these apart",
    "👩‍🚀👩🏽‍🤝‍👨🏿 \U0001f600",
    "\x00\x1f\x7f\x85\u2028\ufeff\ufffd\uffff",
    "١٢٣ ½ ² 12345 0x1F",
    "def f(x):\n\treturn {'a': [x] * 3}\r\n",
    "你好，世界。こんにちは ไทย עברית العربية",
    "a" * 1000,
    " " * 300 + "x",
]


class Pair(Protocol):
    """See conftest.py."""

    ours: Tokenizer
    theirs: tokenizers.Tokenizer


def genuine(folder: Path) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.mark.parametrize("pair", TOKENIZERS, indirect=True)
@pytest.mark.parametrize("text", TEXTS)
def test_plain_text_encodes_as_the_genuine_tokenizer_does(pair: Pair, text: str) -> None:
    assert pair.ours.encode(text) == pair.theirs.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("pair", ["byte_level", "qwen3"], indirect=True)
@pytest.mark.parametrize("text", TEXTS)
def test_an_id_begins_where_the_bytes_of_those_before_it_end(pair: Pair, text: str) -> None:
    text = unicodedata.normalize("NFC", text)  # so that the bytes are those of the text
    data, place = text.encode(), 0
    expected: list[int] = []
    for id in pair.ours.encode(text):
        expected.append(len(data[:place].decode(errors="ignore")))
        place += len(pair.ours.token_bytes(id))
    assert pair.ours.starts(text) == expected


@pytest.mark.parametrize("pair", TOKENIZERS, indirect=True)
@pytest.mark.parametrize("text", TEXTS)
def test_ids_begin_in_the_order_of_the_text(pair: Pair, text: str) -> None:
    for at_start in (True, False):
        starts = pair.ours.starts(text, at_start=at_start)
        assert len(starts) == len(pair.ours.encode(text, at_start=at_start))
        assert starts == sorted(starts)
        assert all(0 <= start < len(text) for start in starts)


@pytest.mark.parametrize("pair", TOKENIZERS, indirect=True)
def test_any_text_encodes_and_decodes_as_the_genuine_tokenizer_does(pair: Pair) -> None:
    ours, theirs = pair.ours, pair.theirs

    @settings(max_examples=300, suppress_health_check=list(HealthCheck))
    @given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("<|>▁ Hello\n")))
    def check(text: str) -> None:
        if not any(control in text for control in ours.control):
            ids = ours.encode(text)
            assert ids == theirs.encode(text, add_special_tokens=False).ids
            assert ours.decode(ids) == theirs.decode(ids)

    check()


@pytest.mark.parametrize("pair", TOKENIZERS, indirect=True)
def test_control_strings_encode_as_ordinary_text(pair: Pair) -> None:
    tokenizer = pair.ours
    for control, id in tokenizer.control.items():
        for text in (control, f"a{control}b", f" {control}\n{control}", control * 3):
            ids = tokenizer.encode(text)
            assert id not in ids
            assert tokenizer.decode(ids).lstrip() == text.lstrip()


@pytest.mark.parametrize("pair", ["byte_level", "qwen3"], indirect=True)
def test_all_ids_in_pairs_decode_as_the_genuine_tokenizer_does(pair: Pair) -> None:
    ours, theirs = pair.ours, pair.theirs
    for first in range(0, ours.vocab_size + 50, 1 + ours.vocab_size // 2_000):
        ids = [first, (first * 7919 + 13) % ours.vocab_size]
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)


def test_control_tokens_are_all_added_tokens_and_special_ones_are_not_shown(
    byte_level_folder: Path,
) -> None:
    tokenizer = Tokenizer.from_folder(byte_level_folder)
    assert list(tokenizer.control) == ["<|start|>", "<|end|>", "<call>", "</call>"]
    assert tokenizer.special_ids == {tokenizer.control["<|start|>"], tokenizer.control["<|end|>"]}
    ids = [tokenizer.control["<|start|>"], tokenizer.control["<call>"], *tokenizer.encode("x")]
    assert tokenizer.decode(ids) == "<call>x"


def test_an_id_outside_the_vocabulary_stands_for_nothing(byte_level_folder: Path) -> None:
    tokenizer = Tokenizer.from_folder(byte_level_folder)
    assert tokenizer.token_bytes(tokenizer.vocab_size) == b""
    assert tokenizer.token_bytes(-1) == b""
    assert tokenizer.token_bytes(tokenizer.vocab_size - 1) == b"</call>"


def test_each_byte_of_the_byte_alphabet_is_some_token(byte_level_folder: Path) -> None:
    tokenizer = Tokenizer.from_folder(byte_level_folder)
    tokens = {tokenizer.token_bytes(id) for id in range(tokenizer.vocab_size)}
    assert {bytes([byte]) for byte in range(256)} <= tokens


def test_the_space_of_a_piece_tokenizer_is_put_before_the_start_only(pieces_folder: Path) -> None:
    tokenizer = Tokenizer.from_folder(pieces_folder)
    whole = genuine(pieces_folder).encode("Hello<s>Hello", add_special_tokens=False).ids
    at_start, later = tokenizer.encode("Hello"), tokenizer.encode("Hello", at_start=False)
    assert [*at_start, tokenizer.control["<s>"], *later] == whole
    assert at_start != later


def test_a_piece_tokenizer_writes_bytes_and_drops_one_leading_space(pieces_folder: Path) -> None:
    tokenizer = Tokenizer.from_folder(pieces_folder)
    vocabulary = genuine(pieces_folder).get_vocab()
    ids = [vocabulary[piece] for piece in ("▁Hello", "▁Hello", "<0xC3>", "<0xA9>", "<0x0A>")]
    assert tokenizer.decode(ids) == "Hello Helloé\n" == genuine(pieces_folder).decode(ids)
    assert tokenizer.token_bytes(ids[2]) == b"\xc3"


def test_no_token_is_longer_than_the_longest(byte_level_folder: Path) -> None:
    tokenizer = Tokenizer.from_folder(byte_level_folder)
    vocabulary = genuine(byte_level_folder).get_vocab(with_added_tokens=False)
    assert tokenizer.longest_token_bytes == max(map(len, vocabulary))


@pytest.mark.parametrize("pair", TOKENIZERS, indirect=True)
@pytest.mark.parametrize(
    "text",
    ["", "a" * 5_000, " " * 5_000, "\u1112\u1161\u11ab" * 500, "é한👩" * 300, "Hello " * 500],
)
def test_no_text_has_fewer_tokens_than_the_fewest(pair: Pair, text: str) -> None:
    fewest, exact = pair.ours.fewest_tokens(text), len(pair.ours.encode(text))
    assert fewest <= exact
    if text == "a" * 5_000:
        assert fewest > exact // 3, "a bound that is useful for the plainest absurd prompt"


@pytest.mark.parametrize("pair", ["pieces"], indirect=True)
@pytest.mark.parametrize("text", ["▁" * 3_000, "▁Hello" * 500, " ▁ ▁" * 500])
def test_a_space_mark_in_the_text_counts_as_the_space_it_is_taken_for(
    pair: Pair, text: str
) -> None:
    assert pair.ours.fewest_tokens(text) <= len(pair.theirs.encode(text).ids)


@pytest.mark.parametrize(
    ("folder", "change", "text"),
    [
        ("pieces_folder", lambda d: d["model"].update(byte_fallback=False), "☃" * 999),
        (
            "byte_level_folder",
            lambda d: d.update(pre_tokenizer=without_spaces(d["pre_tokenizer"])),
            " " * 999,
        ),
        ("byte_level_folder", lambda d: d["model"]["vocab"].pop("ġ"), "\x7f" * 999),
    ],
)
def test_what_a_tokenizer_leaves_out_does_not_count(
    folder: str,
    change: Callable[[dict[str, dict[str, object]]], None],
    text: str,
    request: pytest.FixtureRequest,
) -> None:
    tokenizer = described(request.getfixturevalue(folder), change)
    assert tokenizer.fewest_tokens(text) <= len(tokenizer.encode(text)) < 9


def without_spaces(pre_tokenizer: object) -> dict[str, object]:
    spaces = {"type": "Split", "pattern": {"Regex": r"\s"}, "behavior": "Removed", "invert": False}
    return {"type": "Sequence", "pretokenizers": [spaces, pre_tokenizer]}


def begin_and_end(before: list[str], after: list[str]) -> dict[str, object]:
    """A `TemplateProcessing` for text between control tokens, whose ids are 7 and 8."""
    ids = {"<s>": 7, "</s>": 8}
    kinds = ["SpecialToken"] * len(before) + ["Sequence"] + ["SpecialToken"] * len(after)
    parts = zip(kinds, [*before, "A", *after], strict=True)
    single = [{kind: {"id": name, "type_id": 0}} for kind, name in parts]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
    special = {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in {*before, *after}}
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": pair,
        "special_tokens": special,
    }


@pytest.mark.parametrize(
    ("before", "after"), [([], []), (["<s>"], []), (["<s>", "</s>"], ["</s>"]), ([], ["</s>"])]
)
def test_the_opening_is_what_the_genuine_tokenizer_puts_before_a_text(
    before: list[str], after: list[str], byte_level_folder: Path, tmp_path: Path
) -> None:
    description = json.loads((byte_level_folder / "tokenizer.json").read_text("utf-8"))
    description["post_processor"] = begin_and_end(before, after)
    (tmp_path / "tokenizer.json").write_text(json.dumps(description), encoding="utf-8")
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert tokenizer.encode("Hello") == genuine(byte_level_folder).encode("Hello").ids
    whole = genuine(tmp_path).encode("Hello").ids
    opened = tokenizer.opening_ids + tokenizer.encode("Hello")
    assert len(tokenizer.opening_ids) == len(before)
    assert whole[: len(opened)] == opened


def described(folder: Path, change: Callable[[dict[str, dict[str, object]]], None]) -> Tokenizer:
    """The tokenizer of `folder` after `change` to its description."""
    description = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    change(description)
    return Tokenizer(description)


def test_a_control_token_that_merges_would_build_is_not_built(pieces_folder: Path) -> None:
    def make_ab_a_control_token(description: dict[str, dict[str, object]]) -> None:
        id = description["model"]["vocab"]["ab"]  # type: ignore[index]
        added = {"id": id, "content": "ab", "special": False, "normalized": False}
        description["added_tokens"].append(added)  # type: ignore[attr-defined]

    tokenizer = described(pieces_folder, make_ab_a_control_token)
    ids = tokenizer.encode("cabc")
    assert tokenizer.control["ab"] not in ids
    assert tokenizer.decode(ids) == "cabc"


def test_a_whole_word_hit_cannot_be_a_control_token(byte_level_folder: Path) -> None:
    def hit_whole_words(description: dict[str, dict[str, object]]) -> None:
        model = description["model"]
        model["ignore_merges"] = True
        model["vocab"]["zebra"] = 404  # type: ignore[index]
        added = {"id": 404, "content": "zebra", "special": True, "normalized": False}
        description["added_tokens"] = [added]  # type: ignore[assignment]

    tokenizer = described(byte_level_folder, hit_whole_words)
    assert 404 not in tokenizer.encode("zebra")
    assert tokenizer.decode(tokenizer.encode("zebra")) == "zebra"


def test_the_unknown_token_is_a_control_token_too(pieces_folder: Path) -> None:
    def without_byte_fallback(description: dict[str, dict[str, object]]) -> None:
        description["model"]["byte_fallback"] = False

    tokenizer = described(pieces_folder, without_byte_fallback)
    assert tokenizer.control["<unk>"] not in tokenizer.encode("ab☃")


@pytest.mark.parametrize("tag", ["<think>", "</think>", "<tool_call>", "</tool_call>"])
def test_a_tag_that_parsers_read_is_shown_even_if_it_is_special(
    byte_level_folder: Path, tag: str
) -> None:
    def add_special(description: dict[str, dict[str, object]]) -> None:
        added = {"id": 404, "content": tag, "special": True, "normalized": False}
        description["added_tokens"].append(added)  # type: ignore[attr-defined]

    tokenizer = described(byte_level_folder, add_special)
    assert tokenizer.decode([404]) == tag
    assert 404 not in tokenizer.special_ids
    assert 404 not in tokenizer.encode(tag)


def test_lone_surrogates_are_refused(byte_level_folder: Path) -> None:
    with pytest.raises(InvalidRequest, match="lone surrogates"):
        Tokenizer.from_folder(byte_level_folder).encode("a\ud800b")


def test_a_panic_of_the_library_is_an_error_of_ours(
    byte_level_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Panic(BaseException):
        pass

    class Panicking:
        def encode(self, text: str, add_special_tokens: bool) -> None:
            raise Panic("called `Result::unwrap()` on an `Err` value")

    tokenizer = Tokenizer.from_folder(byte_level_folder)
    monkeypatch.setattr(tokenizer, "_at_start", Panicking())
    with pytest.raises(InternalError, match="tokenizer failed"):
        tokenizer.encode("x")


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_no_panic(interrupt: type[BaseException]) -> None:
    def work() -> None:
        raise interrupt

    with pytest.raises(interrupt):
        module._guarded(work)


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (lambda d: d.pop("model"), "no field 'model'"),
        (lambda d: d["model"].update(type="Unigram"), "type Unigram"),
        (lambda d: d.update(decoder={"type": "WordPiece"}), "WordPiece"),
        (lambda d: d.update(decoder=None), "a decoder made of"),
        (lambda d: d["model"]["merges"].append(["no", "where"]), "out of vocabulary"),
        (lambda d: d["added_tokens"].append({"id": "7", "content": "x"}), "id '7'"),
        (lambda d: d["added_tokens"].append({"id": 1 << 40, "content": "x"}), "1099511627776"),
        (lambda d: d["model"]["vocab"].update(zzz=2147483648), "'zzz' with id 2147483648"),
        (lambda d: d["model"]["vocab"].update(zzz=-1), "'zzz' with id -1"),
        (lambda d: d.update(post_processor={"type": "Backwards"}), "Backwards|variant"),
        (lambda d: d["added_tokens"].append({"id": 0, "content": "!"}), "single byte"),
        (lambda d: d.update(pre_tokenizer={"type": "Sideways"}), "Sideways|variant"),
    ],
)
def test_a_file_that_is_not_understood_is_refused(
    byte_level_folder: Path,
    tmp_path: Path,
    change: Callable[[dict[str, object]], None],
    seen: str,
) -> None:
    description = json.loads((byte_level_folder / "tokenizer.json").read_text("utf-8"))
    change(description)
    (tmp_path / "tokenizer.json").write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(CheckpointError, match=seen):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"model": 3}', b"null"])
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        Tokenizer.from_folder(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such file"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("pair", ["qwen3"], indirect=True)
def test_qwen3_normalizes_to_nfc(pair: Pair) -> None:
    tokenizer = pair.ours
    decomposed = unicodedata.normalize("NFD", "Ångström, été, 한국어")
    assert tokenizer.encode(decomposed) == tokenizer.encode("Ångström, été, 한국어")
