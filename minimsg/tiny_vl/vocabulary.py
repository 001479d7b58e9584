"""The little vocabulary: 256 bytes, the words of the language whole, and control tokens.

A word has an id for each way it is written: behind a space or not, with a capital or not.
Whatever else is written goes byte by byte, so every text has ids and comes back from them
unchanged. As in Llama 3, `ignore_merges` lets a whole word be looked up without merges; so
there are none. Needs neither torch nor numpy.
"""

from __future__ import annotations

import re
from typing import Final

from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from minimsg.text.token_bytes import BYTE_ALPHABET
from minimsg.tiny_vl.wording import sentences

SYSTEM, USER, ASSISTANT, TURN_END = TURNS = ("<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
IMAGE_START, IMAGE_PAD, IMAGE_END = IMAGE = ("<|vision_start|>", "<|image_pad|>", "<|vision_end|>")
WORD: Final = " ?[A-Za-z]+| ?[0-9]|[^A-Za-z0-9]"
TEMPLATE: Final = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' }}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for item in message['content'] %}"
    "{% if item['type'] == 'image' %}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{% else %}{{ item['text'] }}{% endif %}{% endfor %}{% endif %}"
    "{{ '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def words() -> list[str]:
    """Every word of the language in every way it is written, in order."""
    plain = {word for text in sentences() for word in re.findall(WORD, text) if len(word) > 1}
    found = {word.strip() for word in plain if word.strip().isalpha()}
    spelled = {form for word in found for form in (word.lower(), word.capitalize())}
    behind_space = {f" {word}" for word in [*spelled, *"0123456789"]}
    return sorted({word for word in spelled | behind_space if len(word) > 1})


def make_tokenizer() -> Tokenizer:
    """Ids 0 to 255 are bytes; then come the words, then the control tokens."""
    spelled = {byte: character for character, byte in BYTE_ALPHABET.items()}
    vocabulary = dict(BYTE_ALPHABET)
    for word in words():
        vocabulary["".join(spelled[byte] for byte in word.encode())] = len(vocabulary)
    tokenizer = Tokenizer(BPE(vocabulary, [], ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORD), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in (*TURNS, *IMAGE)]
    )
    return tokenizer
