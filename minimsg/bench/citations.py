"""`minimsg bench --vs citations`: how often a reply cites the sentence that it was taken from.

Questions with known answers (`cited.toml`) are put to the model together with two documents,
the one that has the answer last. What is judged is the block of the reply that holds the
answer: its one right citation is the sentence that says it. Replies without the answer are
counted, not judged. Thresholds were chosen on the half of the documents that is for tuning.

Knows batches without a server, by which it asks; what is cited is decided in
`minimsg/citing/`. What it costs is in `citing_cost.py`.
"""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, Final

from minimsg.bench.contests import default_threads, engine_config
from minimsg.bench.settings import VersusSettings
from minimsg.config import BY_TEMPLATE, ServerConfig
from minimsg.offline.answering import Answerer, Asked
from minimsg.offline.requests import Line
from minimsg.protocol.dialect import OLD

KINDS: Final = ("off", "overlap", "attention")  # of `--citations`
HALVES: Final = ("tuning", "held out")
WISH: Final = "Answer in one sentence."
MAX_TOKENS: Final = 40


@dataclass(frozen=True)
class Case:
    """A question, words that a right answer has, and the sentence that says it."""

    half: str
    documents: tuple[Mapping[str, Any], ...]  # the last of them has the answer
    question: str
    answer: str
    source: str

    def params(self, model: str) -> dict[str, Any]:
        """The request."""
        blocks = [_block(document) for document in self.documents]
        content = [*blocks, {"type": "text", "text": f"{self.question} {WISH}"}]
        turns = [{"role": "user", "content": content}]
        return {"model": model, "max_tokens": MAX_TOKENS, "temperature": 0, "messages": turns}


@dataclass
class Score:
    """What came of the questions of one half."""

    questions: int = 0
    answered: int = 0  # with the right words: these are judged
    citations: int = 0  # that their blocks have
    right: int = 0

    @property
    def precision(self) -> float | None:
        """The share of citations that are right."""
        return self.right / self.citations if self.citations else None

    @property
    def recall(self) -> float | None:
        """The share of answers that cite the right sentence."""
        return self.right / self.answered if self.answered else None

    def add(self, case: Case, content: Sequence[Mapping[str, Any]]) -> None:
        """Judge the blocks of one reply."""
        self.questions += 1
        wanted = case.answer.casefold()
        if wanted not in "".join(block["text"] for block in content).casefold():
            return
        self.answered += 1
        said = (block for block in content if wanted in block["text"].casefold())
        cited = [each["cited_text"] for each in next(said, {}).get("citations") or []]
        self.citations += len(cited)
        self.right += case.source in cited

    def as_dict(self) -> dict[str, object]:
        """For reports."""
        return asdict(self) | {"precision": self.precision, "recall": self.recall}


def cases() -> list[Case]:
    """All of them; a half has every other document."""
    text = files("minimsg.bench").joinpath("cited.toml").read_text(encoding="utf-8")
    documents = tomllib.loads(text)["documents"]
    return [
        Case(HALVES[place % 2], (documents[place - 2], document), question, answer, source)
        for place, document in enumerate(documents)
        for question, answer, number in document["questions"]
        for source in [document["sentences"][number]]
    ]


def measure_citations(model: str, settings: VersusSettings) -> dict[str, dict[str, Score]]:
    """The scores of each kind of attribution, by half."""
    return {kind: asyncio.run(_scores(model, kind, settings)) for kind in KINDS}


def asked(model: str, kind: str, settings: VersusSettings) -> Asked:
    """How the model is asked, with one kind of attribution."""
    server = ServerConfig(citations=kind, no_store=True, data_dir=settings.data_dir)
    engine = engine_config(settings, settings.threads or default_threads())
    return Asked(model, engine, server, BY_TEMPLATE, OLD, ())


async def reply(answerer: Answerer, case: Case, model: str) -> dict[str, Any]:
    """The message that answers a question."""
    params = json.dumps(case.params(model)).encode()
    _, result = await answerer.answer(Line(1, params, case.question, params))
    message: dict[str, Any] = json.loads(result)["message"]
    return message


async def _scores(model: str, kind: str, settings: VersusSettings) -> dict[str, Score]:
    scores = {half: Score() for half in HALVES}
    async with Answerer.open(asked(model, kind, settings)) as answerer:
        messages = await asyncio.gather(*(reply(answerer, case, model) for case in cases()))
    for case, message in zip(cases(), messages, strict=True):
        scores[case.half].add(case, message["content"])
    return scores


def _block(document: Mapping[str, Any]) -> dict[str, Any]:
    text = " ".join(document["sentences"])
    source = {"type": "text", "media_type": "text/plain", "data": text}
    wish = {"enabled": True}
    return {"type": "document", "title": document["title"], "source": source, "citations": wish}
