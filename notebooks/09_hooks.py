# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 09 Lens, patching and steering in a served batch
#
# **After this you can** read what a model computes at any named place, change it for one request
# while others run beside it, and show that they do not notice.
#
# The names are TransformerLens's. The code: `models/points.py` (which places there are),
# `engine/watching.py` (functions on them), `engine/lens.py` (what is read of a prompt).

# %%
import os

from minimsg import load

MODEL = os.environ.get("MINIMSG_NOTEBOOK_MODEL", "tiny")
model = load(MODEL, num_pages=128, max_context=1024, deterministic=True)
engine, tokenizer = model.engine, model.chat.tokenizer
num_layers = len(engine.runner.cache.layers)
print(len(engine.hooks.points), "points; of the first layer:")
print([name for name in engine.hooks.points if name.startswith("blocks.0.")])

# %% [markdown]
# ## The logit lens, in a batch that serves others
# Read the residual stream behind each layer as if it were the last: what would the model say if it
# stopped there? In a trained model the answer appears layer by layer. The request that asks runs
# beside another one, and is told in the same step where its attention looks, in the real pages.
# (`logit_lens` and `attention_pattern` do this for a prompt alone, in a line each.)

# %%
from minimsg.engine.lens import Reading, question

request = model.request("What is the capital of France?", max_tokens=12, temperature=0)
neighbour = model.request("Count to three.", max_tokens=24, temperature=0)
last = len(request.prompt_ids) - 1
streams = Reading(["blocks.*.hook_resid_post"], [last], of=engine.runner.model.logits)
patterns = Reading(["blocks.*.attn.hook_pattern"], [last])
asked = question(request, [last])
hooks = {asked.id: {**streams.hooks, **patterns.hooks}}
beside = list(engine.steps(neighbour, asked, hooks=hooks))
some_layers = sorted({*range(0, num_layers, max(1, num_layers // 10)), num_layers - 1})
for layer in some_layers:
    logits = streams.values(f"blocks.{layer}.hook_resid_post")[0]  # (V,)
    share, id = logits.softmax(dim=-1).max(dim=-1)
    print(f"behind layer {layer:2}: {tokenizer.token_bytes(int(id))!s:14} {share:.0%}")

# %% [markdown]
# ## Where attention looks
# A row of `hook_pattern` is what one token pays to each before it and to itself, head by head.

# %%
for layer in sorted({0, num_layers // 2, num_layers - 1}):
    pattern = patterns.values(f"blocks.{layer}.attn.hook_pattern")[0]  # (heads, keys)
    share, place = pattern.mean(dim=0).topk(3)
    tokens = [tokenizer.token_bytes(request.prompt_ids[int(n)]) for n in place]
    shares = [f"{each:.0%}" for each in share.tolist()]
    print(f"layer {layer:2} looks most at", dict(zip(tokens, shares, strict=True)))

# %% [markdown]
# The step in which both ran: two sequences in one batch, each with its own pages.

# %%
next(step for step in beside if len(step.batch.request_ids) == 2)

# %% [markdown]
# ## Read while it runs
# A function with a name of a point sees its request's rows in each step. Returning nothing, it
# changes nothing.

# %%
norms = []


def watch(values, place):
    norms.append((place.positions, values.norm(dim=-1).mean().item()))


hello = model.request("Hello.", max_tokens=4, temperature=0)
engine.run(hello, hooks={"blocks.0.hook_resid_post": watch})
for positions, norm in norms:
    print(
        f"positions {positions.start} to {positions.stop - 1}: a row is {norm:.1f} long on average"
    )

# %% [markdown]
# ## Steer
# What a function returns takes the place of what it saw. A direction is the difference of what the
# model computes for two texts; it is added to every token of another.

# %%
from minimsg.engine.lens import read

middle = f"blocks.{num_layers // 2}.hook_resid_post"
calm, angry = "I love this, it is wonderful!", "I hate this, it is terrible!"
happy, unhappy = (
    read(engine, model.request(text).prompt_ids, [middle])[middle].mean(dim=0)
    for text in (calm, angry)
)
direction = happy - unhappy


def steer(strength):
    return {middle: lambda values, place: values + strength * direction.to(values)}


mood = model.request("How was your day?", max_tokens=24, temperature=0)
for strength in (0, 4, -4):
    tokens, _ = engine.run(mood, hooks=steer(strength))
    print(f"{strength:3}: {tokenizer.decode(token.id for token in tokens)!r}")

# %% [markdown]
# ## And the neighbours?
# Three requests in one batch, one of them steered: the other two say what they say alone, to the
# last bit of every log probability.

# %%
from minimsg.engine.types import Token

others = [
    model.request(text, max_tokens=24, temperature=0) for text in ("Count.", "Name a colour.")
]
requests = [others[0], mood, others[1]]
alone = [engine.run(each)[0] for each in requests]
together = {each.id: [] for each in requests}
for step in engine.steps(*requests, hooks={mood.id: steer(4)}):
    for output in step.outputs:
        if isinstance(output, Token):
            together[output.request_id].append(output)
for request, tokens in zip(requests, alone, strict=True):
    text = tokenizer.decode(token.id for token in together[request.id])
    print(f"{text!r}: as alone? {together[request.id] == tokens}")

# %% [markdown]
# ## Patch
# Take one place of one run and put it into another: does the answer move with it? Here the stream
# of a prompt about France replaces that of a prompt about Spain, at the last token, in one layer
# after the other. In a trained model there is a layer from which on the answer has moved.

# %%
france, spain = (
    model.request(f"The capital of {country} is called", max_tokens=1, temperature=0)
    for country in ("France", "Spain")
)


def said(prompt, hooks=None):
    (token,) = engine.generate(prompt.prompt_ids, max_tokens=1, hooks=hooks)
    return str(tokenizer.token_bytes(token.id))


streams = read(engine, france, ["blocks.*.hook_resid_post"])
print("France:", said(france), "| Spain:", said(spain))


def patch(values, place):
    theirs, last = streams[place.point][-1], len(spain.prompt_ids) - 1
    if last in place.positions:  # the last row of the prompt is in this step
        values[last - place.positions.start] = theirs
    return values


for layer in some_layers:
    print(
        f"patched behind layer {layer:2}:", said(spain, {f"blocks.{layer}.hook_resid_post": patch})
    )

# %% [markdown]
# ## Two questions, and something to change
#
# **1.** Patching the last layer must give the answer of the other prompt, in any model. Why?
# <details><summary>Answer</summary>
# Behind the last layer only the norm and the head are left, and they look at one row alone. So the
# logits are those of the other prompt. It is a check that the patch is in the right place.
# </details>
#
# **2.** May the pages of a steered request be used by another request that begins alike?
# <details><summary>Answer</summary>
# No: its keys and values follow from changed rows. They are never published, so no neighbour finds
# them, now or later. One who only reads may share.
# </details>
#
# **Change something.** Switch a head off: a function on `blocks.0.attn.hook_z`, whose values are
# `(n, heads, D)`, that sets one head to zero. Which head of which layer changes the reply?
