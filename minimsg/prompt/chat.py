"""A model folder as the protocol half sees it: tokenizer, chat template, defaults, window.

Reads config.json, generation_config.json, tokenizer_config.json and the template's own
file, and no weights, so it opens in any process without torch. What was published is
believed but checked: a wrong type is a `CheckpointError` that names file and field.

Sampling defaults, for fields that a request leaves out: what generation_config.json
says; temperature 1 where it says nothing, as the hosted API has it; temperature 0 where
it says `do_sample: false` in so many words (transformers' own default of false is not
said, and does not count). Knows nothing of weights: `models/config.py` reads the same
config.json for those. Next: `render.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from minimsg.engine.types import SamplingParams
from minimsg.errors import CheckpointError, TemplateError
from minimsg.fields import Fields
from minimsg.prompt.probe import Traits, probe
from minimsg.prompt.template import ChatTemplate
from minimsg.text.tokenizer import Tokenizer


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

    @classmethod
    def open(cls, folder: Path, name: str) -> Self:
        """The model in `folder`, served as `name`. Raises CheckpointError, TemplateError."""
        config = Fields.from_file(folder / "config.json")
        generation = Fields.from_file(folder / "generation_config.json", is_required=False)
        tokenizer = Tokenizer.from_folder(folder)
        template, traits = _template(folder, tokenizer)
        end_ids = config.end_ids("eos_token_id") | generation.end_ids("eos_token_id")
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
            max_context=_max_context(config),
            model_type=config.text("model_type"),
            created_at=_created_at(folder),
        )


def _template(folder: Path, tokenizer: Tokenizer) -> tuple[ChatTemplate | None, Traits | None]:
    config = Fields.from_file(folder / "tokenizer_config.json", is_required=False)
    file, source = _source(folder, config)
    if source is None:
        return None, None
    try:
        template = ChatTemplate(source, _special_tokens(config), tokenizer.control)
        return template, probe(template, tokenizer.control)
    except TemplateError as error:
        raise TemplateError(f"{file}: {error}") from error


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
    temperature = generation.number("temperature", 1.0, or_zero=True)
    if generation.data.get("do_sample") is False:
        temperature = 0.0
    return SamplingParams(
        temperature=temperature,
        top_k=generation.integer("top_k", 0, minimum=0),
        top_p=generation.number("top_p", 1.0, or_zero=True),
        repetition_penalty=generation.number("repetition_penalty", 1.0),
    )


def _max_context(config: Fields) -> int:
    """Positions that the model was made for; yarn stretches the original ones by its factor.

    Other scalings are already counted in `max_position_embeddings`, and a sliding window
    limits what a token sees, not how long the text may be.
    """
    key = "original_max_position_embeddings"
    positions = config.integer("max_position_embeddings")
    rope = config.nested("rope_parameters" if "rope_parameters" in config else "rope_scaling")
    if "yarn" not in (rope.text("rope_type", ""), rope.text("type", "")):
        return positions
    original = config.integer(key, rope.integer(key, positions))
    return max(positions, round(rope.number("factor", positions / original) * original))


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
