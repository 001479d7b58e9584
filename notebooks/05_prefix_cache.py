# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 05 The prefix cache, and what `usage` reports
#
# **After this you can** predict each number of `usage` for a request with `cache_control`, tell it
# from what the server really had to compute, and see that both add up.
#
# The code: `prompt/caching.py` (marks to token counts), `engine/prefix.py` (which page holds what),
# `engine/entries.py` (what is kept, for how long), `protocol/usage.py` (the numbers).

# %%
import os
from contextlib import AsyncExitStack

import aiohttp

from minimsg import hub
from minimsg.config import EngineConfig, ServerConfig
from minimsg.server.app import listening, make_app
from minimsg.server.loading import load_model

MODEL = os.environ.get("MINIMSG_NOTEBOOK_MODEL", "tiny")
engine_config = EngineConfig(num_pages=256, max_context=2000)
loaded = load_model(MODEL, hub.ensure(MODEL), engine_config, max_queue=8)
app = make_app(loaded.chat, loaded.worker, ServerConfig(no_store=True))
stack = AsyncExitStack()  # closed by the last cell
url = await stack.enter_async_context(listening(app))
http = await stack.enter_async_context(aiohttp.ClientSession(url))
print("a server of our own:", url)

# %% [markdown]
# ## A prompt with a mark
# `cache_control` on a block says: keep everything up to here. Below it is on the system text; the
# conversation goes on behind it.

# %%
RULES = "You answer in one line. You never guess. You name the page that you found it on. " * 8


async def ask(*turns, mark=None, rules=RULES):
    """One request; prints what it cost, and what the cache really saved."""
    system = {"type": "text", "text": rules} | ({"cache_control": mark} if mark else {})
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(turns)]
    body = {"model": MODEL, "max_tokens": 4, "system": [system], "messages": messages}
    async with http.post("/v1/messages", json=body) as response:
        usage = (await response.json())["usage"]
        reused = int(response.headers["minimsg-reused-tokens"])
    read, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
    print(
        f"input {usage['input_tokens']:4}  written {written:4}  read {read:4}  | reused {reused:4}"
    )
    return usage


FIVE_MINUTES = {"type": "ephemeral"}
usage = await ask("What is on page 3?", mark=FIVE_MINUTES)

# %% [markdown]
# The whole prompt is input + written + read, always. The first request writes the entry; the
# second one reads it, and pays only for what is new.

# %%
usage = await ask("And what is on page 4?", mark=FIVE_MINUTES)

# %% [markdown]
# ## Reused is not read
# `reused` is what was not computed again: whole pages, marked or not. `read` is what the API
# promises a client that has marked it. Without a mark nothing is read, and much may be reused.

# %%
usage = await ask("And what is on page 4?")

# %% [markdown]
# An entry ends where its mark is, between two tokens; a page ends after every 16th. So `reused` is
# a multiple of 16, and can be below what was read or above it.
#
# ## One letter
# A page is found by its ids and by all ids before it. Change the first letter and nothing fits any
# more. Add a sentence at the end, and all pages before it are reused; but an entry ends with a
# block, and this block is another one: so nothing is read, and all is written.

# %%
usage = await ask("What is on page 3?", mark=FIVE_MINUTES, rules=RULES.replace("You", "We", 1))
usage = await ask("What is on page 3?", mark=FIVE_MINUTES, rules=RULES + "Be brief.")

# %% [markdown]
# ## An hour
# An entry lives five minutes from its last use, or an hour if the mark says so. `usage` tells
# which of the two was written, since they are not priced alike.

# %%
usage = await ask("What is on page 5?", mark={"type": "ephemeral", "ttl": "1h"}, rules=RULES[::-1])
print(usage["cache_creation"])

# %% [markdown]
# ## In the engine
# Entries and pages are two things: pages hold keys and values, whoever computed them; an entry is
# the promise to a client that some of them stay. Promises pin pages, up to half of all.

# %%
cache = loaded.worker.engine.cache
pool = loaded.worker.engine.pool
print(len(cache.entries), "entries,", len(cache.index), "pages that can be found")
print(pool.num_cached, "cached,", cache.index.num_pinned, "of them pinned,", pool.num_free, "free")

# %%
await stack.aclose()  # ends the server
print("closed")

# %% [markdown]
# ## Two questions, and something to change
#
# **1.** Another tenant sends the very same prompt. What is reused?
# <details><summary>Answer</summary>
# Nothing. The tenant's name is part of what a page is found by: else the time of a reply would tell
# one customer what another has asked (<code>engine/prefix.py</code>, <code>chain</code>).
# </details>
#
# **2.** A client puts the time of day at the top of its system text, and marks the end. What does
# its `usage` say?
# <details><summary>Answer</summary>
# Each request writes everything and reads nothing, and pays more than without a mark. What changes
# belongs behind the mark.
# </details>
#
# **Change something.** Put a second mark on the last user turn of a conversation (`ask` takes
# several turns), send it twice with one turn more, and predict all three numbers before you look.
