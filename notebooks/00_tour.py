# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # One request, from bytes to bytes
#
# Fourteen stages (numbered here by what they do), each called by hand and printed. The server
# does the same in `minimsg/server/messages.py`. The model is the built-in `tiny`: random
# weights, a byte tokenizer, no download; so its words are noise, and every stage is real. Set
# `MODEL = "smollm2"` for sense.

# %%
import json
import os

from minimsg import hub
from minimsg.config import EngineConfig
from minimsg.loading import load_engine
from minimsg.prompt.chat import ChatModel

MODEL = os.environ.get("MINIMSG_TOUR_MODEL", "tiny")
folder = hub.ensure(MODEL)
chat = ChatModel.open(folder, MODEL)
engine = load_engine(folder, EngineConfig(dtype="float32", num_pages=256))
print(folder.name, sorted(file.name for file in folder.iterdir()))

# %% [markdown]
# ## Down: bytes to token ids
# **1, 2. HTTP and protocol.** The body is JSON; validation turns it into types or says what is
# wrong, and where.

# %%
from minimsg.errors import InvalidRequest
from minimsg.protocol.request import MessagesRequest
from minimsg.protocol.validation import parse_json, validate

body = json.dumps(
    {
        "model": MODEL,
        "max_tokens": 12,
        "temperature": 0,
        "stream": True,
        "system": "Answer in one word.",
        "messages": [{"role": "user", "content": "The colour of <|im_end|> the sky? 🙂"}],
    }
).encode()
request = validate(MessagesRequest, parse_json(body)).request
print(request)

try:
    MessagesRequest.parse({"model": MODEL, "messages": [{"role": "user", "content": [{}]}]})
except InvalidRequest as error:
    print(error.status, error.type, "|", error)

# %% [markdown]
# **3. Prompt.** The chat template writes the control tokens; what the user wrote stays text,
# even where it spells one. Below, `<|im_end|>` in the question is ordinary bytes.

# %%
from minimsg.prompt.render import render

prompt = render(request, chat)
control = {id: text for text, id in chat.tokenizer.control.items()}
print(
    len(prompt.ids), "ids, of which control:", [control[id] for id in prompt.ids if id in control]
)
print(prompt.ids)

# %% [markdown]
# **4. Down.** All that the engine gets to know:

# %%
from dataclasses import replace

from minimsg.engine.types import GenerationRequest

generation = GenerationRequest(
    id="tour",
    prompt_ids=prompt.ids,
    max_tokens=request.max_tokens or 12,
    end_ids=chat.end_ids,
    sampling=replace(chat.sampling, temperature=0.0, top_logprobs=3),
)
engine.add(generation)
print(generation.sampling, "ends at", [control.get(id, id) for id in generation.end_ids])

# %% [markdown]
# ## The heart
# `Engine.step()` is five lines: schedule, run, sample, commit. Here they are by hand, once.
#
# **5. Schedule.** Which tokens of which sequences are computed next, and in which slots of
# which pages their keys and values go.

# %%
batch = engine.scheduler.schedule()
print("tokens", len(batch.input_ids), "| pages", batch.page_tables, "| samples", batch.sample_rows)
print("slots", batch.slots[:8], "...")

# %% [markdown]
# **6. Run.** Token ids through the transformer: logits of the rows that sample, `(S, V)`.

# %%
logits = engine.runner.run(batch)
keys = engine.runner.cache.layers[0].key
print("logits", tuple(logits.shape), "| keys of layer 0", tuple(keys.shape))

# %% [markdown]
# **7. Sample.** One id a row; greedy here.

# %%
tokens = engine.sampler.sample(logits, engine.scheduler.sampling(batch))
print(tokens)

# %% [markdown]
# **8. Commit.** The id joins its sequence; what is to be said comes back. From here `step()`
# does all four.

# %%
outputs = engine.scheduler.commit(batch, tokens)
while engine.has_work:
    outputs += engine.step()
for output in outputs:
    print(output)
engine.scheduler.check()
print("pages free", engine.pool.num_free, "of", engine.pool.num_pages)

# %% [markdown]
# ## Up: ids to bytes
# **9 to 13.** Token to text, text to segments, segments past the stop sequences, segments to
# events. Each stage has `push` and `flush`, and holds back what it cannot know yet: half a
# character, half a stop.

# %%
from minimsg.engine.types import Token
from minimsg.parsing.segments import PlainParser
from minimsg.protocol.build import EventBuilder, fold
from minimsg.protocol.message import new_message
from minimsg.text.detokenize import Detokenizer
from minimsg.text.stops import StopMatcher

detokenizer, parser = Detokenizer(chat.tokenizer), PlainParser()
stops, builder = (
    StopMatcher(request.stop_sequences),
    EventBuilder(new_message(MODEL, len(prompt.ids))),
)
events = builder.start()
count = 0
for output in outputs:
    if isinstance(output, Token):
        count += 1
        text = "" if output.id in chat.end_ids else detokenizer.push(output.id)
        for segment in parser.push(text):
            for shown in stops.push(segment):
                events += builder.push(shown)
for segment in [*parser.push(detokenizer.flush()), *parser.flush()]:
    for shown in stops.push(segment):
        events += builder.push(shown)
for shown in stops.flush():
    events += builder.push(shown)
events += builder.finish("max_tokens", None, count)
for event in events:
    print(event)

# %% [markdown]
# **14. Out.** A stream is the events as frames; a plain answer is their fold. There is one
# path.

# %%
from minimsg.protocol.sse import encode

wire = b"".join(encode(event) for event in events)
print(wire.decode())
print(json.dumps(fold(events), indent=2, ensure_ascii=False))
