"""Logits to tokens: penalties, constraints, greedy or drawn, log probabilities.

Each row is chosen by its own request's parameters and by nothing else. Temperature 0
is the exact argmax, the lowest id on ties. A row that cannot be sampled (NaN logits,
a hook that raises) yields a `Finish` with the cause in place of a token, and its
neighbours do not notice. The random part is in `draw.py`; which of several rows of a
sequence stand, in `rows.py`.
"""

from __future__ import annotations

from collections.abc import Sequence as Ids

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from minimsg.engine import hooks
from minimsg.engine.draw import argmax, draw, rank, uniform
from minimsg.engine.rows import Row, rows_of, standing
from minimsg.engine.types import (
    BitMask,
    Choice,
    Finish,
    FinishReason,
    NamedHook,
    Sampled,
    Sequence,
    Token,
    TokenHook,
)
from minimsg.errors import GenerationFailed

NOT_FINITE = "the model's logits are not finite"
MIN_LOGPROB = -80.0  # times its probability nothing; 0 * -inf would not be
IMPOSSIBLE = torch.tensor(-torch.inf)


class Sampler:
    """Chooses the next id of each sampling row. Holds no state between steps."""

    def __init__(self, *, one_by_one: bool = False) -> None:
        """`one_by_one`: a row's numbers are the same to the last bit however many there are."""
        self._one_by_one = one_by_one

    @torch.inference_mode()
    def sample(self, logits: Tensor, sequences: list[Sequence]) -> list[list[Sampled]]:
        """The new tokens of each sequence, or a `Finish`.

        Logits `(S, V)` float32: a sequence owns a row, and one more for each of its drafts.
        """
        if self._one_by_one or any(is_alone(each) for each in sequences):
            sizes = [1 + len(each.drafts) for each in sequences]
            parts = zip(torch.split(logits, sizes), sequences, strict=True)
            return [self._in_turn(part, sequence) for part, sequence in parts]
        rows = rows_of(sequences)
        return standing(self._sample(logits, rows), sequences) if rows else []

    def _in_turn(self, logits: Tensor, sequence: Sequence) -> list[Sampled]:
        """The tokens of one sequence, row by row: its hook must take in each before the next."""
        stood: list[Sampled] = []
        for row, scores in zip(rows_of([sequence]), logits[:, None], strict=True):
            # a copy is aligned as every fresh tensor is; a view of a row may be not
            (output,) = self._sample(scores.clone(), [row])
            if stood and isinstance(output, Finish):
                break  # the next step comes to that
            stood.append(output)
            if isinstance(output, Finish) or [output.id] != row.next_draft:
                break
            if error := hooks.advance_ahead(sequence, output.id):
                stood.append(Finish(sequence.request.id, FinishReason.ERROR, error))
                break
        return stood

    def _sample(self, logits: Tensor, rows: list[Row]) -> list[Sampled]:
        """What comes of each row of logits `(S, V)`, whatever comes of those before it."""
        # Its kernels sum a row as a whole: to the last bit the same, alone and beside others.
        logprobs = torch.log_softmax(logits, dim=-1)
        failures = self._non_finite(logprobs)
        if failures:  # keeps the arithmetic of the sound rows quiet and equal
            logits = logits.index_fill(0, torch.tensor(list(failures), device=logits.device), 0.0)
        scores = self._adjust(logits, rows, failures)
        sampled = self._describe(logprobs, scores, rows)
        for index, error in failures.items():
            request_id, is_broken = rows[index].request.id, error == NOT_FINITE
            sampled[index] = Finish(request_id, FinishReason.ERROR, error, is_broken)
        return sampled

    def _non_finite(self, logprobs: Tensor) -> dict[int, str]:
        """Rows of `(S, V)` that had a NaN, a +inf, or no possible id at all: all of it is NaN."""
        sound = torch.isfinite(logprobs.amax(-1)).tolist()
        return {row: NOT_FINITE for row, is_sound in enumerate(sound) if not is_sound}

    def _adjust(self, logits: Tensor, rows: list[Row], failures: dict[int, str]) -> Tensor:
        """Logits after penalties and constraints, `(S, V)`; a row that fails joins `failures`."""
        if not any(is_adjusted(row) for row in rows):
            return logits
        scores = logits.clone()
        for index, row in enumerate(rows):
            penalty, hook = row.request.sampling.repetition_penalty, row.request.hook
            if penalty != 1.0:
                penalize(scores[index], row.ids, penalty)
            if hook is None or index in failures:
                continue
            try:
                hooks.take_back(row.sequence, row.num_drafts)
                constrain(scores[index], hook)
            except Exception as error:  # a grammar's failure ends its own request
                failures[index] = f"{type(error).__name__}: {error}"
        return scores

    def _choose(self, scores: Tensor, rows: list[Row]) -> list[int]:
        """(S,) ids: the argmax, or drawn where the temperature is not 0."""
        ids: list[int] = argmax(scores).tolist()
        drawn = [index for index, row in enumerate(rows) if row.request.sampling.temperature > 0]
        if drawn:
            params = [rows[index].request.sampling for index in drawn]
            numbers = [number_of(rows[index]) for index in drawn]
            drawable = among(scores, drawn)
            for index, id in zip(drawn, draw(drawable, params, numbers), strict=True):
                ids[index] = id
        return ids

    def _describe(self, logprobs: Tensor, scores: Tensor, rows: list[Row]) -> list[Sampled]:
        """Tokens of adjusted `scores` with the model's own log probabilities `(S, V)`.

        With the likeliest where asked for, and what was chosen from if the request is traced.
        """
        ids = self._choose(scores, rows)
        chosen = torch.tensor(ids, device=logprobs.device)[:, None]
        of_ids = logprobs.gather(-1, chosen)[:, 0].tolist()
        tops = likeliest(logprobs, rows)
        tokens: list[Sampled] = []
        for index, (row, id) in enumerate(zip(rows, ids, strict=True)):
            is_traced = row.request.is_traced
            choice = choice_of(logprobs[index], scores[index], row) if is_traced else None
            watched = row.sequence.watched
            attended = watched.attended() if watched and watched.attended else ()
            tokens.append(Token(row.request.id, id, of_ids[index], tops[index], attended, choice))
        return tokens


