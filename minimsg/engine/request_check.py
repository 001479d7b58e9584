"""What a request must be for the engine to take it, beyond its length.

Knows numbers and spans of ids, no queue: `Scheduler.check_length` knows the window.
"""

from __future__ import annotations

import math

from minimsg.engine.draw import NUM_CANDIDATES
from minimsg.engine.types import GenerationRequest
from minimsg.errors import InvalidRequest


def check_numbers(request: GenerationRequest, vocab_size: int) -> None:
    """Raise `InvalidRequest` unless every number is one that the model and sampler can take."""
    ids, sampling = request.prompt_ids, request.sampling
    in_vocabulary = len(ids) > 0 and min(ids) >= 0 and max(ids) < vocab_size
    penalty = sampling.repetition_penalty
    rules = [
        (len(ids) > 0, "", "the prompt has no tokens"),
        (in_vocabulary, "", f"the prompt has ids outside 0..{vocab_size - 1}"),
        (request.max_tokens >= 0, "max_tokens", "must not be negative"),
        (0 <= sampling.temperature < math.inf, "temperature", "must be finite and not negative"),
        (0 <= sampling.top_p <= 1, "top_p", "must be between 0 and 1"),
        (sampling.top_k >= 0, "top_k", "must not be negative"),
        (0 < penalty < math.inf, "repetition_penalty", "must be finite and positive"),
        (
            0 <= sampling.top_logprobs <= NUM_CANDIDATES,
            "top_logprobs",
            f"must be between 0 and {NUM_CANDIDATES}",
        ),
        (
            all(0 <= start <= stop <= len(ids) for start, stop in request.passages),
            "",
            "a passage lies outside the prompt",
        ),
    ]
    for holds, path, why in rules:
        if not holds:
            raise InvalidRequest(path, why)


def check_images(request: GenerationRequest, *, sees: bool) -> None:
    """Raise `InvalidRequest` unless the images are such as the model can see, in their order."""
    if request.images and not sees:
        raise InvalidRequest("", "the model does not read images")
    end = 0
    for image in request.images:
        num_tokens = image.stop - image.start
        if image.start < end or image.stop > len(request.prompt_ids) or num_tokens < 1:
            raise InvalidRequest("", "the images do not lie in the prompt one after the other")
        if num_tokens != image.rows * image.columns:
            why = f"an image of {image.rows} by {image.columns} has {num_tokens} ids"
            raise InvalidRequest("", why)
        end = image.stop
