"""A tokenizer rebuilt from a GGUF gives the ids of the genuine one.

Oracles: the tokenizer.json published with Qwen3, of which a GGUF is written; for
SmolLM2, whose file is not at hand, its own vocabulary, the properties that its
pre-tokenizer promises, and strings that were split by hand.
"""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import gguf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from minimsg import builtin, hub
from minimsg.errors import CheckpointError, ModelNotFound, UnsupportedModel
from minimsg.models.gguf import GGUF
from minimsg.text.from_gguf import special_tokens, tokenizer_from_gguf

PIECES = (
    *("the", " quick", "Brown", "fox", "I'm", "don't", "WE'LL", "x'S", "_snake_case", "kebab-case"),
    *("0", "7", "42", "1234567", "3.14", "1e-9", "٣٤", "½", "²", "Ⅷ", "0x1F"),
    *(" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\t\t ", " \n ", "\u00a0", "\u3000", "\u200b"),
    *(
        "def f(x):\n    return x**2\n",
        "for(;;){i++;}",
        "<div class='a'>",
        "</div>",
        "=>",
        "!=",
        "//",
    ),
    *(
        "é",
        "e\u0301",
        "n\u0303",
        "ﬁ",
        "Å",
        "A\u030a",
        "\u0344",
        "각",
        "\u1100\u1161\u11a8",
        "ß",
        "İ",
    ),
    *("你好", "世界", "日本語", "カタカナ", "한국어", "Привет", "שלום", "مرحبا", "नमस्ते", "ไทย"),
    *("😀", "👩‍👩‍👧", "🇫🇷", "👍🏽", "\ufe0f", "\U0001f9ff", "\U0010ffff", "\x00", "\x7f", "\ufffd"),
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</tool_call>", "<|im_", "|>"),
    *(".", ",", "...", "?!", "—", "“", "”", "$5", "%", "@user", "#tag", "\\n", '"', "`code`"),
)


def varied_texts(count: int) -> list[str]:
    """Each piece, each pair of neighbours, and longer mixtures."""
    chooser = random.Random(0)
    pairs = ["".join(pair) for pair in itertools.pairwise(PIECES)]
    mixed = ["".join(chooser.choices(PIECES, k=chooser.randint(2, 20))) for _ in range(count)]
    return [*PIECES, *pairs, *mixed]


def write_vocabulary(
    file: Path, tokens: list[str], types: list[int], merges: list[str], pre: str
) -> Path:
    writer = gguf.GGUFWriter(file, "qwen3")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return file


@pytest.fixture(scope="module")
def genuine(test_data: Path) -> Tokenizer:
    """The tokenizer published with Qwen3."""
    return Tokenizer.from_file(str(test_data / "data" / "qwen3" / "tokenizer.json"))


