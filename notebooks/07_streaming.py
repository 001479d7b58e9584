# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 07 Streaming: hold-back and events
#
# **After this you can** say for each character of a reply when it may be shown and why not sooner,
# read an event stream byte by byte, and check one with the grammar of events.
#
# The code: `text/detokenize.py`, `parsing/hold.py`, `text/stops.py`, `protocol/build.py`,
# `protocol/grammar.py`, `protocol/sse.py`. Each stage has two verbs: `push` and `flush`.

# %%
import json
import os

from minimsg import hub
from minimsg.prompt.chat import ChatModel

MODEL = os.environ.get("MINIMSG_NOTEBOOK_MODEL", "tiny")
chat = ChatModel.open(hub.ensure(MODEL), MODEL)
tokenizer = chat.tokenizer
print("no weights are needed: what the model says is written here;", tokenizer.vocab_size, "tokens")

# %% [markdown]
# ## Half a character
# A token is bytes, and a character may take four of them. What could still become one waits.

# %%
from minimsg.text.detokenize import Detokenizer

detokenizer = Detokenizer(tokenizer)
for id in tokenizer.encode("né 🙂!", at_start=False):
    print(f"{tokenizer.token_bytes(id)!s:20} -> {detokenizer.push(id)!r}")
print("at the end:", repr(detokenizer.flush()))

# %% [markdown]
# ## What may become a tag
# A call of a tool begins with a tag, which nobody is to see. As long as it may still be one, it is
# held back; if it is none after all, it is shown.

# %%
from minimsg.parsing.calls import CallableTool
from minimsg.parsing.formats import parser_for

tools = {"weather": CallableTool({"type": "object"})}


def parse(pieces, tools):
    parser = parser_for("hermes", tools)
    for piece in pieces:
        print(f"{piece!r:24} -> {parser.push(piece)}")
    print(f"{'flush':24} -> {parser.flush(is_cut=False)}")


parse(["if a <", "tool_box", " then <", "tool", "_ca", "ke>"], tools)

# %%
call = [
    "I look. ",
    "\n<tool_",
    "call>\n{",
    '"name": "wea',
    'ther", "argum',
    'ents": {"city":',
    ' "Rome"}}',
    "\n</tool_call>",
]
parse(call, tools)

# %% [markdown]
# The space after `I look.` was held back, too: it touches the tag, so it belongs to it. And before
# the name is complete nobody can know that this is a call: any text may look so far like one.
#
# ## What may become a stop sequence
# No part of one is ever shown. Of `END`, the first letter is enough to make a client wait.

# %%
from minimsg.parsing.segments import TextSegment
from minimsg.text.stops import StopMatcher

stops = StopMatcher(["END", "\n\n"])
for piece in ["One E", "N", "EMY. ", "Two\n", "EN", "D Three"]:
    print(f"{piece!r:10} -> {stops.push(TextSegment(piece))}")
print("stopped by", repr(stops.hit), "| flush:", stops.flush())

# %% [markdown]
# ## Events
# Segments become content blocks: one opens, grows, closes; then the next. Then the stream says why
# it ended and what it cost.

# %%
from minimsg.protocol.build import EventBuilder, fold
from minimsg.protocol.message import new_message

parser, builder = parser_for("hermes", tools), EventBuilder(new_message(MODEL, 25))
segments = [each for piece in call for each in parser.push(piece)] + parser.flush(is_cut=False)
events = builder.start() + [event for each in segments for event in builder.push(each)]
events += builder.finish("end_turn", None, 17)
for event in events:
    print(event["type"], event.get("index", ""), event.get("delta", ""))

# %% [markdown]
# ## The grammar of events
# Which event may follow which is one small automaton. It reads any server's stream, and says what
# is wrong with the first event that does not fit.

# %%
from minimsg.protocol.grammar import check

print("as it is:      ", check(events))
print("cut off:       ", check(events[:-1]))
print("no block start:", check([each for each in events if each["type"] != "content_block_start"]))
print("stop comes twice:", check([*events, events[-1]]))

# %% [markdown]
# ## Bytes
# A frame is two lines and a blank one. A network cuts the bytes where it likes, also in the midst
# of a character; the decoder gives the same frames however they were cut.

# %%
from minimsg.protocol.sse import Decoder, encode

stream = b"".join(map(encode, events))
print(stream[:180].decode(), "...")
for size in (1, 7, 1000):
    decoder = Decoder()
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    frames = [frame for piece in pieces for frame in decoder.push(piece)]
    assert [frame.json() for frame in frames] == events
print("all the same in pieces of 1, 7 and 1000 bytes:", len(frames), "frames")

# %% [markdown]
# ## A plain answer is the fold of the events
# There is one path for both kinds of answer.

# %%
message = fold(events)
print(json.dumps(message["content"], indent=1), message["stop_reason"], message["usage"])

# %% [markdown]
# ## A real one
# A server streams the words of the model `scripted`; beside each read, when it came.

# %%
from time import perf_counter

import aiohttp

from minimsg.config import EngineConfig, ServerConfig
from minimsg.server.app import listening, make_app
from minimsg.server.loading import load_model

loaded = load_model("scripted", hub.ensure("scripted"), EngineConfig(num_pages=512), max_queue=4)
body = {"model": "scripted", "max_tokens": 12, "stream": True}
body |= {"messages": [{"role": "user", "content": "Hello."}]}
app = make_app(loaded.chat, loaded.worker, ServerConfig(no_store=True))
async with listening(app) as url, aiohttp.ClientSession(url) as http:
    start = perf_counter()
    async with http.post("/v1/messages", json=body) as response:
        async for piece in response.content.iter_any():
            last = piece.split(b"data: ")[-1]
            print(f"{1000 * (perf_counter() - start):6.1f} ms {last[:110]!r}")

# %% [markdown]
# ## Two questions, and something to change
#
# **1.** A model writes `<tool_call>` and then ordinary prose, and ends. What does the client get?
# <details><summary>Answer</summary>
# All of it as text, the tag included: a call that never became one is shown, never dropped. Try
# <code>parse(["&lt;tool_call&gt;", " is a tag."], tools)</code>.
# </details>
#
# **2.** With the stop sequence `"\n\n"`, what is held back of a reply that is one long line?
# <details><summary>Answer</summary>
# Nothing: no character of it begins the sequence. Hold-back costs only where something could
# begin.
# </details>
#
# **Change something.** Give `StopMatcher` the sequence `"</"` and let the pieces of `call` run
# through parser and stops together. Does the closing tag stop the reply? Why not?
