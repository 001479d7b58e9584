"""The checkpoints made on the spot are the same everywhere, and are what they say."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer

from minimsg import builtin, hub
from minimsg.models.config import ModelConfig
from minimsg.prompt.chat import ChatModel


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hub.resolve("tiny", tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hub.resolve("scripted", tmp_path_factory.mktemp("data"))


class TestTiny:
    def test_two_makings_are_equal_to_the_byte(self, tiny: Path, tmp_path: Path) -> None:
        builtin.write_tiny(tmp_path)
        for file in tmp_path.iterdir():
            assert file.read_bytes() == (tiny / file.name).read_bytes(), file.name

    def test_the_weights_are_those_of_every_python(self, tiny: Path) -> None:
        # Mersenne Twister of seed 7: the first double is 0.32383276483316237 (CPython's docs
        # promise `random()` to stay); the first weight is (2 u - 1) * sqrt(3) / 8.
        first = load_file(tiny / "model.safetensors")["model.embed_tokens.weight"][0, 0].item()
        assert first == pytest.approx((2 * 0.32383276483316237 - 1) * math.sqrt(3) / 8, rel=1e-6)

    def test_transformers_loads_it_and_its_logits_are_of_size_one(self, tiny: Path) -> None:
        model = transformers.AutoModelForCausalLM.from_pretrained(tiny)
        with torch.no_grad():
            logits = model(torch.arange(256)[None]).logits
        assert logits.shape == (1, 256, 259)
        assert 0.5 < logits.std().item() < 2

    def test_the_window_and_the_end_are_in_its_config(self, tiny: Path) -> None:
        chat = ChatModel.open(tiny, "tiny")
        assert (chat.max_context, set(chat.end_ids)) == (2048, {258})


@pytest.mark.parametrize("name", ["tiny", "scripted"])
class TestBoth:
    def test_a_byte_is_an_id(self, name: str, request: pytest.FixtureRequest) -> None:
        tokenizer = Tokenizer.from_file(str(request.getfixturevalue(name) / "tokenizer.json"))
        text = "héllo  wörld\n\t12 你好 👋\x00\x7f"
        assert tokenizer.encode(text).ids == list(text.encode())
        assert tokenizer.decode(list(text.encode())) == text
        assert tokenizer.encode("<|im_end|>").ids == [258]

    def test_the_template_is_chatml(self, name: str, request: pytest.FixtureRequest) -> None:
        chat = ChatModel.open(request.getfixturevalue(name), name)
        assert chat.template is not None
        turns = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
        assert chat.template.render(turns, add_generation_prompt=True) == (
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"
        )

    def test_it_needs_no_network_and_no_second_making(
        self, name: str, request: pytest.FixtureRequest
    ) -> None:
        folder: Path = request.getfixturevalue(name)
        before = (folder / "minimsg.json").stat().st_mtime_ns
        assert hub.resolve(name, folder.parent.parent) == folder
        assert (folder / "minimsg.json").stat().st_mtime_ns == before


class TestScripted:
    def test_a_tape_is_its_bytes_and_control_tokens_its_ids(self, tmp_path: Path) -> None:
        builtin.write_scripted(tmp_path / "new", ["hi<|im_end|>", "ö"], window=99)
        config = json.loads((tmp_path / "new" / "config.json").read_text())
        assert config == {
            "model_type": "scripted",
            "vocab_size": 259,
            "start_ids": [257, *b"assistant\n"],
            "tapes": [[*b"hi", 258], [0xC3, 0xB6]],
            "end_id": 258,
            "eos_token_id": 258,
            "max_position_embeddings": 99,
        }

    def test_it_starts_where_its_template_puts_the_reply(self, scripted: Path) -> None:
        chat = ChatModel.open(scripted, "scripted")
        script = ModelConfig.from_folder(scripted).script
        assert chat.template is not None
        assert script is not None
        tokenizer = Tokenizer.from_file(str(scripted / "tokenizer.json"))
        prompt = chat.template.render([], add_generation_prompt=True)
        assert tuple(tokenizer.encode(prompt).ids) == script.start_ids

    def test_it_has_no_weights_and_two_tapes_to_say(self, scripted: Path) -> None:
        assert not list(scripted.glob("*.safetensors"))
        script = ModelConfig.from_folder(scripted).script
        assert script is not None
        said = [bytes(tape).decode() for tape in script.tapes]
        assert said == list(builtin.DEFAULT_TAPES)
