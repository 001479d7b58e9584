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
# `engine.steps` takes one step each time it is asked, and keeps the last few so that they can be
# taken back. Token i of a request lies in slot `table[i // 16] * 16 + i % 16`.

# %%
story = "Once upon a time a page was lost, and nobody knew whose it was. "
first = model.request(story, max_tokens=40, temperature=0)
steps = engine.steps(first, keep=4)
step = next(steps)
table = step.pages.tables[first.id]
slots = [table[i // page_size] * page_size + i % page_size for i in step.batch.positions]
assert slots == step.batch.slots
print("table", table, "| slots", slots[:4], "...", slots[-4:])
step.pages

# %% [markdown]
# ## Two requests, one page
# A second request that begins alike takes over the full pages that it would fill with the same
# ids. What it shares is not computed again, and not stored twice.

# %%
second = model.request(story + "Its owner was on leave.", max_tokens=40, temperature=0)
steps.add(second)
step = next(steps)
shared = [page for page, users in enumerate(step.pages.users) if len(users) > 1]
print(
    f"used by both: pages {shared}, so {len(shared) * page_size} of {len(second.prompt_ids)} tokens"
)
print(f"computed in this step, of both: {len(step.batch.input_ids)}")
step.pages

# %% [markdown]
# ## Back, and again
# A step that is taken back has not been: its pages hold what they held. The same comes again, to
# the last bit.

# %%
from minimsg.engine.types import Token

steps.rewind(1)
again = next(steps)
assert (again.batch, again.outputs) == (step.batch, step.outputs)
assert again.logits.equal(step.logits)
print("as before:", [each.id for each in again.outputs if isinstance(each, Token)])

# %% [markdown]
# When they end, their pages stay as they are until somebody needs the room: cached.

# %%
*_, end = steps
steps.close()
end.pages

# %% [markdown]
# ## When pages run out
# Five requests of 40 more tokens each need more than 14 pages. The youngest give theirs back and
# wait; later they are computed again from their ids. Nobody waits for ever: the oldest always
# advances. In each line a digit says how many requests use a page, `o` is cached, `.` is free.


# %%
def line(pages):
    idle = ["o" if page in pages.cached else "." for page in range(pages.num_pages)]
    return "".join(str(len(users) or mark) for users, mark in zip(pages.users, idle, strict=True))


crowd = [model.request(f"{n} {story}", max_tokens=40, temperature=0) for n in range(5)]
replies = {request.id: [] for request in crowd}
for step in engine.steps(*crowd):
    for token in step.outputs:
        if isinstance(token, Token):
            replies[token.request_id].append(token.id)
    if step.number % 20 == 1:
        print(
            f"step {step.number:3}  {line(step.pages)}  {len(step.batch.request_ids)} in the batch"
        )
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
print("all five say what they said alone;", engine.pool.num_used, "pages are in use")

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
# `engine.cancel(crowd[0].id)` at step 10, and look for its pages in the next line. (`show(engine)`
# of `minimsg.inspector` draws the same pages as the server's page does.)
