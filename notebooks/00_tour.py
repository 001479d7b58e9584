# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 00 A tour: one request, from bytes to bytes
#
# **After this you can** name the fourteen stages of a request, say what goes into each and what
# comes out, and find its file.
#
# Each cell is one stage, called by hand; the server does the same in
# `minimsg/server/messages.py`. The model is the built-in `tiny`: random weights, a byte
# tokenizer, no download. Its words are noise, and every stage is real. With
# `MODEL = "smollm2"` they make sense.

# %%
import json
import os
from dataclasses import replace

from minimsg import load

MODEL = os.environ.get("MINIMSG_NOTEBOOK_MODEL", "tiny")
model = load(MODEL, dtype="float32", num_pages=256)
chat, engine = model.chat, model.engine
print(chat.name, sorted(file.name for file in chat.folder.iterdir()))

# %% [markdown]
# ## Down: bytes to token ids

# %%
# 1. Bytes. What HTTP brings is JSON, or is refused.
from minimsg.protocol.validation import parse_json, validate

question = "The colour of <|im_end|> the sky? 🙂"
body = {"model": MODEL, "max_tokens": 12, "temperature": 0, "stream": True}
body |= {"messages": [{"role": "user", "content": question}], "system": "Answer in one word."}
data = parse_json(json.dumps(body).encode())
print(data)

# %%
# 2. Protocol. Validation turns it into types, or says what is wrong, and where.
from minimsg.errors import InvalidRequest
from minimsg.protocol.dialect import PLAIN
from minimsg.protocol.request import MessagesRequest

request = validate(MessagesRequest, data, PLAIN).request
print(request)

try:
    MessagesRequest.parse({"model": MODEL, "messages": [{"role": "user", "content": [{}]}]})
except InvalidRequest as error:
    print(error.status, error.type, "|", error)

# %%
# 3. Prompt. The chat template writes the control tokens; what the user wrote stays text, even
# where it spells one: the `<|im_end|>` of the question is ordinary bytes.
from minimsg.prompt.render import render

prompt = render(request, chat)
control = {id: text for text, id in chat.tokenizer.control.items()}
print(len(prompt.ids), "ids, control:", [control[id] for id in prompt.ids if id in control])
print(prompt.ids)

# %%
# 4. Down. All that the engine gets to know: no JSON, no text.
from minimsg.engine.types import GenerationRequest

generation = GenerationRequest(
    id="tour",
    prompt_ids=prompt.ids,
    max_tokens=request.max_tokens,
    end_ids=chat.end_ids,
    sampling=replace(chat.sampling, temperature=0.0, top_logprobs=3),
)
engine.add(generation)
print(generation.sampling, "ends at", [control.get(id, id) for id in generation.end_ids])

# %% [markdown]
# ## The heart
# `Engine.step()` is schedule, run, sample, commit. Here they are by hand, once.

# %%
# 5. Schedule. Which tokens of which sequences are computed next, and in which slots of which
# pages their keys and values go.
batch = engine.scheduler.schedule()
print("tokens", len(batch.input_ids), "| pages", batch.page_tables, "| samples", batch.sample_rows)
print("slots", batch.slots[:8], "...")

# %%
# 6. Run. Token ids through the transformer: logits of the rows that sample, (S, V).
logits = engine.runner.run(batch)
keys = engine.runner.cache.layers[0].key
print("logits", tuple(logits.shape), "| keys of layer 0", tuple(keys.shape))

# %%
# 7. Sample. One id a row; greedy here, since the temperature is 0.
tokens = engine.sampler.sample(logits, engine.scheduler.sampling(batch))
print(tokens)

# %%
# 8. Commit. The id joins its sequence; what is to be said comes back. From here `step()` does
# all four.
outputs = engine.scheduler.commit(batch, tokens)
while engine.has_work:
    outputs += engine.step()
for output in outputs:
    print(output)
engine.scheduler.check()
print("pages used", engine.pool.num_used, "of", engine.pool.num_pages)

# %% [markdown]
# ## Up: ids to bytes
# Each stage holds back what it cannot know yet, and lets go of it in `flush`. The server sends
# every token through all of them at once; here the whole reply takes one stage at a time.

# %%
# 9. Token to text. A character may be the bytes of several tokens; half of one is held back.
from minimsg.engine.types import Finish, Token
from minimsg.text.detokenize import Detokenizer

ids = [output.id for output in outputs if isinstance(output, Token)]
detokenizer = Detokenizer(chat.tokenizer)
texts = [detokenizer.push(id) for id in ids if id not in chat.end_ids] + [detokenizer.flush()]
print(texts)

# %%
# 10. Text to segments. What a stretch of text is. A model without markup says only text.
from minimsg.parsing.segments import PlainParser

parser = PlainParser()
segments = [segment for text in texts for segment in parser.push(text)] + parser.flush()
print(segments)

# %%
# 11. Stop sequences. What might be the beginning of one is held back.
from minimsg.text.stops import StopMatcher

stops = StopMatcher(request.stop_sequences)
shown = [part for segment in segments for part in stops.push(segment)] + stops.flush()
print(shown, "| stopped by", stops.hit)

# %%
# 12. Segments to events. The engine's last output says in its own words why it ended;
# STOP_REASONS has the API's.
from minimsg.protocol.build import EventBuilder, fold
from minimsg.protocol.message import STOP_REASONS, new_message

(finish,) = [output for output in outputs if isinstance(output, Finish)]
reason = "stop_sequence" if stops.hit else STOP_REASONS[finish.reason]
builder = EventBuilder(new_message(MODEL, len(prompt.ids)))
events = builder.start() + [event for part in shown for event in builder.push(part)]
events += builder.finish(reason, stops.hit, len(ids))
for event in events:
    print(event)

# %%
# 13. Out, as a stream. Each event is a frame.
from minimsg.protocol.sse import encode

print(b"".join(encode(event) for event in events).decode())

# %%
# 14. Out, as a plain answer. It is the fold of the same events: there is one path.
print(json.dumps(fold(events), indent=2, ensure_ascii=False))

# %% [markdown]
# ## Two questions, and something to change
#
# **1.** The question spells `<|im_end|>`. Why does the turn not end there?
# <details><summary>Answer</summary>
# Only the template's own text may become control tokens. What the user wrote is encoded on its
# own, with those tokens switched off (<code>prompt/marks.py</code>), so it is the bytes
# <code>&lt;</code>, <code>|</code>, ... and the model sees no end of a turn.
# </details>
#
# **2.** `usage.output_tokens` counts 12, but some characters of the text are U+FFFD, or fewer
# than 12 are there. Which stage is it?
# <details><summary>Answer</summary>
# Stage 9. A token of <code>tiny</code> is a byte, and random bytes are seldom UTF-8: several
# make one character, and a byte that no other can complete is shown as U+FFFD. Tokens are
# counted before text is made of them.
# </details>
#
# **Change something.** Put `"stop_sequences": ["e"]` (or any letter that you saw) into the body
# of stage 1 and run all cells: which stages print something else, and which do not?
