# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 01 One token by hand
#
# **After this you can** compute the next token of a prompt with nothing but matrix products,
# and say what temperature, top-k and top-p do to it, in numbers.
#
# The weights are those of the engine; the arithmetic is written out here, in plain torch, and
# held against the engine's. The code that does it in earnest: `models/layers.py`,
# `kernels/reference.py`, `engine/draw.py`.

# %%
import os

import torch

from minimsg import load

MODEL = os.environ.get("MINIMSG_NOTEBOOK_MODEL", "tiny")
# The reference kernel leaves the weights as they are in the file: float32 matrices.
model = load(MODEL, dtype="float32", kernel="reference", num_pages=64, max_context=1024)
torch.set_grad_enabled(False)
request = model.request("What is the capital of France?", max_tokens=1, temperature=0)
ids = torch.tensor(request.prompt_ids)
spelled = [model.chat.tokenizer.token_bytes(id) for id in request.prompt_ids]
print(len(ids), "tokens:", spelled)

# %% [markdown]
# ## Ids to vectors
# Each id picks a row of the embedding. From here on a token is a vector, and each layer adds to
# it: that sum is called the residual stream.

# %%
decoder = model.engine.runner.model
embedding = decoder.checkpoint_tensors()["model.embed_tokens.weight"]
x = embedding[ids]
print("embedding", tuple(embedding.shape), "| x", tuple(x.shape), "(T, hidden)")

# %% [markdown]
# ## Attention, written out
# A query looks at the keys of all tokens up to its own: the better they fit, the more it takes of
# their values. Queries and keys are turned by their position before, so that only distances count.

# %%
rotation = decoder.rotary(torch.arange(len(ids)), x.dtype, len(ids))


def queries_keys_values(layer, x):
    attention = layer.attention
    heads = attention.input(x, layer.attention_norm).view(len(x), -1, attention.head_dim)
    turned, values = heads[:, : -attention.num_kv_heads], heads[:, -attention.num_kv_heads :]
    if attention.head_norm is not None:
        turned = attention.head_norm(turned)
    turned = rotation.rotate(turned)
    return turned[:, : attention.num_heads], turned[:, attention.num_heads :], values


for name, heads in zip("qkv", queries_keys_values(decoder.layers[0], x), strict=True):
    print(name, tuple(heads.shape), "(T, heads, D)")


# %%
def attend(layer, x):
    queries, keys, values = queries_keys_values(layer, x)
    group = queries.shape[1] // keys.shape[1]  # so many query heads share one head of keys
    keys, values = (each.repeat_interleave(group, dim=1) for each in (keys, values))
    scores = torch.einsum("thd,chd->htc", queries, keys) * layer.attention.scale
    future = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
    return weights, torch.einsum("htc,chd->thd", weights, values)


weights, _ = attend(decoder.layers[0], x)
for row in (1, 5, len(ids) - 1):  # of the first head of the first layer
    share, place = weights[0, row].max(dim=0)
    print(f"{spelled[row]} looks most at {spelled[place]}, {row - place} back: {share:.0%}")

# %% [markdown]
# ## All layers
# What attention found is added to `x`, then what the MLP makes of that.

# %%
for layer in decoder.layers:
    _, found = attend(layer, x)
    layer.attention.output(found.reshape(len(x), -1), add_to=x)
    layer.mlp(x, layer.mlp_norm)  # adds down(silu(gate) * up)
by_hand = decoder.head(x[-1:], decoder.norm)
print("logits", tuple(by_hand.shape), "(1, V): one number for each id that may come next")

# %% [markdown]
# ## Held against the engine
# The engine keeps keys and values in pages and computes many requests at once. The numbers are
# the same, or differ in their last bits: a sum in another order is rounded otherwise.

# %%
engine = model.engine
engine.add(request)
logits = engine.runner.run(engine.scheduler.schedule())
print("largest difference:", (logits - by_hand).abs().max().item())
assert torch.allclose(logits, by_hand, rtol=1e-3, atol=1e-3)
engine.cancel(request.id)

# %% [markdown]
# ## Logits to an id
# Softmax makes probabilities of them. Temperature 0 takes the likeliest, always.


# %%
def show(probabilities, n=8):
    for value, id in zip(*probabilities.topk(n), strict=True):
        token = model.chat.tokenizer.token_bytes(int(id))
        print(f"{value:6.1%} {'█' * round(40 * value.item())} {token}")


probabilities = by_hand[0].softmax(dim=-1)
show(probabilities)

# %% [markdown]
# Temperature divides the logits, top-k keeps the k likeliest, top-p the fewest that make up p of
# what is left; in this order.


# %%
def kept(logits, temperature, top_k, top_p):
    values, order = (logits / temperature).softmax(dim=-1).sort(descending=True, stable=True)
    values[top_k:] = 0
    values /= values.sum()
    values[values.cumsum(dim=-1) - values >= top_p] = 0
    return torch.zeros_like(logits).scatter(0, order, values / values.sum())


mine = kept(by_hand[0], temperature=0.7, top_k=6, top_p=0.8)
show(mine)

# %% [markdown]
# The engine draws from the same numbers: four thousand draws, each with a number of its own, fall
# as often on each id as its probability says.

# %%
from collections import Counter

from minimsg.engine.draw import draw, uniform
from minimsg.engine.types import SamplingParams

params = SamplingParams(temperature=0.7, top_k=6, top_p=0.8)
numbers = [uniform(seed, 0) for seed in range(4000)]
drawn = Counter(draw(by_hand.expand(4000, -1), [params] * 4000, numbers))
for id, count in drawn.most_common():
    token = str(model.chat.tokenizer.token_bytes(id))
    print(f"{token:12} drawn {count / 4000:6.1%}, by hand {mine[id]:6.1%}")

# %% [markdown]
# ## Two questions, and something to change
#
# **1.** For the second token, must all of the above be done again for all tokens?
# <details><summary>Answer</summary>
# No. Nothing looks ahead, so keys and values of the prompt stay as they are: they are kept, and
# only the new token's row is computed. That is the KV cache, notebook 02.
# </details>
#
# **2.** With `top_p=0` and any temperature, which id is drawn?
# <details><summary>Answer</summary>
# The likeliest: at least one is always kept. Here, where the sum before an id must be less than
# <code>top_p</code>, none would be; <code>engine/draw.py</code> has a line for it. Find it.
# </details>
#
# **Change something.** Leave out `rotation.rotate` in the third cell of code and run on: which
# check fails? Then take the rotation back in, and let `future` hide the first token as well.