def number_of(row: Row) -> float:
    """The random number of a row's id; the engine gave each request a seed."""
    seed = row.request.sampling.seed
    assert seed is not None
    return uniform(seed, row.position)


def is_alone(sequence: Sequence) -> bool:
    """Whether its rows are sampled in turn: its hook must take in an id before the next."""
    return bool(sequence.drafts and sequence.request.hook)


def is_adjusted(row: Row) -> bool:
    """Whether anything changes the logits before an id is chosen."""
    return row.request.hook is not None or row.request.sampling.repetition_penalty != 1.0


def penalize(scores: Tensor, ids: list[int], penalty: float) -> None:
    """Make ids that were read or written less likely, in place on `(V,)`.

    CTRL (arXiv 1909.05858) section 4.1, with the sign cared for as transformers does.
    """
    seen = torch.tensor(sorted(set(ids)), device=scores.device)
    values = scores[seen]
    scores[seen] = torch.where(values > 0, values / penalty, values * penalty)


def constrain(scores: Tensor, hook: TokenHook) -> None:
    """Leave only the ids that a hook allows, in place on `(V,)`."""
    forced = hook.forced()
    mask = hook.mask() if forced is None else [forced]
    if mask is None:
        return
    if isinstance(mask, BitMask):
        flags = flags_of_bits(mask, len(scores))
    else:
        flags = flags_of_ids(mask, len(scores))
    num_allowed = np.count_nonzero(flags)
    if not num_allowed:
        raise GenerationFailed("the constraint allows no token")
    lowest = torch.finfo(scores.dtype).min  # what is allowed is not impossible, however unlikely
    if num_allowed < len(scores) // 8:
        allowed = torch.from_numpy(np.flatnonzero(flags)).to(scores.device)
        possible = scores[allowed].clamp(min=lowest)
        scores.fill_(-torch.inf)
        scores[allowed] = possible
    else:
        is_allowed = torch.from_numpy(flags).to(scores.device)
        scores.copy_(torch.where(is_allowed, scores.clamp_(min=lowest), IMPOSSIBLE.to(scores)))


def flags_of_bits(mask: BitMask, num_ids: int) -> NDArray[np.bool_]:
    """(V,) whether an id of the model's is in `mask`."""
    packed = np.frombuffer(mask.bits, np.uint8)
    return np.unpackbits(packed, bitorder="little", count=num_ids).view(np.bool_)


def flags_of_ids(ids: Ids[int], num_ids: int) -> NDArray[np.bool_]:
    """(V,) whether an id of the model's is among `ids`. Raises GenerationFailed."""
    if len(ids) and (min(ids) < 0 or max(ids) >= num_ids):
        raise GenerationFailed(f"the constraint allows an id outside 0..{num_ids - 1}")
    flags = np.zeros(num_ids, np.bool_)
    flags[np.array(ids, np.int64)] = True
    return flags


def choice_of(logprobs: Tensor, scores: Tensor, row: Row) -> Choice:
    """What an id was chosen from: `(V,)`, and what a hook left of the scores."""
    # Both are fresh, so aligned alike in every batch: `dot` may depend on that.
    entropy = -float(torch.dot(logprobs.softmax(-1), logprobs.clamp(min=MIN_LOGPROB)))
    hook = row.request.hook
    if hook is None:
        return Choice(entropy, None, None)
    num_allowed = int(torch.isfinite(scores).sum())
    forced_by = name_of(hook) if num_allowed == 1 else None
    return Choice(entropy, num_allowed / len(scores), forced_by)


def name_of(hook: TokenHook) -> str:
    """What a hook calls itself, or what it is called in the code."""
    return hook.name if isinstance(hook, NamedHook) else type(hook).__name__


def likeliest(logprobs: Tensor, rows: list[Row]) -> list[tuple[tuple[int, float], ...]]:
    """As many of the likeliest of `(S, V)` as each row asks for: (id, logprob), best first."""
    tops: list[tuple[tuple[int, float], ...]] = [()] * len(rows)
    numbers = [row.request.sampling.top_logprobs for row in rows]
    for n in set(numbers) - {0}:
        asked = [index for index, number in enumerate(numbers) if number == n]
        width = min(logprobs.shape[-1], 2 * n)  # with equals of the last
        values, ids = rank(among(logprobs, asked), width)
        for index, *top in zip(asked, ids[:, :n].tolist(), values[:, :n].tolist(), strict=True):
            tops[index] = tuple(zip(*top, strict=True))
    return tops


def among(rows: Tensor, indexes: list[int]) -> Tensor:
    """Some of the rows; no copy if they are all."""
    return rows if len(indexes) == len(rows) else rows[indexes]
