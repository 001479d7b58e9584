"""The trained default model under grammars: valid calls of the tool that is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest

from minimsg import hub
from minimsg.config import EngineConfig
from minimsg.constrain.constraint import Constraint
from minimsg.constrain.grammars import Grammars
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.engine import Engine
from minimsg.engine.types import FinishReason, GenerationRequest, SamplingParams
from minimsg.errors import ModelNotFound
from minimsg.loading import load_engine
from minimsg.parsing.calls import CallableTool
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.render import render
from minimsg.protocol.dialect import PLAIN
from minimsg.protocol.request import PromptRequest
from tests.constrain.driving import read
from tests.constrain.schemas import of

pytestmark = pytest.mark.weights

TEXT = {"type": "string"}
UNIT = {"enum": ["celsius", "fahrenheit"]}
STEP = of(
    {"direction": {"enum": ["up", "left"]}, "count": {"type": "integer"}}, "direction", "count"
)
PLACE = of({"city": TEXT, "unit": UNIT}, "city", "unit")
STEPS = of({"steps": {"type": "array", "items": STEP, "maxItems": 3}}, "steps")
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "get_time": ("What time is it?", of({})),
    "get_weather": ("How warm is it in Paris in celsius?", PLACE),
    "move": ("Move 3 up and 2 left.", STEPS),
}


@dataclass(frozen=True)
class Model:
    engine: Engine
    chat: ChatModel
    vocabulary: Vocabulary
    grammars: Grammars


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    try:
        folder = hub.resolve("smollm2")
    except ModelNotFound as error:
        pytest.skip(str(error))
    chat = ChatModel.open(folder, "smollm2")
    assert chat.traits is not None
    end_id = chat.tokenizer.control["<|im_end|>"]
    vocabulary = Vocabulary(chat.tokenizer, end_ids=chat.end_ids, end_id=end_id)
    grammars = Grammars(vocabulary, chat.traits.tool_format)
    engine = load_engine(folder, EngineConfig(dtype="float32", num_pages=128))
    yield Model(engine, chat, vocabulary, grammars)
    grammars.close()


@pytest.mark.parametrize("name", ASKED)
async def test_it_calls_the_tool_with_a_valid_input(model: Model, name: str) -> None:
    question, schema = ASKED[name]
    request = PromptRequest.parse(
        {
            "model": "smollm2",
            "messages": [{"role": "user", "content": question}],
            "tools": [{"name": name, "input_schema": schema}],
        }
    )
    tools = {name: CallableTool(schema)}
    hook = await model.grammars.hook(Constraint(must_call=[name], is_one_call=True), tools)
    prompt = render(request, model.chat, PLAIN)
    tokens, finish = model.engine.run(
        GenerationRequest(
            name,
            prompt.ids,
            256,
            end_ids=model.chat.end_ids,
            sampling=SamplingParams(temperature=0),
            hook=hook,
        )
    )
    assert finish.reason is FinishReason.END
    said = read(model.vocabulary, "hermes", tools, [token.id for token in tokens])
    ((called, input),) = said.calls
    assert (called, said.text) == (name, "")
    jsonschema.validate(json.loads(input), schema)
