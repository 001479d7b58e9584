# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 11 Train a model that sees
#
# **After this you can** say what such a model is taught and in which order, why questions about
# one picture may share it, and train your own on other pictures.
#
# `minimsg serve tiny-vl` is a Qwen3-VL of 1.3 million parameters that ships with the package, and
# this code trained it: `minimsg/tiny_vl/`. By default this notebook takes a few steps only; set
# `MINIMSG_TRAIN=whole` for all of them, in less than twenty minutes on two cores, or run
# `python -m minimsg.tiny_vl FOLDER`.
#
# ## A scene
# Facts: what is where, in which colour. Everything that may be asked follows from them, so no
# answer needs a person.

# %%
import os
import random
from pathlib import Path

from minimsg.tiny_vl.questions import ask_any
from minimsg.tiny_vl.scenes import random_scene

source = random.Random(7)
scene = random_scene(source, 120, 90)
for thing in scene.things:
    print(thing.colour, thing.noun, "at", round(thing.x), round(thing.y))
for _ in range(5):
    print(ask_any(source, scene))

# %% [markdown]
# ## Its picture
# As Pillow draws it.

# %%
from minimsg.tiny_vl.drawing import draw

picture = draw(scene)
print(picture.size, picture.mode, "colour of the ground", picture.getpixel((0, 0)))

# %% [markdown]
# ## Words
# A word of the language is one token, whatever else is written goes byte by byte:
# so the model sees at once which words are not its own.

# %%
from minimsg.tiny_vl.strangers import stranger
from minimsg.tiny_vl.vocabulary import make_tokenizer

tokenizer = make_tokenizer()
for text in ("What colour is the star?", "What colour is the dog?", stranger(source).text):
    print(tokenizer.encode(text).tokens)

# %% [markdown]
# ## A lesson
# Some questions on one picture, apart: below, a row is a token and says which
# tokens it may look at (`#`). The beginning with the picture is seen by all; no question sees
# another. Positions begin anew for each, so it is as if it were alone.

# %%
from tempfile import mkdtemp

from minimsg.tiny_vl.lessons import NOTHING, make_batch
from minimsg.tiny_vl.training import Plan, Training, train

plan = Plan(num_looks=6, num_talks=6, num_rising=3, num_lessons=8)
training = Training(Path(mkdtemp()), plan)
batch = make_batch(random.Random(3), tokenizer, training.vision, 1)
for row in batch.mask[0, ::4, ::4].tolist():
    print("".join("#" if sees else "." for sees in row))
learned = batch.targets[0][batch.targets[0] != NOTHING]
print("learned:", tokenizer.decode(learned.tolist(), skip_special_tokens=False))

# %% [markdown]
# ## Looking
# Before any language the tower learns to say of each cell of a picture what is
# there: which of its squares are covered, and, where a thing has its middle, its noun, its
# colour and how far to the right it is. What the decoder has words for is told by pointing where
# these words do; so when it reads "star", it has something to find.

# %%
from minimsg.tiny_vl.cells import FINE, NAMES, NOUNS, cells_of, masks_of

rows, columns = 3, 4
cells = cells_of([scene], rows, columns)[0]
for place, (noun, colour, *_) in enumerate(cells.tolist()):
    if noun:
        row, column = divmod(place, columns)
        print(f"row {row}, column {column}: {NAMES[colour - 1]} {NOUNS[noun - 1]}")
mask = masks_of([scene], rows, columns)[0].view(rows, columns, FINE, FINE).transpose(1, 2)
for line in mask.reshape(rows * FINE, columns * FINE).tolist():
    print("".join(" .:#"[min(3, int(4 * value))] for value in line))

# %% [markdown]
# ## Training
# First it looks, then it looks and talks; the loss falls in both.

# %%
if os.environ.get("MINIMSG_TRAIN") == "whole":
    train(training.folder)
else:
    for progress in training:
        print(progress)
    training.save()

# %% [markdown]
# ## The trained one
# The folder that was just written can be served like any other:
# `minimsg serve FOLDER`. After a few steps it knows nothing; here is the one that ships.

# %%
import base64
from io import BytesIO

from minimsg import load
from minimsg.tiny_vl.exam import exam

model = load("tiny-vl")
for item in exam(14):
    stream = BytesIO()
    item.picture.save(stream, "PNG")
    data = base64.b64encode(stream.getvalue()).decode()
    image = {"type": "base64", "media_type": "image/png", "data": data}
    content = [{"type": "image", "source": image}, {"type": "text", "text": item.question.text}]
    reply = model.generate([{"role": "user", "content": content}], max_tokens=40)
    print(f"{item.question.text:50} {reply.text}")
print(model.generate("What is the capital of France?").text)

# %% [markdown]
# ## Two questions, and something to change
#
# **1.** "Is the star left of the 7?" is answered "The 7 is left of the star, so no." Why not "No"
# first?
# <details><summary>Answer</summary>
# Each token is computed from those before it. The first noun is what a look at the picture gives:
# of the two, the one further to the left. Yes or no then only asks whether that was the one asked
# for. Said first, it needs both places at once: with "Yes" or "No" in front, the same training had
# a third of such answers right.
# </details>
#
# **2.** Why do the linear maps that name cells not ship with the model?
# <details><summary>Answer</summary>
# They only served to give the tower something to learn before the decoder asks it anything. A
# served model answers in words, and those come from the decoder.
# </details>
#
# **Change something.** Add a colour to `COLOURS` in `minimsg/tiny_vl/scenes.py`, with a few shades,
# and train the whole again: how well is it told from its neighbours? The exam knows it at once.
