# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 03 Attention kernels against the reference
#
# **After this you can** read paged attention in thirty lines, measure how far any kernel is from
# it, write one of your own, and run the engine on it.
#
# `kernels/reference.py` is the specification: slow, plain, in float32. Every other kernel is held
# against it, and it is held against float64. `kernels/contract.py` says what a kernel must do.

# %%
import os

import torch

from minimsg import kernels
from minimsg.errors import KernelUnavailable

cpu, here = torch.device("cpu"), []
for name in kernels.names():
    try:
        here.append(kernels.choose(device=cpu, dtype=torch.float32, head_dim=16, name=name))
        print(f"{name:13} runs here")
    except KernelUnavailable as error:
        print(f"{name:13} {str(error).split(': ')[-1]}")

# %% [markdown]
# ## One step
# A kernel gets the queries, keys and values of the new tokens of several sequences, one after the
# other, and where all earlier tokens lie. Here one sequence decodes (one new token after 40), one
# begins with a prompt of 20. Their pages are in no order, and slots that no token owns hold NaN:
# a kernel that reads one of them cannot hide it.

# %%
from minimsg.kernels.bench_steps import Heads, draw

heads = Heads(query=4, kv=2, size=16)
step = draw(heads, contexts=[41, 20], new=[1, 20], dtype=torch.float32, device=cpu)
print("query", tuple(step.query.shape), "(T, Hq, D) | key", tuple(step.key.shape), "(T, Hkv, D)")
print("pages", tuple(step.layers[0].key.shape), "| page tables", step.layout.page_tables.tolist())
print("rows of the sequences begin at", step.layout.query_starts, "| slots", step.layout.slots[:4])

# %% [markdown]
# ## The reference
# Store the new keys and values, then attend, one sequence at a time.

# %%
import inspect

from minimsg.kernels import reference

print(inspect.getsource(reference.Backend.attention).split("Tensor:\n")[-1])
print(inspect.getsource(reference._attend))

# %% [markdown]
# ## How far is each from float64?
# The same step, in number formats of fewer and fewer bits. An error is judged by what the format
# can hold at all: bfloat16 has three decimal digits.

# %%
from minimsg.kernels.bench_steps import in_float64


def error_of(backend, step, window=None):
    """The largest difference from attention in float64."""
    found = step.attend(backend, window).double()
    return (found - in_float64(step, window)).abs().max().item()


for dtype in (torch.float32, torch.bfloat16):
    for backend in here:
        error = error_of(backend, draw(heads, [41, 20], [1, 20], dtype, cpu))
        print(f"{dtype!s:15} {backend.name:11} {error:.1e}")

# %% [markdown]
# ## A kernel that is wrong
# Would the check notice? Let the reference forget that a token must not see those after it. Its
# answers look like attention all the same.

# %%
from unittest.mock import patch

decoding = draw(heads, [41, 200], [1, 1], torch.float32, cpu)
prompt = draw(heads, [20], [20], torch.float32, cpu)


def sees_all(new, context, window, device):
    return torch.ones(new, context, dtype=torch.bool)


with patch.object(reference, "_visible", sees_all):
    print(f"decoding {error_of(reference.Backend(), decoding):.1e}")
    print(f"a prompt {error_of(reference.Backend(), prompt):.1e}")

# %% [markdown]
# Decoding, there is no future to see: a test of single tokens alone would have passed it.
#
# ## A kernel of your own
# The reference copies all keys of a sequence together. A fast kernel goes page by page and keeps
# three numbers instead of all scores: the largest score so far, the sum of the weights, and the
# weighted values, which shrink when a larger score appears (online softmax, arXiv 1805.02867).


