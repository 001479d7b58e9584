"""A checkpoint of random weights with a window and a vocabulary of real size.

It says nonsense, for about as many tokens as every end id allows; what it is for is the
prompt before that. The tokenizer is one published with a real model, or one trained
here on our own sources. Needs transformers, to write the weights.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from minimsg.builtin import CHATML, CONTROL_TOKENS

from ..models.checkpoints import save_checkpoint  # noqa: TID252 tests have no absolute name

ROOT = Path(__file__).parents[2]
WINDOW = 40_960  # Qwen3's
TRAINED_VOCABULARY = 4_096  # ids; the sources give as many, and a prompt half as long as in bytes
QWEN3_VOCABULARY = 151_936  # rows of its embedding, more than there are tokens
EVERY = 60  # one id in so many ends a reply, so that it has about as many tokens


def write_with_qwen3_tokenizer(folder: Path, published: Path) -> None:
    """Fill `folder`; `published` has the tokenizer and the template of Qwen3."""
    save_checkpoint(folder, "qwen3", vocab_size=QWEN3_VOCABULARY, max_position_embeddings=WINDOW)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(published / file, folder / file)
    _write_ends(folder, QWEN3_VOCABULARY)


def write_with_trained_tokenizer(folder: Path) -> None:
    """Fill `folder`; tokenizer and template are ours."""
    tokenizer = _train()
    tokenizer.save(str(folder / "tokenizer.json"))
    vocabulary = tokenizer.get_vocab_size()
    save_checkpoint(folder, "qwen3", vocab_size=vocabulary, max_position_embeddings=WINDOW)
    (folder / "chat_template.jinja").write_text(CHATML)
    _write_ends(folder, vocabulary)


def _train() -> Tokenizer:
    """Byte-level BPE of our own sources and documents."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=TRAINED_VOCABULARY,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=list(CONTROL_TOKENS),
        show_progress=False,
    )
    files = [*ROOT.glob("*.md"), *ROOT.glob("minimsg/**/*.py")]
    tokenizer.train_from_iterator((file.read_text("utf-8") for file in files), trainer)
    return tokenizer


def _write_ends(folder: Path, vocabulary: int) -> None:
    ends = {"eos_token_id": list(range(EVERY - 1, vocabulary, EVERY))}
    (folder / "generation_config.json").write_text(json.dumps(ends))
