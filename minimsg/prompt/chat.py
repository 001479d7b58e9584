"""A model folder as the protocol half sees it: tokenizer, chat template, defaults, window.

Reads config.json (through `models/config.py`), generation_config.json,
tokenizer_config.json and the template's own file, and no weights, so it opens in any
process without torch. What was published is believed but checked: a wrong type, a value
that no request could have, an id that the model has no row for are a `CheckpointError`
that names the file.

Sampling defaults, for fields that a request leaves out: what generation_config.json
says; temperature 1 where it says nothing, as the hosted API has it; temperature 0 where
it says `do_sample: false` in so many words (transformers' own default of false is not
said, and does not count). Next: `render.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from minimsg.config import BY_TEMPLATE, ParserConfig
from minimsg.engine.types import SamplingParams
from minimsg.errors import CheckpointError, TemplateError
from minimsg.fields import Fields
from minimsg.limits import LIMITS
from minimsg.models.config import ModelConfig
from minimsg.models.vision_config import VisionConfig
from minimsg.prompt.marks import ImageTokens
from minimsg.prompt.probe import Traits, probe
from minimsg.prompt.template import ChatTemplate
from minimsg.text.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

# What transformers' `generate` would do to the scores and nothing here does, with the
# value (besides null) that does nothing. Beam search and its penalties are no sampling.
UNSUPPORTED_SAMPLING: Final[Mapping[str, object]] = {
    "bad_words_ids": [],
    "begin_suppress_tokens": [],
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1,
    "epsilon_cutoff": 0,
    "eta_cutoff": 0,
    "exponential_decay_length_penalty": [],
    "forced_bos_token_id": [],
    "forced_eos_token_id": [],
    "guidance_scale": 1,
    "min_length": 0,
    "min_new_tokens": 0,
    "min_p": 0,
    "no_repeat_ngram_size": 0,
    "sequence_bias": {},
    "suppress_tokens": [],
    "top_h": 1,
    "typical_p": 1,
    "watermarking_config": {},
}


@dataclass(frozen=True)
class ChatModel:
    """All that turning a request into ids, and ids into text, needs of a model."""

    name: str
    folder: Path
    tokenizer: Tokenizer
    template: ChatTemplate | None  # None: a base model, which cannot chat
    traits: Traits | None  # of the template
    end_ids: frozenset[int]  # each ends the turn
    sampling: SamplingParams  # for fields that a request leaves out
    max_context: int  # tokens, prompt and reply together
    model_type: str
    created_at: datetime
    vision: VisionConfig | None = None  # of a model that reads images
    parsers: ParserConfig = BY_TEMPLATE  # what of the traits was not looked for

    @classmethod
    def open(cls, folder: Path, name: str, parsers: ParserConfig = BY_TEMPLATE) -> Self:
        """The model in `folder`, served as `name`.

        Raises CheckpointError, UnsupportedModel, TemplateError.
        """
        config = ModelConfig.from_folder(folder)
        generation = Fields.from_file(folder / "generation_config.json", is_required=False)
        tokenizer = Tokenizer.from_folder(folder)
        _refuse_ids_without_a_row(folder, tokenizer, config)
        template, traits = _template(folder, tokenizer, parsers, config.vision)
        end_ids = _end_ids(Fields.from_file(folder / "config.json"), config)
        end_ids |= _end_ids(generation, config)
        if traits and traits.turn_end:
            end_ids |= {tokenizer.control[traits.turn_end]}
        return cls(
            name=name,
            folder=folder,
            tokenizer=tokenizer,
            template=template,
            traits=traits,
            end_ids=end_ids,
            sampling=_sampling(generation),
            max_context=config.max_context,
            model_type=config.model_type,
            created_at=_created_at(folder),
            vision=config.vision,
            parsers=parsers,
        )

    @property
    def tool_format(self) -> str:
        """The form in which the model writes calls: a name in `parsing/formats.py`."""
        return self.traits.tool_format if self.traits else "none"

    @property
    def turn_end_id(self) -> int:
        """Of the end ids the one that the template writes, if it writes any."""
        turn_end = self.traits.turn_end if self.traits else None
        return self.tokenizer.control[turn_end] if turn_end else min(self.end_ids)


def _refuse_ids_without_a_row(folder: Path, tokenizer: Tokenizer, config: ModelConfig) -> None:
    """Fewer tokens than rows are common: embeddings are padded to a round size."""
    highest = max(tokenizer.vocab_size - 1, *tokenizer.opening_ids, -1)
    if highest >= config.vocab_size:
        seen = f"token ids up to {highest:,}"
        expected = f"ids below vocab_size, which is {config.vocab_size:,} in config.json"
        raise CheckpointError(folder / "tokenizer.json", seen, expected)


def _end_ids(fields: Fields, config: ModelConfig) -> frozenset[int]:
    ids = fields.end_ids("eos_token_id")
    if absent := [id for id in ids if id >= config.vocab_size]:
        expected = f"ids below vocab_size, which is {config.vocab_size:,}"
        raise CheckpointError(fields.source, f"eos_token_id has {max(absent)}", expected)
    return ids


def _template(
    folder: Path, tokenizer: Tokenizer, parsers: ParserConfig, vision: VisionConfig | None
) -> tuple[ChatTemplate | None, Traits | None]:
    config = Fields.from_file(folder / "tokenizer_config.json", is_required=False)
    file, source = _source(folder, config)
    if source is None:
        return None, None
    try:
        template = ChatTemplate(
            source,
            _special_tokens(config),
            tokenizer.control,
            images=_image_tokens(folder, tokenizer, vision) if vision else None,
        )
        return template, probe(template, tokenizer.control, parsers)
    except TemplateError as error:
        raise TemplateError(f"{file}: {error}") from error


def _image_tokens(folder: Path, tokenizer: Tokenizer, vision: VisionConfig) -> ImageTokens:
    """The control strings of the ids that config.json names."""
    strings = {id: text for text, id in tokenizer.control.items()}
    ids = (vision.start_id, vision.image_id, vision.end_id)
    if missing := [id for id in ids if id not in strings]:
        seen = f"{missing[0]} is no control token"
        expected = "one, as config.json says of images"
        raise CheckpointError(folder / "tokenizer.json", seen, expected)
    return ImageTokens(*(strings[id] for id in ids))


def _source(folder: Path, config: Fields) -> tuple[object, str | None]:
    """The template's text and where it stands: in its own file, else in the tokenizer's config."""
    file = folder / "chat_template.jinja"
    try:
        return file, file.read_text("utf-8")
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(file, f"{error}", "a template in UTF-8") from error
    value = config.data.get("chat_template")
    if isinstance(value, list):
        named = {entry.get("name"): entry for entry in value if isinstance(entry, dict)}
        value = named.get("default", {}).get("template")
    if value is not None and not isinstance(value, str):
        raise CheckpointError(config.source, "chat_template is no text", "a template, or a list")
    return config.source, value


def _special_tokens(config: Fields) -> dict[str, str]:
    """`bos_token` ... -> its text; a token is a string or an object with `content`."""
    found: dict[str, str] = {}
    for name, value in config.data.items():
        text = value.get("content") if isinstance(value, Mapping) else value
        if name.endswith("_token") and isinstance(text, str):
            found[name] = text
    return found


def _sampling(generation: Fields) -> SamplingParams:
    _warn_of_unsupported(generation)
    temperature = generation.number("temperature", 1.0, or_zero=True)
    if generation.data.get("do_sample") is False:
        temperature = 0.0
    return SamplingParams(
        temperature=temperature,
        top_k=generation.integer("top_k", 0, minimum=0, maximum=LIMITS.top_k),
        top_p=generation.number("top_p", 1.0, or_zero=True, maximum=1.0),
        repetition_penalty=generation.number("repetition_penalty", 1.0),
    )


def _warn_of_unsupported(generation: Fields) -> None:
    changed = [
        f"{key} = {generation.data[key]!r:.60}"
        for key, neutral in UNSUPPORTED_SAMPLING.items()
        if key in generation and generation.data[key] != neutral
    ]
    if changed:
        logger.warning("%s: not supported, so ignored: %s", generation.source, ", ".join(changed))


def _created_at(folder: Path) -> datetime:
    """When the folder was made: as minimsg.json says, else as its config.json is dated."""
    pulled = Fields.from_file(folder / "minimsg.json", is_required=False)
    if not (said := pulled.text("created_at", "")):
        return datetime.fromtimestamp((folder / "config.json").stat().st_mtime, UTC)
    try:
        moment = datetime.fromisoformat(said)
    except ValueError as error:
        raise CheckpointError(pulled.source, f"created_at {said!r}", "an ISO 8601 time") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
