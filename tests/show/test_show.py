"""How steps look in a notebook, read back with the standard library's parser of HTML."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from minimsg import builtin
from minimsg.config import EngineConfig
from minimsg.engine.compare import compare
from minimsg.engine.engine import Engine
from minimsg.engine.stepping import Steps
from minimsg.engine.types import Finish, FinishReason, GenerationRequest, Token
from minimsg.loading import load_engine
from minimsg.show.batches import MAX_ROWS, ranges, show_batch
from minimsg.show.steps import show_outputs, show_step


class Reader(HTMLParser):
    """The tables of a page; asserts that what is opened is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}  # by caption
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        names = [name for name, _ in attributes]
        assert tag not in ("script", "style", "link", "img", "iframe")
        assert not any(name.startswith("on") or name in ("src", "href") for name in names)
        assert tag != "th" or "scope" in names
        self.open.append(tag)
        self.text = ""
        if tag == "tr":
            self.rows.append([])

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "caption":
            self.rows = self.tables.setdefault(self.text, [])
        elif tag in ("th", "td"):
            self.rows[-1].append(self.text)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    folder = tmp_path_factory.mktemp("tiny")
    builtin.write_tiny(folder)
    return load_engine(folder, EngineConfig(dtype="float32", num_pages=40, max_step_tokens=32))


def test_a_step_says_what_ran_what_came_and_whose_the_pages_are(engine: Engine) -> None:
    requests = [GenerationRequest("<b>", [1] * 20, 3), GenerationRequest("two", [2, 3], 3)]
    steps = engine.steps(*requests)
    step = next(steps)
    tables = Reader(step._repr_html_()).tables
    assert list(tables) == [
        "Batch of 2 sequences, 22 tokens", "Said", "Likeliest next ids", "40 pages of 16 tokens",
    ]  # fmt: skip
    batch, said, likeliest, pages = tables.values()
    assert batch[0] == ["request", "positions", "tokens", "context", "pages", "samples"]
    rows = {row[0]: row[1:] for row in batch[1:]}
    held = {id: ranges(pages) for id, pages in step.pages.tables.items()}
    assert rows == {
        "<b>": ["0 to 19", "20", "20", held["<b>"], "yes"],
        "two": ["0 to 1", "2", "2", held["two"], "yes"],
    }
    tokens = {each.request_id: each for each in step.outputs if isinstance(each, Token)}
    assert {row[0]: row[2] for row in said[1:]} == {id: str(t.id) for id, t in tokens.items()}
    assert step.logits is not None
    for row, logits in zip(likeliest[1:], step.logits, strict=True):
        best = int(logits.argmax())
        assert row[1] == f"{best} {float(logits.softmax(-1)[best]):.1%}"
    assert pages[1:] == [
        ["free", "37", ""],
        ["cached", "0", ""],
        ["<b>", "2", held["<b>"]],
        ["two", "1", held["two"]],
    ]
    close(steps, engine)


def test_ids_are_named_where_there_is_a_tokenizer(engine: Engine) -> None:
    (step,) = engine.steps(GenerationRequest("r", [5], 1))
    (token,) = (each for each in step.outputs if isinstance(each, Token))
    tables = Reader(show_step(step, lambda id: f"<{id}>")).tables
    assert tables["Said"][1][2] == f"{token.id} '<{token.id}>'"
    assert tables["Likeliest next ids"][1][1].startswith(f"{int(step.logits[0].argmax())} '<")  # type: ignore[index]


def test_a_sequence_says_how_far_it_is(engine: Engine) -> None:
    steps = engine.steps(GenerationRequest("r", [7] * 18, 9))
    next(steps)
    next(steps)
    (sequence,) = engine.scheduler.running
    (rows,) = Reader(sequence._repr_html_()).tables.values()
    facts = {row[0]: row[1] for row in rows[1:]}
    assert facts["prompt"] == "18 ids"
    assert facts["generated"] == "2 of at most 9 ids"
    assert facts["computed"] == "19 of 20 ids"
    assert facts["pages"] == ranges(sequence.page_table)
    close(steps, engine)


def close(steps: Steps, engine: Engine) -> None:
    """And hear that it is."""
    steps.close()
    engine.step()


def test_of_many_rows_the_first_are_shown_and_the_number_of_all_is_said(engine: Engine) -> None:
    requests = [GenerationRequest(f"r{place}", [place], 1) for place in range(30)]
    (step,) = engine.steps(*requests)
    (caption,) = Reader(show_batch(step.batch)).tables
    assert caption == f"Batch of 30 sequences, 30 tokens; the first {MAX_ROWS} of 30"
    assert len(step._repr_html_()) < 20_000


def test_what_ended_a_request_is_text_and_nothing_else() -> None:
    finish = Finish("r", FinishReason.ERROR, "<script>alert(1)</script>")
    tables = Reader(show_outputs([finish])).tables
    assert tables["Said"][1][2] == "<script>alert(1)</script>"


def test_engines_side_by_side_have_a_row_for_each_layer(engine: Engine) -> None:
    comparison = compare(engine, engine, [1, 2, 3], max_tokens=2)
    html = comparison._repr_html_()
    (rows,) = Reader(html).tables.values()
    num_layers = len(engine.runner.cache.layers)
    assert [row[0] for row in rows] == ["layer", "none", *map(str, range(num_layers))]
    assert "All values are the same." in html
    assert "Both say the same." in html


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([4], "4"), ([0, 1, 2, 7], "0-2, 7"), ([5, 4, 3], "5, 4, 3"), ({3, 2}, "2-3")],
)
def test_numbers_that_follow_each_other_are_one(numbers: Any, text: str) -> None:
    assert ranges(numbers) == text
