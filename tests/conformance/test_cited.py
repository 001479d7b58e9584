"""What cases ask about citations: the place that is cited is read again, not believed."""

from __future__ import annotations

import base64

import pypdfium2
import pytest

from minimsg.conformance.catalog import load_cases, select
from minimsg.conformance.cited import pdf, picked, spans, within
from minimsg.conformance.reply import fold
from minimsg.conformance.runner import run
from minimsg.conformance.settings import Settings
from minimsg.conformance.verdict import Verdict

from .conftest import Serve

GREETING = "Grüße 👩‍🚀! Hi."


def at(begin: object, end: object) -> dict[str, object]:
    return {"begin": begin, "end": end}


@pytest.mark.parametrize(
    ("begin", "end", "found"),
    [
        (0, 5, "Grüße"),
        (11, 14, "Hi."),  # the astronaut is three code points
        (11, 15, None),  # beyond the end
        (-3, 14, None),
        (5, 5, None),
        (0, True, None),
        ("0", 5, None),
        (None, 5, None),
    ],
)
def test_a_place_is_code_points_and_inside_the_text(
    begin: object, end: object, found: str | None
) -> None:
    assert spans([GREETING], [at(begin, end)], "begin", "end") == [found]


def test_a_place_in_a_list_is_its_texts_together() -> None:
    cited = [at(0, 1), at(0, 2), at(1, 3)]
    wholes = [["One. ", "Two."]] * 3
    assert spans(wholes, cited, "begin", "end") == ["One. ", "One. Two.", None]


def test_a_number_that_names_nothing_picks_nothing() -> None:
    cited = [{"n": number} for number in (1, 0, 2, -1, True, None)] + [{}]
    assert picked(["a", "b"], cited, "n") == ["b", "a", None, None, None, None, None]


def test_white_space_of_a_page_does_not_matter_and_words_do() -> None:
    assert within(["the  mill\r\nwas"], ["So the mill was built."])
    assert not within(["the mall"], ["So the mill was built."])
    assert not within(["the mill"], [None])


def test_pdfium_reads_the_pages_that_are_written() -> None:
    texts = ["(Café) \\ 1871", "x" * 300, "Two."]
    with pypdfium2.PdfDocument(base64.b64decode(pdf(*texts))) as document:
        assert [page.get_textpage().get_text_range() for page in document] == texts


def test_citations_of_a_stream_are_added_to_its_block() -> None:
    deltas = [
        {"type": "text_delta", "text": "Hi."},
        {"type": "citations_delta", "citation": {"n": 1}},
        {"type": "citations_delta", "citation": {"n": 2}},
    ]
    block = {"type": "text", "text": "", "citations": None}
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
    ]
    message = fold(events)
    assert message is not None
    cited = {"type": "text", "text": "Hi.", "citations": [{"n": 1}, {"n": 2}]}
    assert message["content"] == [cited]


@pytest.mark.parametrize(
    ("how", "state", "verdict", "patterns"),
    [
        ("overlap", "ok", Verdict.PASS, ["citations.characters.plain", "citations.stream.order"]),
        ("off", "silently ignored", Verdict.SKIP, ["citations.[c-s]*", "count.usage.cited*"]),
        pytest.param("overlap", "ok", Verdict.PASS, ["citations.*"], marks=pytest.mark.proof),
    ],
)
async def test_a_server_that_cites_keeps_every_rule_and_one_that_does_not_is_not_asked(
    serve: Serve, how: str, state: str, verdict: Verdict, patterns: list[str]
) -> None:
    """What this scripted model says does not depend on what it reads: all of it is found."""
    url = await serve("thinking", citations=how)
    done = await run(select(load_cases(), patterns), Settings(url))
    assert [(r.id, r.reason, r.failure) for r in done.results if r.verdict != verdict] == []
    assert done.features["citations"] == state
