"""Drives a model that sees through the engine's own batches, with the logits of every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

import torch
from PIL import Image
from torch import Tensor

from minimsg.engine.batch import build_batch
from minimsg.engine.cache import PagedKVCache
from minimsg.engine.runner import Runner
from minimsg.engine.types import Batch, GenerationRequest, ImageSpan
from minimsg.engine.types import Sequence as Running
from minimsg.models.config import ModelConfig
from minimsg.models.contract import Model
from minimsg.models.pixels import fitted_size

PAGE_SIZE, NUM_PAGES = 16, 64
CPU = torch.device("cpu")

Words = Sequence[int | Image.Image]  # of a prompt


def request_of(id: str, words: Words, config: ModelConfig, **settings: object) -> GenerationRequest:
    """A prompt of ids and pictures as the engine takes it."""
    vision = config.vision
    assert vision is not None
    ids: list[int] = []
    images: list[ImageSpan] = []
    for word in words:
        if isinstance(word, int):
            ids.append(word)
            continue
        span = span_of(word, len(ids) + 1, config)
        images.append(span)
        ids += [vision.start_id, *[vision.image_id] * (span.stop - span.start), vision.end_id]
    return GenerationRequest(
        id, ids, max_tokens=8, images=tuple(images), **settings  # type: ignore[arg-type]
    )  # fmt: skip


def span_of(picture: Image.Image, start: int, config: ModelConfig) -> ImageSpan:
    assert config.vision is not None
    pictures = config.vision.pictures
    width, height = fitted_size(*picture.size, pictures)
    pixels = picture.resize((width, height), Image.Resampling.BICUBIC).tobytes()
    rows, columns = height // pictures.factor, width // pictures.factor
    digest = sha256(pixels + bytes([rows, columns])).digest()
    return ImageSpan(start, start + rows * columns, digest, rows, columns, pixels)


class SeeingRun:
    """Sequences by name over one cache, their pages in shuffled order."""

    def __init__(self, model: Model, config: ModelConfig) -> None:
        self.config = config
        cache = PagedKVCache(
            model.cache_specs, num_pages=NUM_PAGES, page_size=PAGE_SIZE, dtype=torch.float32,
            device=CPU,
        )  # fmt: skip
        for layer in cache.layers:
            layer.key.fill_(torch.nan)
            layer.value.fill_(torch.nan)
        self.runner = Runner(model, cache, CPU)
        shuffled = torch.randperm(NUM_PAGES, generator=torch.Generator().manual_seed(7))
        self.free: list[int] = shuffled.tolist()
        self.sequences: dict[str, Running] = {}
        self.batch: Batch | None = None

    def open(self, name: str, words: Words) -> list[int]:
        """A new sequence; its ids."""
        request = request_of(name, words, self.config)
        table = [self.free.pop() for _ in range(len(request.prompt_ids) // PAGE_SIZE + 1)]
        ids = list(request.prompt_ids)
        self.sequences[name] = Running(request, ids, page_table=table)
        return ids

    def step(self, counts: Mapping[str, int]) -> dict[str, Tensor]:
        """Compute so many next ids of each; logits `(t, V)` of all of them."""
        spans = [(self.sequences[name], count) for name, count in counts.items()]
        batch = build_batch(spans, PAGE_SIZE)
        num_rows = len(batch.input_ids)
        self.batch = replace(batch, sample_rows=list(range(num_rows)))
        logits = self.runner.run(self.batch)
        for sequence, count in spans:
            sequence.num_computed += count
        starts = batch.query_starts
        return {name: logits[starts[n] : starts[n + 1]] for n, name in enumerate(counts)}

    def say(self, name: str, id: int) -> None:
        """`id` comes next."""
        self.sequences[name].ids.append(id)
