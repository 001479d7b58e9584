"""The tokenizer of a .gguf file, rebuilt: vocabulary, merges and pre-tokenizer -> `tokenizers`.

A GGUF names its pre-tokenizer (`tokenizer.ggml.pre`) instead of describing it; a name
that is not in `PRE_TOKENIZERS` is refused, for a tokenizer that is almost right gives
wrong ids in silence. Knows byte-level BPE only and takes the metadata as a mapping: the
file format is in `models/gguf.py`.

Sources: `llama-vocab.cpp` of llama.cpp for the names, each model's published
tokenizer.json for the patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from minimsg.errors import CheckpointError, UnsupportedModel

# llama_token_type in llama.h
NORMAL: Final = 1
CONTROL: Final = 3  # an added token that is never shown as text
USER_DEFINED: Final = 4  # an added token that is
UNUSED: Final = 5  # fills the embedding up to a round size

QWEN2_SPLIT: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3_SPLIT: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Recipe:
    """What a GGUF does not say about a tokenizer that it names."""

    pre_tokenizer: Callable[[], pre_tokenizers.PreTokenizer]
    is_nfc: bool = False
    whole_words_first: bool = False  # a word that is in the vocabulary is not merged up to


def _gpt2() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def _single_digits() -> pre_tokenizers.PreTokenizer:
    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, _gpt2()])


def _split(pattern: str) -> pre_tokenizers.PreTokenizer:
    split = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([split, to_bytes])


PRE_TOKENIZERS: Final[Mapping[str, Recipe]] = {
    "smollm": Recipe(_single_digits),
    "qwen2": Recipe(lambda: _split(QWEN2_SPLIT), is_nfc=True),
    "llama-bpe": Recipe(lambda: _split(LLAMA3_SPLIT), whole_words_first=True),
    "gpt-2": Recipe(_gpt2),
    "default": Recipe(_gpt2),
}


def tokenizer_from_gguf(metadata: Mapping[str, object], file: object) -> Tokenizer:
    """The tokenizer whose vocabulary, merges and name lie in `metadata`; `file` is for messages.

    Raises:
        UnsupportedModel: not byte-level BPE, or a pre-tokenizer of unknown name.
        CheckpointError: the vocabulary or the merges contradict themselves.
    """
    recipe = _recipe(metadata, file)
    tokens, types = _vocabulary(metadata, file)
    added = [id for id, type in enumerate(types) if type in (CONTROL, USER_DEFINED)]
    vocabulary = {tokens[id]: id for id, type in enumerate(types) if type == NORMAL}
    if added != list(range(len(vocabulary), len(vocabulary) + len(added))):
        # `tokenizers` numbers added tokens upwards from the vocabulary's size; those that
        # lie elsewhere keep their ids only as entries of the vocabulary.
        vocabulary |= {tokens[id]: id for id in added}
    merges = _merges(metadata, vocabulary, file)

    model = BPE(vocabulary, merges, ignore_merges=recipe.whole_words_first)
    tokenizer = Tokenizer(model)
    if recipe.is_nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = recipe.pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(
        [AddedToken(tokens[id], special=types[id] == CONTROL, normalized=False) for id in added]
    )
    _refuse_moved_ids(tokenizer, tokens, added, file)
    return tokenizer


def special_tokens(metadata: Mapping[str, object]) -> dict[str, str]:
    """`bos_token`, `eos_token` ... -> its text, for tokenizer_config.json and the template."""
    tokens = metadata.get("tokenizer.ggml.tokens")
    named = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    found: dict[str, str] = {}
    for name, key in named.items():
        id = metadata.get(f"tokenizer.ggml.{key}_token_id")
        if isinstance(tokens, list) and isinstance(id, int) and 0 <= id < len(tokens):
            found[f"{name}_token"] = str(tokens[id])
    return found


def _recipe(metadata: Mapping[str, object], file: object) -> Recipe:
    kind = metadata.get("tokenizer.ggml.model")
    if kind != "gpt2":
        raise UnsupportedModel(f"{file}: tokenizer {kind!r}; known: 'gpt2' (byte-level BPE)")
    name = metadata.get("tokenizer.ggml.pre", "default")
    if not isinstance(name, str) or name not in PRE_TOKENIZERS:
        known = ", ".join(PRE_TOKENIZERS)
        raise UnsupportedModel(f"{file}: pre-tokenizer {name!r}; known: {known}")
    return PRE_TOKENIZERS[name]


def _vocabulary(metadata: Mapping[str, object], file: object) -> tuple[list[str], list[int]]:
    """The text of each id and its llama_token_type."""
    tokens = metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list) or not tokens or not all(isinstance(t, str) for t in tokens):
        raise CheckpointError(file, "tokenizer.ggml.tokens is missing or no list of strings", "one")
    types = metadata.get("tokenizer.ggml.token_type")
    if not isinstance(types, list) or len(types) != len(tokens):
        count = len(types) if isinstance(types, list) else "no"
        raise CheckpointError(file, f"{count} token types", f"{len(tokens):,}, one for each token")
    if unknown := set(types) - {NORMAL, CONTROL, USER_DEFINED, UNUSED}:
        seen = f"token types {sorted(unknown)}"
        raise CheckpointError(file, seen, "1 (normal), 3 (control), 4 (user-defined), 5 (unused)")
    if len(set(tokens)) != len(tokens):
        raise CheckpointError(file, "a token occurs twice in the vocabulary", "each once")
    return tokens, types


def _merges(
    metadata: Mapping[str, object], vocabulary: Mapping[str, int], file: object
) -> list[tuple[str, str]]:
    lines = metadata.get("tokenizer.ggml.merges")
    if not isinstance(lines, list):
        raise CheckpointError(file, "tokenizer.ggml.merges is missing", "a list of strings")
    merges: list[tuple[str, str]] = []
    for number, line in enumerate(lines):
        left, _, right = str(line).partition(" ")
        if not {left, right, left + right} <= vocabulary.keys():
            seen = f"merge {number} is {line!r:.60}"
            raise CheckpointError(file, seen, "two tokens that make a third")
        merges.append((left, right))
    return merges


def _refuse_moved_ids(
    tokenizer: Tokenizer, tokens: list[str], added: list[int], file: object
) -> None:
    for id in added:
        if tokenizer.token_to_id(tokens[id]) != id:
            moved = tokenizer.token_to_id(tokens[id])
            raise CheckpointError(file, f"control token {tokens[id]!r} became id {moved}", f"{id}")
