"""A copy of a tokenizer.json that cannot yield a control id, whatever it is given.

Without `added_tokens` no string is special; without `post_processor` nothing is put
around the text. A model may still hold a control token as an ordinary entry (SmolLM2
does), reachable by merges, by `ignore_merges` or as the unknown token: such entries go
too. No text without a control string loses anything by that, since merges only ever
build a token whose characters stand in the text.

Normalizer and pre-tokenizer stay as they are. Knows the format of tokenizer.json, BPE
models only; works on parsed JSON and changes nothing in place. Next: `tokenizer.py`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from minimsg.text.token_bytes import BYTE_ALPHABET, BYTE_PIECE

Json = dict[str, Any]


def plain_copy(description: Json, control_ids: Collection[int]) -> Json:
    """`description` without control tokens. Raises ValueError, saying what is not understood."""
    absent = dict.fromkeys(("added_tokens", "post_processor", "truncation", "padding"))
    model = _without_controls(description["model"], set(control_ids))
    return {**description, **absent, "added_tokens": [], "model": model}


def for_later_stretches(description: Json) -> Json | None:
    """The copy for text that follows a control token, if it differs from that for the start.

    A `Metaspace` pre-tokenizer with `prepend_scheme: first` puts its space before the
    start of the whole text only.
    """
    steps = description.get("pre_tokenizer") or {}
    changed = _without_first_space(steps)
    return None if changed == steps else {**description, "pre_tokenizer": changed}


def _without_first_space(step: Json) -> Json:
    if step.get("type") == "Metaspace" and step.get("prepend_scheme") == "first":
        return {**step, "prepend_scheme": "never"}
    if step.get("type") == "Sequence":
        return {**step, "pretokenizers": [_without_first_space(s) for s in step["pretokenizers"]]}
    return step


def _without_controls(model: Json, control_ids: set[int]) -> Json:
    if model.get("type", "BPE") != "BPE":
        raise ValueError(f"a model of type {model.get('type')}")
    model = {**model, "dropout": None}  # the same text, the same ids
    gone = {token for token, id in model["vocab"].items() if id in control_ids}
    if gone:
        _refuse_bytes(gone)
        model["vocab"] = {token: id for token, id in model["vocab"].items() if token not in gone}
        model["merges"] = [merge for merge in model["merges"] if not _touches(merge, gone)]
    if model.get("unk_token") not in model["vocab"]:
        model["unk_token"] = None
    return model


def _refuse_bytes(tokens: set[str]) -> None:
    """A byte that only a control token can write would vanish from every text."""
    for token in tokens:
        if token in BYTE_ALPHABET or BYTE_PIECE.fullmatch(token):
            raise ValueError(f"an added token {token!r} that is also a single byte")


def _touches(merge: str | list[str], tokens: set[str]) -> bool:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left in tokens or right in tokens or left + right in tokens