# %%
class PageByPage(reference.Backend):
    name = "page by page"

    def attention(self, query, key, value, pages, layout, *, scale, window=None):
        for each, new in ((pages.key, key), (pages.value, value)):
            each.view(-1, *new.shape[1:])[layout.slots] = new
        output = torch.empty_like(query)
        for n, context in enumerate(layout.context_lens):
            first, last = layout.query_starts[n : n + 2]
            seer = torch.arange(context - (last - first), context)  # the places of its new tokens
            table = layout.page_tables[n, : -(-context // 16)]
            output[first:last] = self.one(query[first:last], pages, table, seer, scale)
        return output

    def one(self, query, pages, table, seer, scale):
        group = query.shape[1] // pages.key.shape[2]
        top = torch.full(query.shape[:2], -torch.inf)  # (t, Hq) the largest score so far
        total, found = torch.zeros_like(top), torch.zeros_like(query)
        for place, page in enumerate(table):
            seen = torch.arange(16 * place, 16 * place + 16) <= seer[:, None]  # (t, 16)
            k, v = (each[page].repeat_interleave(group, 1) for each in (pages.key, pages.value))
            scores = torch.einsum("thd,chd->thc", query, k.nan_to_num()) * scale
            scores = scores.masked_fill(~seen[:, None], -torch.inf)
            higher = torch.maximum(top, scores.amax(-1))
            weights, shrink = (scores - higher[..., None]).exp(), (top - higher).exp()
            total = total * shrink + weights.sum(-1)
            found = found * shrink[..., None] + torch.einsum(
                "thc,chd->thd", weights, v.nan_to_num()
            )
            top = higher
        return found / total[..., None]


step = draw(heads, [41, 20, 300], [1, 20, 7], torch.float32, cpu)
print(f"{error_of(PageByPage(), step):.1e}")
assert error_of(PageByPage(), step) < 1e-5

# %% [markdown]
# ## The engine on it
# A model is handed its kernel; it does not know which. So the engine can be run on yours, beside
# one on the reference: every value at every named place of every layer, over a whole prompt.

# %%
from minimsg import load
from minimsg.engine.compare import compare

MODEL = os.environ.get("MINIMSG_NOTEBOOK_MODEL", "tiny")
sizes = {"dtype": "float32", "kernel": "reference", "num_pages": 64, "max_context": 1024}
plain, own = load(MODEL, **sizes), load(MODEL, **sizes)
network, prompt = own.engine.runner.model, plain.request("Say something.").prompt_ids
network.backend = PageByPage()
for layer in network.layers:
    layer.attention.backend = network.backend
comparison = compare(plain.engine, own.engine, prompt, max_tokens=12)
assert comparison.first(tolerance=1e-4) is None
assert comparison.first_token is None
comparison

# %% [markdown]
# ## Rounding, or a fault?
# Rounding alone grows from layer to layer. A fault is where the difference jumps: here one layer's
# attention is a hundredth too large. (`minimsg serve --check-kernels 0.01` looks for such a jump in
# one of a hundred live steps.)


# %%
class TooLarge(PageByPage):
    name = "a hundredth too large"

    def attention(self, *args, **kwargs):
        return 1.01 * super().attention(*args, **kwargs)


network.layers[1].attention.backend = TooLarge()
own.engine.reset()
comparison = compare(plain.engine, own.engine, prompt, max_tokens=12)
jump = comparison.first(tolerance=1e-3)
print(f"first far apart at {jump.point}: {jump.relative:.1%} of the largest value there")
assert jump.layer == 1
comparison

# %% [markdown]
# ## Two questions, and something to change
#
# **1.** Why does `PageByPage` call `nan_to_num` although those scores are masked?
# <details><summary>Answer</summary>
# A masked weight is 0, and 0 times NaN is NaN: the last page of a sequence has slots that nobody
# has written. A kernel must not let them into the sum; memory is not cleared between requests.
# </details>
#
# **2.** Two kernels are both within 1e-6 of float64. Must they choose the same tokens?
# <details><summary>Answer</summary>
# No. Where two ids are nearly as likely, the last bits decide, and from there on the texts differ.
# A kernel whose very bits do not depend on what else runs is called batch invariant;
# <code>--deterministic</code> asks for one.
# </details>
#
# **Change something.** Give `PageByPage` a `window`: a token sees itself and the `window - 1`
# tokens before it. Check with `error_of(PageByPage(), step, window=33)`; then skip the pages that
# nobody sees any more.
