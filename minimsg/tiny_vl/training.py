"""Trains the model on pictures that are drawn as it learns: `python -m minimsg.tiny_vl FOLDER`.

Matrices inside the blocks learn by Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon),
all else by AdamW (arXiv 1711.05101). Rates rise for some steps and then fall, to zero at the end
(`_share`). Two processes share each step (`team.py`): less than twenty minutes on two cores.
Next: `lessons.py` (what is learned), `network.py` (who learns).
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor, nn

from minimsg.models.config import ModelConfig
from minimsg.tiny_vl.cells import Naming
from minimsg.tiny_vl.checkpoint import save_weights, write_description
from minimsg.tiny_vl.lessons import NOTHING, Batch, Pictures, make_batch, make_pictures
from minimsg.tiny_vl.muon import Muon
from minimsg.tiny_vl.network import Network
from minimsg.tiny_vl.team import ALONE, Team, together
from minimsg.tiny_vl.transcript import encoded
from minimsg.tiny_vl.vocabulary import make_tokenizer

# How much a word of an answer counts. Most follow from what was said before; on these all turns:
# yes or no (in " so yes" it takes three layers to tell), and whether there is one to speak of.
WEIGHTS: Final = {" yes": 4.0, " no": 4.0, "Yes": 2.0, "No": 2.0, "The": 2.0, "I": 2.0}


@dataclass(frozen=True)
class Plan:
    """How long, how much at once, and how fast."""

    num_looks: int = 2500  # steps at pictures alone
    num_talks: int = 2800  # steps of conversations
    num_pictures: int = 32  # in a step that only looks, of the whole team
    num_lessons: int = 24  # in a step that talks, of the whole team
    matrix_rate: float = 0.02
    other_rate: float = 0.002
    num_rising: int = 50  # steps
    naming_weight: float = 0.3  # beside language
    weight_decay: float = 0.01
    left_for_talks: float = 0.25  # of the tower's rate, when it has looked
    clip: float = 1.0
    seed: int = 1


class Progress(NamedTuple):
    """What is known after a step."""

    step: int
    loss: float
    cpu_s: float  # of this process, since the beginning


class Training:
    """A network, its optimizers and its source of lessons; iterate to train it."""

    def __init__(self, folder: Path, plan: Plan = Plan(), team: Team = ALONE) -> None:
        """`folder` gets the model's description now, its weights by `save`."""
        torch.manual_seed(plan.seed)
        self.plan, self.folder, self.team = plan, folder, team
        folder.mkdir(parents=True, exist_ok=True)
        self.tokenizer: Tokenizer = make_tokenizer()
        write_description(folder, self.tokenizer)
        self.config = ModelConfig.from_folder(folder)
        assert self.config.vision is not None
        self.vision = self.config.vision
        self.network = Network(self.config)
        self.naming = Naming(self.config.hidden_size, lambda word: self._id_of(f" {word}"))
        self.weights = torch.ones(self.tokenizer.get_vocab_size())
        for word, weight in WEIGHTS.items():
            self.weights[self._id_of(word)] = weight
        self.random = random.Random(plan.seed + 1000 * team.rank)  # lessons of its own
        self.shared = random.Random(plan.seed)  # what they are like
        _initialize(self.network)
        self.optimizers = _optimizers(self.network, self.naming, plan)

    def __iter__(self) -> Iterator[Progress]:
        """One step each."""
        begin = time.process_time()
        for step in range(self.plan.num_looks + self.plan.num_talks):
            only_looks = step < self.plan.num_looks
            loss = self._look() if only_looks else self._talk()
            self._learn(loss, step)
            yield Progress(step + 1, loss.item(), time.process_time() - begin)

    def _look(self) -> Tensor:
        number = self._share_of(self.plan.num_pictures)
        pictures = make_pictures(self.random, self.vision, number, self.shared)
        return self._named(self.network.see(*pictures[:2]), pictures)

    def _talk(self) -> Tensor:
        number = self._share_of(self.plan.num_lessons)
        batch = make_batch(self.random, self.tokenizer, self.vision, number, self.shared)
        seen = self.network.see(*batch.pictures[:2])
        named = self._named(seen, batch.pictures)
        said = loss_of(self.network, batch, seen, self.weights)
        loss: Tensor = said + self.plan.naming_weight * named
        return loss

    def _named(self, seen: Tensor, pictures: Pictures) -> Tensor:
        words = self.network.model.language_model.embed_tokens.weight
        named: Tensor = self.naming(seen, pictures.cells, pictures.masks, words)
        return named

    def _id_of(self, word: str) -> int:
        (id,) = encoded(self.tokenizer, word)
        return id

    def _share_of(self, number: int) -> int:
        return max(1, number // self.team.size)

    def _learn(self, loss: Tensor, step: int) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.team.average([*self.network.parameters(), *self.naming.parameters()])
        nn.utils.clip_grad_norm_(self.network.parameters(), self.plan.clip)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * _share(step, self.plan, looks=group["looks"])
            optimizer.step()

    def save(self) -> None:
        """The weights as they are now."""
        save_weights(self.network, self.folder)


def train(folder: Path, plan: Plan = Plan(), num_processes: int = 2) -> None:
    """The whole training, with a line for every fifty steps; the weights are saved in between."""
    together(_train_in, num_processes, folder, plan)


def _train_in(team: Team, folder: Path, plan: Plan) -> None:
    training = Training(folder, plan, team)
    is_last = plan.num_looks + plan.num_talks
    for progress in training:
        if team.rank == 0 and (progress.step % 50 == 0 or progress.step == is_last):
            print(progress, flush=True)
            training.save()


def loss_of(network: Network, batch: Batch, seen: Tensor, weights: Tensor) -> Tensor:
    """Mean of -log p over the tokens of the answers; ids have weights `(V,)`."""
    hidden = network.read(batch.ids, batch.axes, batch.mask, batch.sight, seen)
    is_learned = batch.targets != NOTHING
    logits = network.head(hidden[is_learned])
    return F.cross_entropy(logits, batch.targets[is_learned], weights)


def _initialize(network: Network) -> None:
    """Blocks that begin by changing nothing, in a tower that tells black from grey from white.

    Its first norm takes the size of what it gets, so brightness has to be a direction: that is
    what large positions and biases of patches are for.
    """
    for name, parameter in network.named_parameters():
        if name.endswith(("pos_embed.weight", "patch_embed.proj.bias")):
            nn.init.normal_(parameter, std=0.5)
        elif name.endswith("embed_tokens.weight"):
            nn.init.normal_(parameter, std=0.02)
        elif name.endswith(_BLOCK_ENDS) and "merger" not in name:
            nn.init.zeros_(parameter)
        elif parameter.dim() > 1:
            nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)


