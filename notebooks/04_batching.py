# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 04 Continuous batching as a picture
#
# **After this you can** read from a picture which request was computed in which step, say why a
# long prompt does not stop the others, and predict what one more request costs.
#
# The code: `engine/scheduler.py` (who runs), `engine/chunks.py` (how much of a prompt),
# `engine/batch.py` (what one step computes).

# %%
import os
from dataclasses import replace
from time import perf_counter

from minimsg import load

MODEL = os.environ.get("MINIMSG_NOTEBOOK_MODEL", "tiny")
LIMITS = {"max_context": 2000, "num_pages": 300, "deterministic": True}
model = load(MODEL, max_step_tokens=128, **LIMITS)


def ask(name, num_words, max_tokens):
    """A request with `name`; its reply ends only at `max_tokens`."""
    request = model.request(
        f"{name}: " + "words " * num_words, max_tokens=max_tokens, temperature=0
    )
    return replace(request, id=name, end_ids=frozenset())


a, b, c = ask("anna", 3, 20), ask("bert", 12, 8), ask("carl", 5, 14)
print({request.id: len(request.prompt_ids) for request in (a, b, c)}, "tokens of prompts")

# %% [markdown]
# ## What a step computes
# A batch is one list of tokens: a row for each request that is decoding, and pieces of prompts.

# %%
for number, step in enumerate(model.engine.steps(a, b, c)):
    if number < 6:
        rows = {name: len(rows) for name, rows in step.batch.rows.items()}
        print(f"step {number}: rows {rows}, samples for {step.batch.sample_ids}")

# %% [markdown]
# ## The picture
# A column a step, a line a request: `█` is a piece of its prompt, `·` one token of its reply. In
# `run` each request arrives before the step that is its key.


# %%
def run(arrivals):
    """The batches of a run, and the milliseconds of each."""
    engine, batches, took_ms = model.engine, [], []
    engine.reset()
    while engine.has_work or len(batches) <= max(arrivals):
        for request in arrivals.get(len(batches), []):
            engine.add(request)
        start = perf_counter()
        engine.step()
        took_ms.append(1000 * (perf_counter() - start))
        batches.append(engine.batch)
    return batches, took_ms


def picture(batches):
    for name in dict.fromkeys(name for batch in batches for name in batch.rows):
        marks = (
            "█" if len(b.rows.get(name, "")) > 1 else "·" if name in b.rows else " "
            for b in batches
        )
        print(f"{name:6}", "".join(marks))
    print("tokens", "".join("▁▂▃▄▅▆▇█"[min(7, len(batch.input_ids) // 16)] for batch in batches))


batches, _ = run({0: [a, b, c]})
picture(batches)
print(len(batches), "steps; one request after the other, they would be", 20 + 8 + 14)

# %% [markdown]
# ## Who comes later
# Nobody waits for a batch to end: who arrives is in the next step, who is done leaves with its last
# token. That is what is continuous about it.

# %%
batches, _ = run({0: [a], 5: [b], 9: [c]})
picture(batches)

# %% [markdown]
# ## A long prompt
# A prompt of hundreds of tokens takes longer to compute than many tokens of replies. A step takes
# `max_step_tokens` at most, so the long prompt comes in pieces, and the others go on beside it.

# %%
long = ask("long", 280, 6)
print(len(long.prompt_ids), "tokens, at most", model.engine.config.max_step_tokens, "a step")
batches, in_pieces_ms = run({0: [a, b], 4: [long]})
picture(batches)

# %% [markdown]
# Without pieces it is one step, and everybody waits for it.

# %%
model = load(MODEL, max_step_tokens=2000, **LIMITS)
batches, at_once_ms = run({0: [a, b], 4: [long]})
picture(batches)
for how, took_ms in (("in pieces", in_pieces_ms), ("at once", at_once_ms)):
    print(f"{how:9}: the longest wait for a token {max(took_ms[4:]):6.1f} ms")

# %% [markdown]
# ## What one more costs
# A decode step reads all weights once, however many requests it serves. So the second request is
# nearly free, and the sixteenth still cheap: that is why servers batch.

# %%
for number in (1, 2, 4, 8, 16):
    crowd = [ask(f"{n:02}", 3, 20) for n in range(number)]
    _, took_ms = run({0: crowd})
    step_ms = sorted(took_ms[1:])[len(took_ms) // 2]
    speed = 1000 * number / step_ms
    print(f"{number:2} at once: {step_ms:6.2f} ms a step, {speed:6.0f} tokens a second")

# %% [markdown]
# ## Two questions, and something to change
#
# **1.** In the picture with a long prompt, `anna` gets a token in every step. Who pays for that?
# <details><summary>Answer</summary>
# The long prompt: it is computed in more steps, and its first token comes later. Smaller
# <code>max_step_tokens</code> make replies steadier and long prompts slower.
# </details>
#
# **2.** Must a reply be the same alone and in a batch?
# <details><summary>Answer</summary>
# The sums are over the same numbers, but a kernel may add them up in another order in another
# batch, and last bits can turn a close choice. Here they are the same, since the model was
# loaded with <code>deterministic=True</code>; try it on <code>step.outputs</code>.
# </details>
#
# **Change something.** Give `replace(long, priority=Priority.BACKGROUND)` (of
# `minimsg.engine.types`) together with three interactive requests to an engine with
# `max_sequences=3`, and look who waits. Message batches run like that.
