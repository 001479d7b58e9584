"""The library's face on the built-in models: text in, text out, settings refused or logged."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from minimsg import builtin
from minimsg.config import EngineConfig
from minimsg.engine.types import FinishReason, Token
from minimsg.errors import ConfigError, InvalidRequest, KernelUnavailable
from minimsg.loading import TextEngine, choose_device, choose_dtype, load, load_engine

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def tiny(data_dir: Path) -> TextEngine:
    return load("tiny", data_dir=data_dir, dtype="float32")


@pytest.fixture(scope="module")
def scripted(data_dir: Path) -> TextEngine:
    return load("scripted", data_dir=data_dir)


def test_the_scripted_model_says_its_script_to_the_end(scripted: TextEngine) -> None:
    reply = scripted.generate("Hi")
    assert reply.text == builtin.DEFAULT_TAPES[0]
    assert reply.finish_reason is FinishReason.END
    assert len(reply.tokens) == len(reply.text.encode()) + 1  # a byte a token, and the end


def test_a_second_turn_and_the_text_of_many_bytes_come_out_whole(scripted: TextEngine) -> None:
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Again"},
    ]
    assert scripted.generate(messages).text == builtin.DEFAULT_TAPES[1]


def test_a_prompt_is_one_user_turn_of_the_template(tiny: TextEngine) -> None:
    (step, *_) = tiny.steps("Hi", max_tokens=1)
    tokenizer = Tokenizer.from_file(str(tiny.chat.folder / "tokenizer.json"))
    text = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert step.batch.input_ids == tokenizer.encode(text, add_special_tokens=False).ids


def test_steps_say_the_same_as_generate(tiny: TextEngine) -> None:
    reply = tiny.generate("Hi", max_tokens=9, temperature=0)
    steps = list(tiny.steps("Hi", max_tokens=9, temperature=0))
    said = [each for step in steps for each in step.outputs]
    assert [each for each in said if isinstance(each, Token)] != []
    assert [each.id for each in said if isinstance(each, Token)] == [t.id for t in reply.tokens]


def test_none_is_the_models_own_default_and_a_seed_makes_it_repeatable(tiny: TextEngine) -> None:
    hot = [tiny.generate("Hi", max_tokens=20, temperature=None, seed=7) for _ in range(2)]
    assert hot[0].text == hot[1].text
    assert hot[0].text != tiny.generate("Hi", max_tokens=20, seed=8).text


def test_a_bad_number_or_message_is_refused_with_its_path(tiny: TextEngine) -> None:
    with pytest.raises(InvalidRequest, match="temperature"):
        tiny.generate("Hi", temperature=-1)
    with pytest.raises(InvalidRequest, match=r"messages\.0"):
        tiny.generate([{"role": "nobody", "content": "Hi"}])
    with pytest.raises(InvalidRequest, match="prompt is too long"):
        tiny.generate("Hi" * 2000)


def test_a_model_without_a_template_goes_on_with_raw_text(tmp_path: Path) -> None:
    write_base_model(tmp_path)
    (step, *_) = load(str(tmp_path)).steps("Once", max_tokens=1)
    assert step.batch.input_ids == list(b"Once")


def write_base_model(folder: Path) -> None:
    """The tiny model without a chat template."""
    builtin.write_tiny(folder)
    (folder / "chat_template.jinja").unlink()


def test_raw_text_begins_as_the_published_tokenizer_begins_every_text(tmp_path: Path) -> None:
    write_base_model(tmp_path)
    file = str(tmp_path / "tokenizer.json")
    genuine = Tokenizer.from_file(file)
    begin = ("<|endoftext|>", genuine.token_to_id("<|endoftext|>"))
    genuine.post_processor = TemplateProcessing(
        single=f"{begin[0]} $A", pair=f"{begin[0]} $A $B", special_tokens=[begin]
    )
    genuine.save(file)
    (step, *_) = load(str(tmp_path)).steps("Once", max_tokens=1)
    assert step.batch.input_ids == genuine.encode("Once").ids == [begin[1], *b"Once"]


def test_a_window_that_is_cut_short_for_its_attention_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    builtin.write_tiny(tmp_path)
    file = tmp_path / "config.json"
    dual = {"dual_chunk_attention_config": {"chunk_size": 96}}
    file.write_text(json.dumps(json.loads(file.read_text()) | dual))
    with caplog.at_level(logging.INFO, "minimsg"):
        engine = load(str(tmp_path))
    assert engine.engine.max_context == engine.chat.max_context == 96
    assert "the window is 96 tokens; dual chunk attention" in caplog.text


def test_every_decision_is_logged(data_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "minimsg"):
        load("tiny", data_dir=data_dir, dtype="float32", kernel="reference", num_pages=8)
    for part in ("torch.float32", "on cpu", "CPU threads", "kernel reference", "to 128 tokens"):
        assert part in caplog.text


def test_every_kernel_and_chunk_size_gives_the_same_greedy_tokens(data_dir: Path) -> None:
    prompt = "The same words, whatever computes them, and in however many pieces."
    replies = [
        load("tiny", data_dir=data_dir, dtype="float32", **settings)
        .generate(prompt, max_tokens=24, temperature=0)
        .text
        for settings in ({}, {"kernel": "reference"}, {"max_step_tokens": 7}, {"num_pages": 9})
    ]
    assert len(set(replies)) == 1
    assert len(replies[0]) > 0


@pytest.mark.parametrize(
    "settings", [{"dtype": "int3"}, {"device": "abacus"}, {"device": "meta:x"}, {"threads": 0}]
)
def test_settings_that_no_machine_has_are_refused(data_dir: Path, settings: Any) -> None:
    with pytest.raises(ConfigError):
        load("tiny", data_dir=data_dir, **settings)


def test_an_unknown_setting_or_kernel_is_refused_with_those_there_are(data_dir: Path) -> None:
    with pytest.raises(ConfigError, match=r"'pages'.*num_pages"):
        load("tiny", data_dir=data_dir, pages=3)
    with pytest.raises(KernelUnavailable, match="reference"):
        load("tiny", data_dir=data_dir, kernel="flash")


def test_auto_is_bfloat16_only_where_something_multiplies_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for flags, dtype in (
        ({"avx512_bf16": True, "avx2": True}, torch.bfloat16),
        ({"avx512_bf16": False, "amx_bf16": False, "avx2": True}, torch.float32),
    ):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda flags=flags: flags, raising=False)
        assert choose_dtype("auto", CPU, kernel="cpu") is dtype  # stock torch needs the hardware
        assert choose_dtype("auto", CPU, kernel="cpu_native") is torch.bfloat16
        assert choose_dtype("auto", CPU, head_dim=72) is dtype  # which cpu_native does not know
    assert choose_dtype("float16", CPU) is torch.float16
    assert choose_device("cpu") == CPU


def test_a_model_that_sees_says_what_adds_pillow(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "minimsg.hub.extras.find_spec", lambda name: None if name == "PIL" else find_spec(name)
    )
    load("tiny", data_dir=data_dir, num_pages=8)
    with pytest.raises(ConfigError, match=r"to read images.*minimsg\[engine\].*'PIL'"):
        load("tiny-vl", data_dir=data_dir)


def test_without_torch_the_error_names_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        "minimsg.hub.extras.find_spec",
        lambda name: None if name == "torch" else find_spec(name),
    )
    for call in (lambda: load("tiny"), lambda: load_engine(tmp_path, EngineConfig())):
        with pytest.raises(ConfigError, match=r"pip install 'minimsg\[engine\]'"):
            call()


def test_importing_it_imports_no_torch() -> None:
    code = "import sys, minimsg.loading; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_name_load_stays_the_function_whatever_was_imported() -> None:
    import minimsg.loading

    assert minimsg.load is minimsg.loading.load
    assert minimsg.load is load