_BLOCK_ENDS: Final = ("o_proj.weight", "down_proj.weight", "attn.proj.weight", "linear_fc2.weight")


def _optimizers(network: Network, naming: Naming, plan: Plan) -> list[torch.optim.Optimizer]:
    """Muon for the blocks' matrices; those of the mergers are large, and would take it long."""
    muon, adam = [], []
    tower, decoder = network.model.visual, network.model.language_model
    for half, heads in ((tower, list(naming.parameters())), (decoder, [])):
        matrices: list[Tensor] = []
        others: list[Tensor] = list(heads)
        for name, parameter in half.named_parameters():
            is_inside = name.startswith(("blocks.", "layers.")) and parameter.dim() == 2
            (matrices if is_inside else others).append(parameter)
        muon.append({"params": matrices, "peak": plan.matrix_rate, "looks": half is tower})
        adam.append({"params": others, "peak": plan.other_rate, "looks": half is tower})
    betas, decay = (0.9, 0.98), plan.weight_decay
    return [Muon(muon), torch.optim.AdamW(adam, betas=betas, weight_decay=decay)]


def _share(step: int, plan: Plan, *, looks: bool) -> float:
    """Of the highest rate: from nothing in a line, then down along a cosine.

    What `looks` has learned most before there is talk, and goes on with what is left.
    """
    begin, end, low = 0, plan.num_looks, plan.left_for_talks
    if step >= plan.num_looks:
        begin, end, low = plan.num_looks, plan.num_looks + plan.num_talks, 0.0
    high = plan.left_for_talks if looks and begin else 1.0
    rising = 1.0 if looks and begin else min(1.0, (step - begin + 1) / plan.num_rising)
    fallen = 0.5 - 0.5 * math.cos(math.pi * (step - begin) / max(1, end - begin))
    return rising * (high + (low - high) * fallen)