@pytest.fixture(scope="module")
def rebuilt(genuine: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """The same, through a GGUF as llama.cpp's converter writes it, padding included."""
    added = genuine.get_added_tokens_decoder()
    vocabulary = genuine.get_vocab(with_added_tokens=True)
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    types = [1 if id not in added else 3 if added[id].special else 4 for id in range(len(tokens))]
    tokens += [f"[PAD{id}]" for id in range(len(tokens), 151_936)]
    types += [5] * (len(tokens) - len(types))
    merges = [" ".join(pair) for pair in json.loads(genuine.to_str())["model"]["merges"]]
    file = tmp_path_factory.mktemp("qwen3") / "vocabulary.gguf"
    opened = GGUF.open(write_vocabulary(file, tokens, types, merges, "qwen2"))
    return tokenizer_from_gguf(opened.metadata, file)


class TestQwen3:
    def test_varied_texts_give_the_same_ids(self, genuine: Tokenizer, rebuilt: Tokenizer) -> None:
        texts = varied_texts(1500)
        ours, theirs = rebuilt.encode_batch(texts), genuine.encode_batch(texts)
        for text, mine, other in zip(texts, ours, theirs, strict=True):
            assert mine.ids == other.ids, text

    @settings(max_examples=500)
    @given(text=st.text(max_size=40))
    def test_any_text_gives_the_same_ids(
        self, genuine: Tokenizer, rebuilt: Tokenizer, text: str
    ) -> None:
        assert rebuilt.encode(text).ids == genuine.encode(text).ids

    def test_ids_are_read_back_to_the_same_text(
        self, genuine: Tokenizer, rebuilt: Tokenizer
    ) -> None:
        for text in varied_texts(300):
            ids = genuine.encode(text).ids
            for skip in (True, False):
                read = rebuilt.decode(ids, skip_special_tokens=skip)
                assert read == genuine.decode(ids, skip_special_tokens=skip)

    def test_added_tokens_keep_their_ids_and_flags(
        self, genuine: Tokenizer, rebuilt: Tokenizer
    ) -> None:
        def described(tokenizer: Tokenizer) -> dict[int, tuple[object, ...]]:
            return {
                id: (t.content, t.special, t.lstrip, t.rstrip, t.single_word, t.normalized)
                for id, t in tokenizer.get_added_tokens_decoder().items()
            }

        assert described(rebuilt) == described(genuine)

    def test_the_vocabulary_is_the_same_with_and_without_added_tokens(
        self, genuine: Tokenizer, rebuilt: Tokenizer
    ) -> None:
        for with_added in (True, False):
            assert rebuilt.get_vocab(with_added) == genuine.get_vocab(with_added)


@pytest.fixture(scope="module")
def smollm2() -> Tokenizer:
    """The rebuilt tokenizer of the default model, from the cache folder."""
    try:
        folder = hub.resolve("smollm2")
    except ModelNotFound as error:
        pytest.skip(str(error))
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.mark.weights
class TestSmolLM2:
    def test_every_digit_is_a_token_of_its_own(self, smollm2: Tokenizer) -> None:
        assert smollm2.encode("in 2024, 1234567.89").tokens == [
            *(
                "in",
                "Ġ",
                "2",
                "0",
                "2",
                "4",
                ",",
                "Ġ",
                "1",
                "2",
                "3",
                "4",
                "5",
                "6",
                "7",
                ".",
                "8",
                "9",
            ),
        ]

    def test_control_tokens_have_the_published_ids(self, smollm2: Tokenizer) -> None:
        published = {"<|endoftext|>": 0, "<|im_start|>": 1, "<|im_end|>": 2, "<empty_output>": 16}
        assert {token: smollm2.token_to_id(token) for token in published} == published
        assert smollm2.encode("<|im_start|>user\n").ids[0] == 1
        assert all(t.special for t in smollm2.get_added_tokens_decoder().values())
        assert smollm2.get_vocab_size() == 49_152

    def test_words_split_by_hand_give_the_vocabularys_ids(self, smollm2: Tokenizer) -> None:
        tokens = ["The", "Ġcapital", "Ġof", "ĠFrance", "Ġis", "ĠParis", "."]
        ids = [smollm2.token_to_id(token) for token in tokens]
        assert smollm2.encode("The capital of France is Paris.").ids == ids
        # GPT-2's pattern keeps the last blank before a word apart: `\s+(?!\S)`, then `\s+`
        assert smollm2.encode("I'm\n\nhere\n\n").tokens == ["I", "'m", "Ċ", "Ċ", "here", "ĊĊ"]

    def test_every_text_comes_back_exactly(self, smollm2: Tokenizer) -> None:
        for text in varied_texts(3000):
            ids = smollm2.encode(text).ids
            assert smollm2.decode(ids, skip_special_tokens=False) == text


def toy(**changes: Any) -> dict[str, Any]:
    """Metadata of a vocabulary of bytes, two merges and one control token at its front."""
    vocabulary = builtin.byte_tokenizer().get_vocab(with_added_tokens=False)
    tokens = ["<s>", *sorted(vocabulary, key=vocabulary.__getitem__), "he", "hel"]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3] + [1] * (len(tokens) - 1),
        "tokenizer.ggml.merges": ["h e", "he l"],
        **changes,
    }


