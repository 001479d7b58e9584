"""count_tokens says what the same request costs, whatever is in it and whatever reads it.

Most requests go through the two functions that prepare a body; a few go over HTTP, where
`usage` must add up to the count.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings

from minimsg.builtin import CHATML, write_scripted
from minimsg.prompt.chat import ChatModel
from minimsg.protocol.counting import TokenCount
from minimsg.protocol.dialect import PLAIN
from minimsg.server.catalog import Catalog
from minimsg.server.prepare import Prepared, Served, Settings, count_prompt, prepare_message

from .generated import MODEL, count_body, examples, requests, without_cache_marks
from .running import Json, Running

WINDOW: Final = 1 << 20
MANY: Final = 1_000
FEW: Final = 15
WITH_TOOLS: Final = (
    "{% if tools %}<|im_start|>system\n{% for tool in tools %}{{ tool | tojson }}\n"
    "{% endfor %}<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}"
    "{{ message.content | trim }}"
    "{% for call in message.tool_calls or [] %}<tool_call>"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
    "</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
STERN: Final = (
    "{% for message in messages %}"
    "{% if message.role not in ('user', 'assistant') or (message.role == 'user') != "
    "(loop.index0 % 2 == 0) %}{{ raise_exception('user, assistant, user ...') }}{% endif %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
WRITTEN: Final = {"chatml": CHATML, "with tools": WITH_TOOLS, "stern": STERN}
PUBLISHED: Final = [
    "Qwen-QwQ-32B",
    "Qwen-Qwen2.5-7B-Instruct",
    "Qwen-Qwen3-0.6B",
    "Qwen3-Coder",
    "Qwen3.5-4B",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Served]:
    """Opens the byte model with a template of ours."""

    def open_one(name: str) -> Served:
        folder = tmp_path_factory.mktemp("written") / "model"
        write_scripted(folder, window=WINDOW)
        return opened(folder, WRITTEN[name])

    return open_one


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, test_data: Path) -> Callable[[str], Served]:
    """Opens the tokenizer of Qwen3 with a published template."""

    def open_one(name: str) -> Served:
        folder = tmp_path_factory.mktemp("published")
        for file in (test_data / "data" / "qwen3").iterdir():
            shutil.copy(file, folder)
        config = {"model_type": "qwen3", "vocab_size": 151_936, "hidden_size": 64}
        config |= {"intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
        config |= {"rms_norm_eps": 1e-6, "max_position_embeddings": WINDOW}
        (folder / "config.json").write_text(json.dumps(config))
        return opened(folder, (test_data / "data" / "templates" / f"{name}.jinja").read_text())

    return open_one


def opened(folder: Path, template: str) -> Served:
    (folder / "chat_template.jinja").write_text(template)
    catalog = Catalog(MODEL)
    return Served(ChatModel.open(folder, MODEL), Settings(catalog, WINDOW, 100))


def prepared(body: object, served: Served) -> Prepared:
    return prepare_message(json.dumps(body).encode(), served, PLAIN)


def counted(body: object, served: Served) -> TokenCount:
    return count_prompt(json.dumps(body).encode(), served, PLAIN).answer


def check_counts(served: Served, number: int = FEW) -> None:
    """Whatever the request, the routes agree, bills add up, and cache marks change nothing."""

    @settings(
        max_examples=number,
        derandomize=number == FEW,
        suppress_health_check=list(HealthCheck),
    )
    @given(requests())
    def check(body: Json) -> None:
        made, count = prepared(body, served), counted(count_body(body), served)
        input_tokens = len(made.prompt_ids)
        assert count["input_tokens"] == input_tokens
        assert prepared(without_cache_marks(body), served).prompt_ids == made.prompt_ids
        if made.context_management:
            edits = made.context_management["applied_edits"]
            cleared = sum(edit["cleared_input_tokens"] for edit in edits)
            original = count["context_management"]["original_input_tokens"]
            assert original == input_tokens + cleared
        bill = counted({**count_body(body), "bill": True}, served)["bill"]
        blocks, tools = bill["blocks"].values(), bill["tools"].values()
        assert sum(blocks) + sum(tools) + bill["template"] == input_tokens

    check()


@pytest.mark.parametrize("name", WRITTEN)
def test_a_count_is_the_length_of_the_prompt(name: str, written: Callable[[str], Served]) -> None:
    check_counts(written(name))


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_count_is_the_length_of_the_prompt_of_published_templates(
    name: str, published: Callable[[str], Served]
) -> None:
    check_counts(published(name))


@pytest.mark.fuzz
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("name", WRITTEN)
def test_a_thousand_counts_are_the_lengths_of_the_prompts(
    name: str, written: Callable[[str], Served]
) -> None:
    check_counts(written(name), MANY)


async def test_usage_adds_up_to_the_count_over_http(scripted: Running) -> None:
    bodies = [body for body in examples(30, "scripted") if len(json.dumps(body)) < 4_000]
    assert len(bodies) > 10
    for body in bodies:
        count, _ = await scripted.post(count_body(body), "/v1/messages/count_tokens")
        message, _ = await scripted.post({**body, "stop_sequences": ["e", "o"]})  # soon
        usage = message["usage"]
        assert isinstance(usage, dict)
        parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        assert count["input_tokens"] == sum(int(str(usage[part])) for part in parts)


async def test_a_bill_comes_with_the_count_if_asked_for(scripted: Running) -> None:
    body: Json = {
        "model": "scripted",
        "messages": [{"role": "user", "content": "go"}],
        "system": "So.",
    }
    plain, _ = await scripted.post(body, "/v1/messages/count_tokens")
    answer, _ = await scripted.post({**body, "bill": True}, "/v1/messages/count_tokens")
    template = len("system" + "user") + 2 * 2 + 2 * len("\n\n") + 1 + len("assistant\n")
    blocks: Json = {"system.0": 3, "messages.0.content.0": 2}
    bill: Json = {"blocks": blocks, "tools": {}, "template": template}
    assert plain == {"input_tokens": template + 5}
    assert answer == {**plain, "bill": bill}
