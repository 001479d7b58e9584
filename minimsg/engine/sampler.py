"""Logits to tokens: penalties, constraints, greedy or drawn, log probabilities.

Each row is chosen by its own request's parameters and by nothing else. Temperature 0
is the exact argmax, the lowest id on ties. A row that cannot be sampled (NaN logits,
a hook that raises) yields a `Finish` with the cause in place of a token, and its
neighbours do not notice. The random part is in `draw.py`.
"""

from __future__ import annotations

from collections.abc import Sequence as Ids

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from minimsg.engine.draw import NUM_CANDIDATES, draw, rank, uniform
from minimsg.engine.types import (
    BitMask,
    Finish,
    FinishReason,
    Sampled,
    Sequence,
    Token,
    TokenHook,
)
from minimsg.errors import GenerationFailed

NOT_FINITE = "the model's logits are not finite"
IMPOSSIBLE = torch.tensor(-torch.inf)


class Sampler:
    """Chooses the next id of each sampling row. Holds no state between steps."""

    def __init__(self, *, one_by_one: bool = False) -> None:
        """`one_by_one`: a row's numbers are the same to the last bit however many there are."""
        self._one_by_one = one_by_one

    @torch.inference_mode()
    def sample(self, logits: Tensor, sequences: list[Sequence]) -> list[list[Sampled]]:
        """For each row of logits `(S, V)` float32: the new token of its sequence, or a `Finish`."""
        if not sequences:
            return []
        if self._one_by_one and len(sequences) > 1:
            rows = zip(logits[:, None], sequences, strict=True)
            # a copy is aligned as every fresh tensor is; a view of a row may be not
            return [self.sample(row.clone(), [sequence])[0] for row, sequence in rows]
        normalizers = torch.logsumexp(logits, dim=-1)
        failures = self._non_finite(normalizers)
        if failures:  # keeps the arithmetic of the sound rows quiet and equal
            logits = logits.index_fill(0, torch.tensor(list(failures), device=logits.device), 0.0)
        scores = self._adjust(logits, sequences, failures)
        tokens = self._describe(logits, normalizers, self._choose(scores, sequences), sequences)
        for row, error in failures.items():
            request_id, is_broken = sequences[row].request.id, error == NOT_FINITE
            tokens[row] = [Finish(request_id, FinishReason.ERROR, error, is_broken)]
        return tokens

    def _non_finite(self, normalizers: Tensor) -> dict[int, str]:
        """Rows `(S,)` whose sum shows a NaN, a +inf, or no possible id at all."""
        sound = torch.isfinite(normalizers).tolist()
        return {row: NOT_FINITE for row, is_sound in enumerate(sound) if not is_sound}

    def _adjust(
        self, logits: Tensor, sequences: list[Sequence], failures: dict[int, str]
    ) -> Tensor:
        """Logits after penalties and constraints, `(S, V)`; a row that fails joins `failures`."""
        if not any(is_adjusted(sequence) for sequence in sequences):
            return logits
        scores = logits.clone()
        for row, sequence in enumerate(sequences):
            penalty, hook = sequence.request.sampling.repetition_penalty, sequence.request.hook
            if penalty != 1.0:
                penalize(scores[row], sequence.ids, penalty)
            if hook is None or row in failures:
                continue
            try:
                constrain(scores[row], hook)
            except Exception as error:  # a grammar's failure ends its own request
                failures[row] = f"{type(error).__name__}: {error}"
        return scores

    def _choose(self, scores: Tensor, sequences: list[Sequence]) -> list[int]:
        """(S,) ids: the argmax, or drawn where the temperature is not 0."""
        ids: list[int] = scores.argmax(dim=-1).tolist()
        rows = [row for row, s in enumerate(sequences) if s.request.sampling.temperature > 0]
        if rows:
            params = [sequences[row].request.sampling for row in rows]
            numbers = [number_of(sequences[row]) for row in rows]
            drawable = scores if len(rows) == len(ids) else scores[rows]
            for row, id in zip(rows, draw(drawable, params, numbers), strict=True):
                ids[row] = id
        return ids

    def _describe(
        self, logits: Tensor, normalizers: Tensor, ids: list[int], sequences: list[Sequence]
    ) -> list[list[Sampled]]:
        """Tokens with the model's own log probabilities, and the likeliest where asked for."""
        chosen = torch.tensor(ids, device=logits.device)[:, None]
        logprobs = (logits.gather(-1, chosen)[:, 0] - normalizers).tolist()
        tokens: list[list[Sampled]] = []
        for row, (sequence, id) in enumerate(zip(sequences, ids, strict=True)):
            n = sequence.request.sampling.top_logprobs
            top = likeliest(logits[row] - normalizers[row], n) if n else ()
            tokens.append([Token(sequence.request.id, id, logprobs[row], top)])
        return tokens


def number_of(sequence: Sequence) -> float:
    """The random number of a sequence's next id; the engine gave each request a seed."""
    seed = sequence.request.sampling.seed
    assert seed is not None
    return uniform(seed, len(sequence.ids))


def is_adjusted(sequence: Sequence) -> bool:
    """Whether anything changes the logits before an id is chosen."""
    request = sequence.request
    return request.hook is not None or request.sampling.repetition_penalty != 1.0


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


def likeliest(logprobs: Tensor, n: int) -> tuple[tuple[int, float], ...]:
    """The `n` likeliest of `(V,)` as (id, logprob), best first."""
    values, ids = rank(logprobs[None], min(len(logprobs), NUM_CANDIDATES))
    return tuple(zip(ids[0, :n].tolist(), values[0, :n].tolist(), strict=True))
