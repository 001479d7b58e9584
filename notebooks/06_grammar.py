# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 06 Grammars and forced tools
#
# **After this you can** watch a grammar narrow down what a model may say next, force a call of a
# tool whose input fits its schema, and write a constraint of your own.
#
# The code: `constrain/grammars.py` (from a request to a hook), `engine/types.py` (`TokenHook`),
# `engine/sampler.py` (`constrain`: the mask is laid over the logits).

# %%
import json
import os
from dataclasses import replace

from minimsg import load
from minimsg.constrain.constraint import Constraint
from minimsg.constrain.grammars import Grammars

MODEL = os.environ.get("MINIMSG_NOTEBOOK_MODEL", "tiny")
model = load(MODEL, num_pages=128, max_context=1500)
grammars, tokenizer = Grammars.of(model.chat), model.chat.tokenizer
print(f"{tokenizer.vocab_size:,} tokens; calls are written in the form of {model.chat.tool_format}")

# %% [markdown]
# ## A schema becomes a hook
# The engine knows no JSON. Before each id it asks the hook of a request for a mask: the ids that
# may come. After it, it tells the hook which one came.

# %%
schema = {
    "type": "object",
    "properties": {"page": {"type": "integer"}, "found": {"type": "boolean"}},
    "required": ["page", "found"],
    "additionalProperties": False,
}
hook = await grammars.hook(Constraint(schema=schema), tools={})
allowed = hook.mask().ids()
print(
    len(allowed),
    "of",
    tokenizer.vocab_size,
    "may begin:",
    list(map(tokenizer.token_bytes, allowed)),
)

# %% [markdown]
# ## By hand
# Spell an answer token by token, and see how many others could have come at each place. Where it is
# one, the model has no say at all.

# %%
for id in tokenizer.encode('{"page":42,"found":true}', at_start=False):
    allowed = hook.mask().ids()
    assert id in allowed
    print(f"{tokenizer.token_bytes(id)!s:12} one of {len(allowed)}")
    hook.advance(id)
print("then:", [tokenizer.token_bytes(id) for id in hook.mask().ids()], "or forced:", hook.forced())


# %% [markdown]
# ## In the engine
# The same schema, and the model chooses among what is allowed. Its words stay its own: of random
# weights they are noise, but noise that fits.


# %%
async def held(prompt, constraint, tools=None, max_tokens=150):
    """What the model says under a constraint."""
    request = model.request(prompt, max_tokens=max_tokens, temperature=1.0, seed=3)
    hook = await grammars.hook(constraint, tools or {})
    tokens, finish = model.engine.run(replace(request, hook=hook))
    return tokenizer.decode(token.id for token in tokens), finish.reason


text, why = await held("On which page is it?", Constraint(schema=schema))
print(text, f"({why})", json.loads(text))

# %% [markdown]
# ## A forced tool
# `tool_choice` of a request is such a constraint, too: the reply is one call of that tool, in the
# form in which the model's template writes calls.

# %%
from minimsg.parsing.calls import CallableTool

city = {"type": "string", "enum": ["Paris", "Rome"]}
days = {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3}
weather = {"type": "object", "properties": {"city": city, "days": days}, "required": ["city"]}
tools = {"weather": CallableTool({**weather, "additionalProperties": False})}
must = Constraint(must_call=["weather"], is_one_call=True)

text, why = await held("Weather in Rome for three days?", must, tools)
print(text, f"({why})")

# %% [markdown]
# The parser that reads calls back is another one, and knows nothing of the grammar. What it finds
# fits the schema.

# %%
from minimsg.parsing.formats import parser_for

parser = parser_for(model.chat.tool_format, tools)
segments = parser.push(text) + parser.flush(is_cut=False)
print(segments)
print(json.loads("".join(getattr(segment, "fragment", "") for segment in segments)))

# %% [markdown]
# ## A constraint of your own
# Four methods make a hook. This one allows only tokens without the letter e; a drawn id that the
# mask does not have is impossible, whatever its logit.


# %%
class Without:
    def __init__(self, letter):
        texts = map(tokenizer.token_bytes, range(tokenizer.vocab_size))
        self.ids = [id for id, text in enumerate(texts) if letter not in text]

    def mask(self):
        return self.ids

    def forced(self):
        return None

    def advance(self, id):
        pass  # it need not remember what came

    def rollback(self, n):
        pass


request = model.request("Tell me about the sea.", max_tokens=40, temperature=0)
tokens, _ = model.engine.run(replace(request, hook=Without(b"e")))
reply = tokenizer.decode(token.id for token in tokens)
print(repr(reply))
assert "e" not in reply

# %% [markdown]
# What does a constraint cost? `logprob` is the model's own, before the mask: what it had to be
# talked into.

# %%
print("least likely:", sorted(round(token.logprob, 1) for token in tokens)[:8])

# %% [markdown]
# ## Two questions, and something to change
#
# **1.** A reply that is held to a schema can still be no JSON. When?
# <details><summary>Answer</summary>
# When <code>max_tokens</code> cuts it, or the window is full; <code>stop_reason</code> says so.
# Nothing else can do it: a mask holds at each token.
# </details>
#
# **2.** May a string inside the JSON hold `<|im_end|>`, and end the turn?
# <details><summary>Answer</summary>
# It may hold those ten characters as text. The control token of that name is another id, and no
# mask has it where text is due.
# </details>
#
# **Change something.** Let `Without` count in `advance`, and force the end of the turn (`forced`
# returns `model.chat.turn_end_id`) after ten tokens.
