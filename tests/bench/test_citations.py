"""Citations are judged by hand-made sources; with the real model they are good enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minimsg import hub
from minimsg.bench.citations import Case, Score, cases, measure_citations
from minimsg.bench.citing_cost import Cost, measure_cost
from minimsg.bench.settings import VersusSettings
from minimsg.citing.sentences import sentence_spans
from minimsg.errors import ModelNotFound

CASE = Case("tuning", (), "Who?", "Ada Holt", "Ada Holt did.")


def block(text: str, *cited: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "citations": [{"cited_text": each} for each in cited]}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([block("Oh. "), block("It was ada holt.", "Ada Holt did.")], (1, 1, 1, 1)),
        ([block("Ada Holt.", "Ada Holt did.", "Other.")], (1, 1, 2, 1)),
        ([block("Ada Holt.", "Other."), block("Ada Holt.", "Ada Holt did.")], (1, 1, 1, 0)),
        ([block("Ada Holt.")], (1, 1, 0, 0)),
        ([block("Nobody.", "Other.")], (1, 0, 0, 0)),
        ([], (1, 0, 0, 0)),
    ],
)
def test_the_block_with_the_answer_is_judged(
    content: list[dict[str, Any]], expected: tuple[int, int, int, int]
) -> None:
    score = Score()
    score.add(CASE, content)
    assert (score.questions, score.answered, score.citations, score.right) == expected


def test_precision_and_recall_are_shares_of_citations_and_of_answers() -> None:
    score = Score(questions=9, answered=8, citations=5, right=4)
    assert (score.precision, score.recall) == (0.8, 0.5)
    assert (Score().precision, Score().recall) == (None, None)


def test_every_question_has_its_answer_in_one_sentence_of_a_document_that_was_not_cut() -> None:
    found = cases()
    assert len(found) == 60
    assert sum(case.half == "tuning" for case in found) == 32
    for case in found:
        sentences = case.documents[-1]["sentences"]
        text = " ".join(sentences)
        assert [text[begin:end] for begin, end in sentence_spans(text)] == sentences
        assert case.answer.lower() in case.source.lower()


def test_the_cost_of_attention_is_a_ratio_of_tokens_in_the_same_round() -> None:
    cost = Cost(off_ms=[10.0, 40.0, 20.0], attention_ms=[15.0, 48.0, 22.0])
    assert cost.words() == (
        "a token takes 22.0 ms with attention and 20.0 ms without: 1.20 times as long "
        "(1.10 to 1.50, 3 rounds)"
    )
    assert cost.as_dict()["ratio"] == 1.2


def test_the_cost_is_measured_with_any_model(tmp_path: Path) -> None:
    settings = VersusSettings(dtype="float32", threads=1, rounds=2, data_dir=tmp_path)
    cost = measure_cost("tiny", settings)
    assert len(cost.off_ms) == len(cost.attention_ms) == 2
    assert min(*cost.off_ms, *cost.attention_ms) > 0


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_answers_of_the_real_model_cite_their_source() -> None:
    try:
        hub.resolve("smollm2")
    except ModelNotFound as error:
        pytest.skip(str(error))
    scores = measure_citations("smollm2", VersusSettings(dtype="float32", threads=1))
    for kind in ("overlap", "attention"):
        for score in scores[kind].values():
            assert score.precision is not None
            assert score.recall is not None
            assert score.precision >= 0.8
            assert score.recall >= 0.8
    assert [score.citations for score in scores["off"].values()] == [0, 0]
