"""Tokenizers written by the tests: byte-level as Qwen's, piece-like as Llama 2's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

from minimsg.errors import ModelNotFound
from minimsg.text.tokenizer import Tokenizer

CORPUS = [
    "The cat sat on the mat, and the dog said hello to the cat.",
    "Tool calls start with call and end with call; 12 345 numbers.",
    "Grüße aus Köln! naïve café, 你好世界, emoji 👩‍🚀 and more text\n\n  with spaces\tand tabs",
]
ADDED = [
    AddedToken("<|start|>", special=True, normalized=False),
    AddedToken("<|end|>", special=True, normalized=False),
    AddedToken("<call>", special=False, normalized=False),
    AddedToken("</call>", special=False, normalized=False),
]


@pytest.fixture(scope="session")
def byte_level_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """NFC, a split regex, the byte alphabet, four added tokens of which two are special."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(r"\p{N}| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+"), "isolated")
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, to_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_tokens(ADDED)
    folder = tmp_path_factory.mktemp("byte_level")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def piece_description(prepend_scheme: str) -> dict[str, object]:
    """A Llama-2-like tokenizer.json: 256 bytes, a few pieces, one control token."""
    pieces = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += ["▁", *"Heloabcn", "He", "ll", "Hell", "Hello", "▁Hello", "ab"]
    merges = [["H", "e"], ["l", "l"], ["He", "ll"], ["Hell", "o"], ["▁", "Hello"], ["a", "b"]]
    space = {"pattern": {"String": "▁"}, "content": " "}
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": id, "content": text, "special": True, "normalized": False}
            | {"single_word": False, "lstrip": False, "rstrip": False}
            for id, text in enumerate(["<unk>", "<s>"])
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Metaspace",
            "replacement": "▁",
            "prepend_scheme": prepend_scheme,
            "split": False,
        },
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", **space},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {piece: id for id, piece in enumerate(pieces)},
            "merges": merges,
        },
    }


@pytest.fixture(scope="session")
def pieces_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pieces")
    text = json.dumps(piece_description("first"))
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Pair:
    """Our tokenizer and the `tokenizers` library on the same file."""

    ours: Tokenizer
    theirs: tokenizers.Tokenizer


@pytest.fixture(scope="session")
def pair(request: pytest.FixtureRequest) -> Pair:
    """The tokenizers that an indirect parameter names: byte_level, pieces, qwen3 or smollm2."""
    folder = _folder(request, request.param)
    file = folder / "tokenizer.json"
    return Pair(Tokenizer.from_folder(folder), tokenizers.Tokenizer.from_file(str(file)))


def _folder(request: pytest.FixtureRequest, name: str) -> Path:
    if name == "smollm2":
        hub = pytest.importorskip("minimsg.hub")
        try:
            pulled: Path = hub.resolve("smollm2", hub.default_data_dir())
        except ModelNotFound as error:
            pytest.skip(f"{error}")
        return pulled
    if name == "qwen3":
        data: Path = request.getfixturevalue("test_data")
        return data / "data" / "qwen3"
    written: Path = request.getfixturevalue(f"{name}_folder")
    return written