class TestToyVocabulary:
    def test_merges_apply_and_control_tokens_keep_ids_in_front(self) -> None:
        encoded = tokenizer_from_gguf(toy(), "toy").encode("<s>hello")
        assert encoded.tokens == ["<s>", "hel", "l", "o"]
        assert encoded.ids == [0, 258, 1 + ord("l"), 1 + ord("o")]

    @pytest.mark.parametrize(
        ("pre", "text", "tokens"),
        [
            ("smollm", "a 12", ["a", "Ġ", "1", "2"]),
            ("gpt-2", "12", ["12"]),
            ("default", "12", ["12"]),
            ("qwen2", "12", ["1", "2"]),
            ("llama-bpe", "1234", ["12", "3", "4"]),
        ],
    )
    def test_each_pre_tokenizer_splits_digits_its_way(
        self, pre: str, text: str, tokens: list[str]
    ) -> None:
        metadata = toy(**{"tokenizer.ggml.pre": pre, "tokenizer.ggml.merges": ["1 2"]})
        metadata["tokenizer.ggml.tokens"][-1] = "12"
        assert tokenizer_from_gguf(metadata, "toy").encode(text).tokens == tokens

    def test_only_qwen_composes_characters(self) -> None:
        composed = {
            pre: tokenizer_from_gguf(toy(**{"tokenizer.ggml.pre": pre}), "toy")
            .encode("e\u0301")
            .ids
            for pre in ("qwen2", "smollm")
        }
        as_bytes = {key: bytes(id - 1 for id in ids).decode() for key, ids in composed.items()}
        assert as_bytes == {"qwen2": "\u00e9", "smollm": "e\u0301"}

    def test_a_space_is_not_added_in_front(self) -> None:
        assert tokenizer_from_gguf(toy(), "toy").encode("x").tokens == ["x"]

    def test_user_defined_tokens_are_single_ids_and_are_shown(self) -> None:
        types = [3] + [1] * 256 + [4, 1]
        metadata = toy(**{"tokenizer.ggml.token_type": types, "tokenizer.ggml.merges": []})
        tokenizer = tokenizer_from_gguf(metadata, "toy")
        ids = tokenizer.encode("<s>she").ids
        assert ids == [0, 1 + ord("s"), 257]
        assert tokenizer.decode(ids, skip_special_tokens=True) == "she"

    def test_special_tokens_are_named_for_the_template(self) -> None:
        metadata = toy(**{"tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.eos_token_id": 258})
        assert special_tokens(metadata) == {"bos_token": "<s>", "eos_token": "hel"}

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"model": "llama"}, "tokenizer 'llama'; known: 'gpt2'"),
            ({"pre": "tekken"}, "pre-tokenizer 'tekken'; known: smollm, qwen2, llama-bpe"),
        ],
    )
    def test_an_unknown_kind_is_refused_by_name(self, changes: dict[str, str], words: str) -> None:
        with pytest.raises(UnsupportedModel, match=words):
            tokenizer_from_gguf(
                toy(**{f"tokenizer.ggml.{key}": value for key, value in changes.items()}), "toy"
            )

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"tokens": None}, "tokens is missing"),
            ({"tokens": [1, 2]}, "no list of strings"),
            ({"token_type": [1]}, "1 token types; expected 259"),
            ({"token_type": [6] * 259}, r"token types \[6\]"),
            ({"tokens": ["a"] * 259}, "occurs twice"),
            ({"merges": None}, "merges is missing"),
            ({"merges": ["h e", "l l"]}, "merge 1 is 'l l'"),
            ({"merges": ["he"]}, "merge 0 is 'he'"),
        ],
    )
    def test_a_vocabulary_that_contradicts_itself_is_refused(
        self, changes: dict[str, object], words: str
    ) -> None:
        with pytest.raises(CheckpointError, match=words):
            tokenizer_from_gguf(
                toy(**{f"tokenizer.ggml.{key}": value for key, value in changes.items()}), "toy"
            )
