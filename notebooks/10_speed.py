# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 10 Speed: the roofline, and where the time goes
#
# **After this you can** work out how fast a model can be on your machine, measure how near the
# engine comes, and say which stage to look at first.
#
# The code: `bench/limits.py`, `kernels/peaks.py`, `bench/stages.py`. In a shell:
# `minimsg bench --profile` and `minimsg bench --vs transformers --limit`, with rounds and care for
# noise. Here a second must do for each figure, so take them for what they are.

# %%
import os

import torch

from minimsg import load
from minimsg.kernels.peaks import measure_peaks
from minimsg.models.config import ModelConfig

MODEL = os.environ.get("MINIMSG_NOTEBOOK_MODEL", "tiny")
model = load(MODEL, dtype="float32", num_pages=512, max_context=1024)
config = ModelConfig.from_folder(model.chat.folder)
print(config.num_layers, "layers of", config.hidden_size, "| threads:", torch.get_num_threads())

# %% [markdown]
# ## What the machine allows
# Two numbers: how many bytes it reads from memory in a second, and how many multiplications and
# additions it does. Both measured with plain torch.

# %%
is_small = MODEL == "tiny"  # then so few bytes are read that they stay in the CPU's own cache
peaks = measure_peaks(torch.device("cpu"), torch.float32, quick=is_small)
print(f"reads {peaks.bytes_per_s / 1e9:.1f} GB/s")
print(f"multiplies {peaks.flop_per_s / 1e9:.0f} GFLOP/s")
balance = peaks.flop_per_s / peaks.bytes_per_s
print(f"so {balance:.1f} operations can be done while one byte is read")

# %% [markdown]
# ## What a token needs
# One token of one request is multiplied with each weight: two operations for a weight, which is
# read for it. In float32 that is 2 operations for 4 bytes, far below the balance: decoding waits
# for memory. A prompt of hundreds of tokens uses each weight hundreds of times: it waits for the
# multiplications.

# %%
from minimsg.bench.limits import decode_bytes, num_weights, prefill_flop

weights, context, length = num_weights(config, has_head=True), 64, 256
print(f"{weights:,} weights; a token reads {decode_bytes(config, 'float32', context):,} bytes")
decode_limit = peaks.bytes_per_s / decode_bytes(config, "float32", context)
prefill_limit = peaks.flop_per_s / prefill_flop(config, length)
print(f"at most {decode_limit:,.0f} tokens/s decoding, {prefill_limit:,.0f} reading a prompt")

# %% [markdown]
# ## The roofline
# Tokens at once are operations for each byte. Left of the bend more of them are free; right of it
# twice as many take twice as long.

# %%
for tokens in (1, 2, 4, 8, 16, 32, 64, 128):
    seconds = max(4 * weights / peaks.bytes_per_s, tokens * 2 * weights / peaks.flop_per_s)
    bound = "memory" if tokens * 2 / 4 < balance else "arithmetic"
    share = tokens * 2 * weights / seconds / peaks.flop_per_s
    print(f"{tokens:4} at once {'█' * round(40 * share):40} {share:4.0%} of the peak ({bound})")

# %% [markdown]
# ## How near is the engine?
# The same two figures, measured. A tiny model is far from both: its steps are so short that what
# stands around the model counts. A real one is near.

# %%
from minimsg.bench.sides import Ours, make_prompts
from minimsg.bench.stages import measure_steps

ours, tokenizer = Ours(model.engine), model.chat.tokenizer


def prompts(number):
    return make_prompts(tokenizer, number, context)


(cost,) = measure_steps(ours, prompts, [1], num_steps=24)
decoding = 1000 / cost.step_ms
print(f"decoding {decoding:,.0f} tokens/s: {decoding / decode_limit:.0%} of the limit")
reading = list(ours.prefilling(make_prompts(tokenizer, 3, length)))
print(f"a prompt {max(reading):,.0f} tokens/s: {max(reading) / prefill_limit:.0%} of the limit")

# %% [markdown]
# ## Where the time goes
# A step is schedule, inputs (lists to tensors), the model, sample, commit. All but the model is the
# engine's own cost, and ought to be small beside it.

# %%
for cost in measure_steps(ours, prompts, [1, 8], num_steps=16):
    print(f"{cost.streams} at once, {cost.step_ms:.2f} ms a step, {cost.own_percent:.0f}% our own")
    for stage, took_ms in cost.stages_ms.items():
        print(f"   {stage:9} {'█' * round(40 * took_ms / cost.step_ms)} {took_ms:.3f} ms")

# %% [markdown]
# ## Fewer bytes
# If decoding waits for memory, half the bytes are twice the speed. Here is the same model in
# bfloat16, and in int8 where there is a C compiler; the limit moves with them.

# %%
from minimsg.errors import MinimsgError

for dtype in ("float32", "bfloat16", "int8"):
    try:
        engine = load(MODEL, dtype=dtype, num_pages=128, max_context=512).engine
    except MinimsgError as error:
        print(f"{dtype:9} {error}")
        continue
    (cost,) = measure_steps(Ours(engine), prompts, [1], num_steps=24)
    limit = peaks.bytes_per_s / decode_bytes(config, dtype, context)
    print(f"{dtype:9} {1000 / cost.step_ms:7,.0f} tokens/s, at most {limit:9,.0f}")

# %% [markdown]
# ## Two questions, and something to change
#
# **1.** Decoding reaches half of the memory limit. Would a CPU with twice the cores help?
# <details><summary>Answer</summary>
# Little, if all cores share the memory that is waited for. Fewer bytes would (bfloat16, int8), or
# more requests at once, which read the same weights.
# </details>
#
# **2.** Why does speculation (`--speculate`) make one request faster, and a full server not?
# <details><summary>Answer</summary>
# It computes several tokens of one request in a step, which is free only left of the bend of the
# roofline. A full server is at the bend already.
# </details>
#
# **Change something.** Set `context` to 700 and run again from "What a token needs": which share of
# the bytes are keys and values now? At which context are they half of all?
