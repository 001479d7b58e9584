# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 02 The cache and its pages
#
# **After this you can** say where the key of any token of any request lies, what a page costs,
# when two requests share one, and what happens when pages run out.
#
# The code: `engine/pages.py` (who has which page), `engine/prompt_cache.py` (shared ones),
# `engine/cache.py` (the tensors), `engine/scheduler.py` (who must give pages back).

# %%
import os

from minimsg import load

MODEL = os.environ.get("MINIMSG_NOTEBOOK_MODEL", "tiny")
model = load(MODEL, max_context=160, num_pages=14, deterministic=True)
engine, page_size = model.engine, model.engine.config.page_size
print(f"{engine.num_pages} pages of {page_size} tokens; no request may be longer than 160")

# %% [markdown]
# ## What a page is
# Two tensors a layer hold the keys and values of all requests. A page is `page_size` slots in each
# of them. It is paid for in memory, whoever uses it.

# %%
from minimsg.engine.cache import page_bytes

layers = engine.runner.cache.layers
print(len(layers), "layers; keys of one:", tuple(layers[0].key.shape), "(pages, slots, Hkv, D)")
size = page_bytes(engine.runner.model.cache_specs, page_size, layers[0].key.dtype)
print(f"a page is {size:,} bytes: {size // page_size:,} for each token in it")

# %% [markdown]
# ## A request takes pages
# Token i of a request lies in slot `table[i // 16] * 16 + i % 16`: its page table says where.

# %%
story = "Once upon a time a page was lost, and nobody knew whose it was. "
first = model.request(story, max_tokens=40, temperature=0)
engine.add(first)
engine.step()
(sequence,) = engine.scheduler.running
print("ids", len(sequence.ids), "| computed", sequence.num_computed, "| table", sequence.page_table)
slots = [sequence.page_table[i // 16] * 16 + i % 16 for i in range(sequence.num_computed)]
assert slots == engine.batch.slots
print("slots", slots[:4], "...", slots[-4:])

# %% [markdown]
# All pages in one line: `.` is free, `o` is cached (nobody uses it, it is kept in case somebody
# begins alike), a digit says how many requests use it.


# %%
def show(title):
    pool, published = engine.pool, engine.cache.index.published
    idle = ["o" if published(page) else "." for page in range(pool.num_pages)]
    line = [str(pool.references(page) or mark) for page, mark in enumerate(idle)]
    print(f"{title:10} {''.join(line)}  {pool.num_used} used, {pool.num_cached} cached")


show("one runs")

# %% [markdown]
# ## Two requests, one page
# A second request that begins alike takes over the full pages that it would fill with the same
# ids. What it shares is not computed again, and not stored twice.

# %%
second = model.request(story + "Its owner was on leave.", max_tokens=40, temperature=0)
counts = engine.add(second)
print(f"{counts.reused} of {len(second.prompt_ids)} tokens need not be computed")
engine.step()
show("two run")
print([each.page_table for each in engine.scheduler.running])

# %% [markdown]
# When they end, their pages stay as they are until somebody needs the room.

# %%
while engine.has_work:
    engine.step()
show("none runs")

# %% [markdown]
# ## When pages run out
# Five requests of 40 more tokens each need more than 14 pages. The youngest give theirs back and
# wait; later they are computed again from their ids. Nobody waits for ever: the oldest always
# advances.

# %%
from minimsg.engine.types import Token

crowd = [model.request(f"{n} {story}", max_tokens=40, temperature=0) for n in range(5)]
replies = {request.id: [] for request in crowd}
for number, step in enumerate(engine.steps(*crowd)):
    for token in step.outputs:
        if isinstance(token, Token):
            replies[token.request_id].append(token.id)
    if number % 20 == 0:
        show(f"step {number}")
print("pages were taken back from a request", engine.scheduler.num_preemptions, "times")

# %% [markdown]
# Whoever gave its pages back and was computed again says the same as if it had been alone. (To the
# last bit, since the model was loaded with `deterministic=True`.)

# %%
engine.reset()
for request in crowd:
    alone, _ = engine.run(request)
    assert [token.id for token in alone] == replies[request.id]
    engine.scheduler.check()  # each page is in one of: free, cached, in use
show("at the end")

# %% [markdown]
# ## Two questions, and something to change
#
# **1.** Why does a request share only full pages, and never the last token of its prompt?
# <details><summary>Answer</summary>
# A page that is not full will be written to, by each request with its own ids. And the last
# token's row must be computed in any case: its logits choose the next token.
# </details>
#
# **2.** With pages of 1 token nothing would be wasted. Why not?
# <details><summary>Answer</summary>
# A kernel would jump to another place for each token, page tables would be as long as the text,
# and each page would have to be looked up on its own. With pages of 1,000, most of a short
# request's page would be empty. 16 wastes 8 slots a request on average.
# </details>
#
# **Change something.** Load the model with `num_pages=40`: how often are pages taken back now? Then
# `engine.cancel(crowd[0].id)` at step 10, and look for its pages in the next line.
