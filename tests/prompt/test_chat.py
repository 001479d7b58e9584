"""What a model folder says about itself, and what is refused in one."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from minimsg.engine.types import SamplingParams
from minimsg.errors import CheckpointError, TemplateError
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.probe import Traits
from minimsg.prompt.probe_thinking import ThinkingForm

WriteModel = Callable[..., Path]


def test_a_folder_opens(write_model: WriteModel) -> None:
    folder = write_model()
    chat = ChatModel.open(folder, "name")
    assert (chat.name, chat.folder, chat.model_type) == ("name", folder, "llama")
    assert chat.max_context == 4096
    assert chat.traits == Traits(
        takes_system=True,
        takes_text=True,
        takes_blocks=False,
        turn_end="<|im_end|>",
        takes_late_system=True,
        takes_any_start=True,
        takes_runs=True,
        thinking=ThinkingForm("enable_thinking"),
    )
    written = (folder / "config.json").stat().st_mtime
    assert chat.created_at == datetime.fromtimestamp(written, UTC)


def test_end_ids_are_those_of_both_configs_and_of_the_template(write_model: WriteModel) -> None:
    folder = write_model(config={"eos_token_id": [3, 4]}, generation_config={"eos_token_id": 5})
    chat = ChatModel.open(folder, "m")
    assert chat.end_ids == {3, 4, 5, chat.tokenizer.control["<|im_end|>"]}


def test_a_template_that_writes_no_turn_end_adds_none(write_model: WriteModel) -> None:
    folder = write_model("{% for m in messages %}{{ m.content }}\n{% endfor %}")
    chat = ChatModel.open(folder, "m")
    assert chat.end_ids == {0}


@pytest.mark.parametrize(
    ("generation_config", "expected"),
    [
        ({}, SamplingParams(temperature=1.0)),
        ({"temperature": 0.6, "top_k": 20, "top_p": 0.95}, SamplingParams(0.6, 20, 0.95)),
        ({"do_sample": True, "temperature": 0.7}, SamplingParams(temperature=0.7)),
        ({"do_sample": False, "temperature": 0.7}, SamplingParams(temperature=0.0)),
        ({"do_sample": True}, SamplingParams(temperature=1.0)),
        ({"repetition_penalty": 1.1}, SamplingParams(repetition_penalty=1.1)),
        ({"temperature": None, "top_k": None}, SamplingParams(temperature=1.0)),
    ],
)
def test_sampling_defaults_are_the_models(
    write_model: WriteModel, generation_config: dict[str, Any], expected: SamplingParams
) -> None:
    folder = write_model(generation_config=generation_config)
    assert ChatModel.open(folder, "m").sampling == expected


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"max_position_embeddings": 8192}, 8192),
        ({"max_position_embeddings": 40_960, "rope_scaling": YARN}, 131_072),
        ({"max_position_embeddings": 131_072, "rope_scaling": YARN}, 131_072),
        ({"max_position_embeddings": 32_768, "rope_parameters": YARN}, 131_072),
        ({"max_position_embeddings": 512, "rope_scaling": {"type": "yarn", "factor": 2}}, 1024),
        ({"rope_scaling": None, "sliding_window": 16, "use_sliding_window": True}, 4096),
        ({"rope_scaling": {"type": "yarn", "factor": 2}, "rope_parameters": {}}, 8192),
        ({"dual_chunk_attention_config": {"chunk_size": 1000}}, 1000),
    ],
)
def test_the_window_is_what_the_positions_reach(
    write_model: WriteModel, config: dict[str, Any], expected: int
) -> None:
    assert ChatModel.open(write_model(config=config), "m").max_context == expected


def test_tokens_that_the_model_has_no_row_for_are_refused(write_model: WriteModel) -> None:
    size = ChatModel.open(write_model(), "m").tokenizer.vocab_size
    ChatModel.open(write_model(config={"vocab_size": size}), "m")
    with pytest.raises(CheckpointError, match=rf"tokenizer\.json: token ids up to {size - 1}"):
        ChatModel.open(write_model(config={"vocab_size": size - 1}), "m")


@pytest.mark.parametrize("file", ["config", "generation_config"])
def test_an_end_that_the_model_has_no_row_for_is_refused(
    file: str, write_model: WriteModel
) -> None:
    folder = write_model(**{file: {"eos_token_id": [1, 512]}})
    with pytest.raises(CheckpointError, match=rf"{file}\.json: eos_token_id has 512") as caught:
        ChatModel.open(folder, "m")
    assert caught.value.file == str(folder / f"{file}.json")


def test_sampling_that_is_not_supported_is_said_once_and_only_if_it_changes_a_draw(
    write_model: WriteModel, caplog: pytest.LogCaptureFixture
) -> None:
    neutral = {"typical_p": 1.0, "eta_cutoff": 0.0, "suppress_tokens": [], "num_beams": 4}
    with caplog.at_level(logging.WARNING):
        ChatModel.open(write_model(generation_config=neutral), "m")
        assert caplog.records == []
        changed = {"min_p": 0.05, "epsilon_cutoff": 3e-4}
        chat = ChatModel.open(write_model(generation_config=neutral | changed), "m")
    assert chat.sampling == SamplingParams(temperature=1.0)
    (record,) = caplog.records
    for part in ("generation_config.json", "min_p = 0.05", "epsilon_cutoff = 0.0003"):
        assert part in record.getMessage()
    assert "typical_p" not in record.getMessage()


def test_the_time_of_making_is_that_of_the_pull(write_model: WriteModel) -> None:
    folder = write_model()
    (folder / "minimsg.json").write_text('{"created_at": "2026-01-02T03:04:05+00:00"}')
    assert ChatModel.open(folder, "m").created_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


SIMPLE = "{% for m in messages %}{{ m.content }}{% endfor %}"


@pytest.mark.parametrize(
    "value",
    [
        SIMPLE,
        [{"name": "tool_use", "template": "{{ x"}, {"name": "default", "template": SIMPLE}],
    ],
)
def test_a_template_in_the_tokenizers_config_is_used(write_model: WriteModel, value: Any) -> None:
    chat = ChatModel.open(write_model(None, tokenizer_config={"chat_template": value}), "m")
    assert chat.template is not None
    assert chat.template.source == SIMPLE


def test_the_templates_own_file_wins(write_model: WriteModel) -> None:
    folder = write_model(SIMPLE, tokenizer_config={"chat_template": "{{ x"})
    template = ChatModel.open(folder, "m").template
    assert template is not None
    assert template.source == SIMPLE


def test_a_base_model_has_no_template(write_model: WriteModel) -> None:
    chat = ChatModel.open(write_model(None), "m")
    assert chat.template is None
    assert chat.traits is None
    assert chat.end_ids == {0}


def test_special_tokens_are_variables_of_the_template(write_model: WriteModel) -> None:
    tokens = {"bos_token": {"content": "<think>", "special": True}, "eos_token": "</think>"}
    source = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ pad_token }}"
    chat = ChatModel.open(write_model(source, tokenizer_config=tokens), "m")
    assert chat.template is not None
    pieces = chat.template.render_pieces(
        [{"role": "user", "content": "x"}], add_generation_prompt=True
    )
    assert [(p.text, p.is_control) for p in pieces if p.text] == [
        ("<think>", True),
        ("x", False),
        ("</think>", True),
    ]


@pytest.mark.parametrize(
    "source",
    [
        "{{ x",
        "{{ raise_exception('never') }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{{ 'a' * 500000000 }}",
        "nothing of what is said",
        "{{ messages[0].content }}{% if messages | length > 9 %}{{ 1 / 0 }}{% endif %}",
    ],
)
def test_a_template_that_cannot_work_stops_the_start(write_model: WriteModel, source: str) -> None:
    with pytest.raises(TemplateError, match=r"chat_template\.jinja: "):
        ChatModel.open(write_model(source), "m")


def test_a_composition_that_is_not_followed_is_logged(
    write_model: WriteModel, caplog: pytest.LogCaptureFixture
) -> None:
    source = "{% set a = '<|us' %}{% set b = 'er|>' %}{{ a }}{{ b }}{{ messages[0].content }}"
    with caplog.at_level(logging.WARNING):
        ChatModel.open(write_model(source), "m")
    assert "'<|user|>'" in caplog.text


@pytest.mark.parametrize(
    ("file", "content", "seen"),
    [
        ("config.json", {"max_position_embeddings": "many"}, "max_position_embeddings is 'many'"),
        ("config.json", {"max_position_embeddings": None}, "max_position_embeddings is missing"),
        ("config.json", {"eos_token_id": "2"}, "eos_token_id is '2'"),
        ("config.json", {"eos_token_id": [2, True]}, "eos_token_id is"),
        ("config.json", {"rope_scaling": 4}, "rope_scaling is 4"),
        ("config.json", {"model_type": 1}, "model_type is 1"),
        ("generation_config.json", {"temperature": -1}, "temperature is -1"),
        ("generation_config.json", {"top_p": "0.9"}, "top_p is '0.9'"),
        ("generation_config.json", {"temperature": False}, "temperature is False"),
        ("generation_config.json", {"temperature": float("nan")}, "temperature is nan"),
        ("generation_config.json", {"temperature": float("inf")}, "temperature is inf"),
        ("generation_config.json", {"top_p": 5.0}, "top_p is 5.0; .*at most 1"),
        ("generation_config.json", {"top_p": 1.0000001}, "top_p is 1.0000001"),
        ("generation_config.json", {"top_k": -1}, "top_k is -1"),
        ("generation_config.json", {"top_k": 2_000_000}, "top_k is 2000000"),
        ("tokenizer_config.json", {"chat_template": 1}, "chat_template"),
        ("minimsg.json", {"created_at": "yesterday"}, "yesterday"),
    ],
)
def test_a_field_of_a_wrong_type_is_refused_with_its_file(
    write_model: WriteModel, file: str, content: dict[str, object], seen: str
) -> None:
    folder = write_model()
    (folder / "chat_template.jinja").unlink()
    path = folder / file
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(before | content), encoding="utf-8")
    with pytest.raises(CheckpointError, match=seen) as caught:
        ChatModel.open(folder, "m")
    assert caught.value.file.endswith(file)


@pytest.mark.parametrize("file", ["config", "generation_config", "tokenizer_config"])
@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff"])
def test_a_file_that_is_no_object_is_refused(
    write_model: WriteModel, file: str, content: bytes
) -> None:
    folder = write_model()
    (folder / f"{file}.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"{file}\.json"):
        ChatModel.open(folder, "m")


def test_a_missing_config_is_named(write_model: WriteModel) -> None:
    folder = write_model()
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config\.json: no such file"):
        ChatModel.open(folder, "m")


def test_a_template_that_is_no_text_is_refused(write_model: WriteModel) -> None:
    folder = write_model()
    (folder / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(CheckpointError, match=r"chat_template\.jinja"):
        ChatModel.open(folder, "m")
