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
# Fourteen stages, each called by hand, in a cell of its own, and printed. The server does the
# same in `minimsg/server/messages.py`. The model is the built-in `tiny`: random weights, a byte
# tokenizer, no download; so its words are noise, and every stage is real. Set
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
# **1. Bytes.** What HTTP brings is JSON, or is refused.

# %%
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
data = parse_json(body)
print(data)

# %% [markdown]
# **2. Protocol.** Validation turns it into types or says what is wrong, and where.

# %%
from minimsg.errors import InvalidRequest
from minimsg.protocol.dialect import PLAIN
from minimsg.protocol.request import MessagesRequest

request = validate(MessagesRequest, data, PLAIN).request
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
# Each stage holds back what it cannot know yet, and lets go of it in `flush`. The server sends
# every token through all of them at once; here the whole reply takes one stage at a time.
#
# **9. Token to text.** A character may be the bytes of several tokens; half of one is held back.

# %%
from minimsg.engine.types import Finish, Token
from minimsg.text.detokenize import Detokenizer

ids = [output.id for output in outputs if isinstance(output, Token)]
detokenizer = Detokenizer(chat.tokenizer)
texts = [detokenizer.push(id) for id in ids if id not in chat.end_ids]
texts.append(detokenizer.flush())
print(texts)

# %% [markdown]
# **10. Text to segments.** What a stretch of text is. A model without markup says only text.

# %%
from minimsg.parsing.segments import PlainParser

parser = PlainParser()
segments = [segment for text in texts for segment in parser.push(text)] + parser.flush()
print(segments)

# %% [markdown]
# **11. Stop sequences.** What might be the beginning of one is held back.

# %%
from minimsg.text.stops import StopMatcher

stops = StopMatcher(request.stop_sequences)
shown = [part for segment in segments for part in stops.push(segment)] + stops.flush()
print(shown, "| stopped by", stops.hit)

# %% [markdown]
# **12. Segments to events.** The last output of the engine says why it ended, in its own words;
# `STOP_REASONS` has the API's.

# %%
from minimsg.protocol.build import EventBuilder, fold
from minimsg.protocol.message import STOP_REASONS, new_message

(finish,) = [output for output in outputs if isinstance(output, Finish)]
reason = "stop_sequence" if stops.hit else STOP_REASONS[finish.reason]
builder = EventBuilder(new_message(MODEL, len(prompt.ids)))
events = builder.start()
events += [event for part in shown for event in builder.push(part)]
events += builder.finish(reason, stops.hit, len(ids))
for event in events:
    print(event)

# %% [markdown]
# **13. Out, as a stream.** Each event is a frame.

# %%
from minimsg.protocol.sse import encode

print(b"".join(encode(event) for event in events).decode())

# %% [markdown]
# **14. Out, as a plain answer.** It is the fold of the same events: there is one path.

# %%
print(json.dumps(fold(events), indent=2, ensure_ascii=False))
