"""PDFs over HTTP: the same pages whichever way they come, counted exactly, and nobody harmed."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.uploads import Upload
from minimsg.protocol.dialect import Dialect
from minimsg.server import catalog
from minimsg.server.catalog import Catalog, lacking
from minimsg.server.pdf_guard import cause_of
from minimsg.server.pool import may_hold_pdfs
from minimsg.server.prepare import (
    NOTHING,
    Known,
    Prepared,
    Served,
    Settings,
    count_prompt,
    prepare_message,
)

from ..models.seeing_checkpoints import save_chatting  # noqa: TID252
from ..prompt.locked_pdfs import locked_pdf  # noqa: TID252
from ..prompt.pdf_files import (  # noqa: TID252
    document,
    file_of,
    ink_of,
    page_objects,
    pdf,
    red_square,
    stream,
)
from .running import Json, Running, preparing
from .test_batch_runner import run
from .test_files import form, upload
from .test_sdk import sdk

COUNT = "/v1/messages/count_tokens"
CODE: Final = pdf("The code is 7421.", "", "Third page")
PAGES: Final = (
    '<page number="1">\nThe code is 7421.\n</page>\n'
    '<page number="2">\n\n</page>\n'
    '<page number="3">\nThird page\n</page>'
)


def asking(*blocks: Json, model: str = "tiny", in_result: bool = False) -> Json:
    """A request with these blocks, in a turn or in the result of a tool."""
    turns: list[Any] = [{"role": "user", "content": [*blocks, {"type": "text", "text": "?"}]}]
    if in_result:
        call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "t", "content": list(blocks)}
        turns = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    return {"model": model, "max_tokens": 4, "messages": turns, "seed": 1}


def text(data: str) -> Json:
    source: Json = {"type": "text", "media_type": "text/plain", "data": data}
    return {"type": "document", "source": source}


def counting(body: Json) -> Json:
    return {key: value for key, value in body.items() if key != "max_tokens"}


async def test_a_pdf_reads_as_its_pages_whichever_way_it_comes(tiny: Running) -> None:
    """In base64 or by the id of a file, in a turn or in a result, alone or in a batch."""
    made = await upload(tiny, form("a.pdf", CODE, "application/pdf"))
    by_id: Json = {"type": "document", "source": {"type": "file", "file_id": made["id"]}}
    for in_result in (False, True):
        expected, _ = await tiny.post(asking(text(PAGES), in_result=in_result))
        for block in (document(CODE), by_id):
            body = asking(block, in_result=in_result)
            answer, _ = await tiny.post(body)
            assert (answer["content"], answer["usage"]) == (expected["content"], expected["usage"])
            counted, _ = await tiny.post(counting(body), COUNT)
            assert counted["input_tokens"] == answer["usage"]["input_tokens"]  # type: ignore[index, call-overload]
    batched: Any = await run(tiny, [{"custom_id": "a", "params": asking(by_id, in_result=True)}])
    assert batched["a"]["message"]["content"] == expected["content"]
    assert len(preparing()) == 1
    await check_with_the_sdk(tiny)


async def check_with_the_sdk(running: Running) -> None:
    """A PDF as the SDK's own example sends it."""
    data = document(CODE)["source"]["data"]
    async with sdk(running) as client:
        message = await client.messages.create(
            model="tiny",
            max_tokens=8,
            messages=[
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "document",
                            "source": {
                                "type": "base64",
                                "media_type": "application/pdf",
                                "data": data,
                            },
                            "cache_control": {"type": "ephemeral"},
                        },
                        {"type": "text", "text": "Which code?"},
                    ],
                }
            ],
        )
        model = await client.models.retrieve("tiny")
    assert message.usage.output_tokens > 0
    assert model.capabilities is not None
    assert model.capabilities.pdf_input.supported


def nested() -> bytes:
    """A page that draws a form that draws itself."""
    objects = page_objects(b"/X Do")
    form = "/Resources<</XObject<</X 100 0 R>>>>"
    objects[10] = str(objects[10]).replace("/Resources<<", "/Resources<</XObject<</X 100 0 R>>")
    objects[100] = stream(b"/X Do", f"/Type/XObject/Subtype/Form/BBox[0 0 9 9]{form}")
    return file_of(objects)


def active() -> bytes:
    """A file that runs a script when it is opened, and has a program attached."""
    script = "/OpenAction<</S/JavaScript/JS(while\\(true\\){})>>"
    names = "/Names<</EmbeddedFiles<</Names[(a.exe) 90 0 R]>>>>"
    objects = page_objects(ink_of("form"))
    objects[1] = f"<</Type/Catalog/Pages 2 0 R{script}{names}>>"
    objects[90] = "<</Type/Filespec/F(a.exe)/EF<</F 91 0 R>>>>"
    objects[91] = stream(b"MZ")
    return file_of(objects)


def bomb() -> bytes:
    """A page of a gigabyte of spaces, packed twice: one stretch, again and again."""
    packer = zlib.compressobj()
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    stretch = packer.compress(b" " * 10_000_000) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = zlib.compress(head + stretch * 100 + packer.flush())
    content = stream(packed, "/Filter[/FlateDecode/FlateDecode]")
    return file_of(page_objects(b"") | {11: content})


def locked() -> bytes:
    """A file that says how it is encrypted, and with which password: none that opens it."""
    handler = "<</Filter/Standard/V 1/R 2/O<00>/U<00>/P -4>>"
    return file_of(page_objects(b"x") | {50: handler}, "/Root 1 0 R/Encrypt 50 0 R/ID[<00><00>]")


def endless() -> bytes:
    """Pages that are their own parents."""
    objects = page_objects(b"x")
    return file_of(objects | {2: "<</Type/Pages/Kids[2 0 R 10 0 R]/Count 2>>"})


INVALID: Final = "The PDF specified was not valid."
LOCKED: Final = "The PDF specified is password protected."
HOSTILE: Final[list[tuple[Callable[[], bytes], str]]] = [
    (lambda: b"", "PDF cannot be empty"),
    (lambda: b"hello", INVALID),
    (lambda: CODE[: len(CODE) // 4], INVALID),
    (lambda: pdf(*[""] * (LIMITS.pdf_pages + 1)), "A maximum of 600 PDF pages may be provided."),
    (locked, LOCKED),
    (lambda: locked_pdf(ink_of("x"), "RC4, 128 bits", b"secret"), LOCKED),
    (lambda: locked_pdf(ink_of("x"), "AES, 128 bits", b""), LOCKED),
    (bomb, "Could not process PDF: it takes too much memory, or breaks what reads it"),
]
ODD: Final[list[Callable[[], bytes]]] = [
    lambda: pdf("wide", box="0 0 10000000 10000000"),
    nested,
    endless,
    active,
]


async def test_hostile_pdfs_end_only_their_own_request(watched: Running) -> None:
    """While somebody else streams, and twenty sound ones are read, all at once."""

    async def ask(data: bytes) -> tuple[int, Any]:
        body = asking(document(data), model="scripted")
        async with watched.session.post(f"{watched.url}/v1/messages", json=body) as response:
            return response.status, await response.json()

    hostile, odd = [make() for make, _ in HOSTILE], [make() for make in ODD]
    sound = [pdf(f"number {n}") for n in range(20)]
    answers = await asyncio.gather(*map(ask, [*hostile, *odd, *sound]))
    for (status, answer), (_, why) in zip(answers, HOSTILE, strict=False):
        assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
        path = "messages.0.content.0.document.source.base64.data"
        assert answer["error"]["message"] == f"{path}: {why}"
    assert {status for status, _ in answers[len(hostile) : -20]} <= {200, 400}
    assert {status for status, _ in answers[-20:]} == {200}


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder = tmp_path_factory.mktemp("seeing")
    save_chatting(folder)
    settings = Settings(Catalog("m"), max_context=2048, default_max_tokens=8)
    return Served(ChatModel.open(folder, "m"), settings, lambda path: nullcontext())


def prepared(body: Json, served: Served) -> Prepared:
    return prepare_message(json.dumps(body).encode(), served, Dialect())


def refusal(body: Json, served: Served) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        prepared(body, served)
    return caught.value


def test_a_model_that_sees_reads_each_page_behind_its_picture(seeing: Served) -> None:
    data = file_of(page_objects(ink_of("one") + red_square(250, 0), ink_of("two")))
    body = asking(document(data), model="m")
    made = prepared(body, seeing)
    counted = count_prompt(json.dumps(counting(body)).encode(), seeing, Dialect())
    assert counted.answer["input_tokens"] == len(made.prompt_ids)
    first, second = made.images
    before, between, after = (
        bytes(id for id in made.prompt_ids[start:stop] if id < 256)
        for start, stop in ((0, first.start), (first.stop, second.start), (second.stop, None))
    )
    assert before.endswith(b'<page number="1">\n')
    assert between == b'\none\n</page>\n<page number="2">\n'
    assert after.startswith(b"\ntwo\n</page>\n</content>\n</document>")
    width = 8 * first.columns
    lower_right = first.pixels[-3:]
    lower_left = first.pixels[3 * width * (8 * first.rows - 1) :][:3]
    assert (lower_right, lower_left) == (b"\xff\0\0", b"\xff\xff\xff")
    assert b"\xff\0\0" not in second.pixels


def test_the_same_text_on_another_picture_is_another_prompt(seeing: Served) -> None:
    inks = (red_square(0, 0), red_square(0, 0), red_square(100, 0))
    made = [
        prepared(asking(document(file_of(page_objects(ink + ink_of("same")))), model="m"), seeing)
        for ink in inks
    ]
    assert made[0].prompt_ids == made[1].prompt_ids == made[2].prompt_ids
    digests = [each.images[0].digest for each in made]
    assert digests[0] == digests[1] != digests[2]


def test_a_page_is_drawn_only_once_the_prompt_is_known_to_fit(
    seeing: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minimsg.prompt.pdf.Page.draw", lambda *_: pytest.fail("drawn"))
    error = refusal(asking(document(pdf(*["page"] * 100)), model="m"), seeing)
    assert "prompt is too long" in error.message


def test_pages_are_no_images_that_were_sent_but_share_their_pixels(
    seeing: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = replace(seeing, settings=replace(seeing.settings, max_context=1 << 20))
    many = asking(document(pdf(*["page"] * (LIMITS.images + 1))), model="m")
    assert len(prepared(many, wide).images) == LIMITS.images + 1
    few = replace(LIMITS, images_pixels=1)
    monkeypatch.setattr("minimsg.prompt.pictures.LIMITS", few)
    assert "pixels together > 1 maximum" in refusal(many, wide).message


def test_a_strip_that_no_tower_takes_is_refused_with_its_page(seeing: Served) -> None:
    error = refusal(asking(document(pdf("x", box="0 0 1 300")), model="m"), seeing)
    path = "messages.0.content.0.document.source.base64.data"
    assert error.message == f"{path}: page 1: one side is more than 200 times the other"


def test_all_pdfs_of_a_request_share_its_pages(
    seeing: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minimsg.prompt.pdfs.LIMITS", replace(LIMITS, pdf_pages=3))
    two, path = document(pdf("a", "b")), "messages.0.content.1.document.source.base64.data"
    error = refusal(asking(two, two, model="m"), seeing)
    assert error.message == f"{path}: A maximum of 3 PDF pages may be provided."
    assert prepared(asking(two, document(pdf("c")), model="m"), seeing).images


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("AAAA\n", "Invalid base64 data"),
        ("data:application/pdf;base64,AAAA", "Invalid base64 data"),
        ("", "PDF cannot be empty"),
    ],
)
def test_base64_is_read_strictly(data: str, why: str, seeing: Served) -> None:
    block = document(b"")
    block["source"]["data"] = data
    error = refusal(asking(block, model="m"), seeing)
    assert error.message == f"messages.0.content.0.document.source.base64.data: {why}"


@pytest.mark.parametrize(
    ("kind", "path"), [("file", "file.file_id"), ("url", "url.url"), ("base64", "base64.data")]
)
def test_what_is_wrong_with_a_pdf_is_said_where_it_was_named(
    kind: str, path: str, seeing: Served
) -> None:
    names = {"file_id": "file_1"} if kind == "file" else {"url": "https://a.example"}
    named: Json = {"type": "document", "source": {"type": kind, **names}}
    block = document(b"broken") if kind == "base64" else named
    broken = {"file_1": Upload(pdf="YnJva2Vu"), "https://a.example": Upload(pdf="YnJva2Vu")}
    known = Known(NOTHING.seal, None, uploads=broken, fetched=broken)
    with pytest.raises(InvalidRequest) as caught:
        prepare_message(json.dumps(asking(block, model="m")).encode(), seeing, Dialect(), known)
    assert caught.value.message == f"messages.0.content.0.document.source.{path}: {INVALID}"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('"application/pdf"', True),
        (r'"application\/pdf"', True),
        (r'"application\u002F\u0070d\u0066"', True),
        ('"a pdf"', False),
        (r'"application/json", "\u0070df"', False),
    ],
)
def test_a_body_with_a_pdf_is_known_however_its_type_is_written(
    written: str, expected: bool
) -> None:
    assert (json.loads(f"[{written}]")[0] == "application/pdf") <= expected
    assert may_hold_pdfs(written.encode()) is expected


def test_without_the_extra_the_server_says_what_to_install(
    seeing: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "pdfs" not in lacking(seeing.chat)
    monkeypatch.setattr(catalog, "find_spec", lambda name: None)
    dialect = Dialect(lacking=lacking(seeing.chat))
    body = json.dumps(asking(document(CODE), model="m")).encode()
    with pytest.raises(InvalidRequest, match=r"pip install \"minimsg\[pdf\]\""):
        prepare_message(body, seeing, dialect)


def test_a_recorded_read_of_a_pdf_is_read(seeing: Served, test_data: Path) -> None:
    """The recording has other bytes in place of the PDF, and a picture that is left out here."""
    recorded = (test_data / "recordings" / "img_02.json").read_text("utf-8")
    data = document(CODE)["source"]["data"]
    body = json.loads(recorded.replace("<base64 336 chars>", data))["body"]
    for answer in body["messages"][3]["content"]:
        if isinstance(parts := answer.get("content"), list):
            answer["content"] = [part for part in parts if part["type"] != "image"]
    catalog = Catalog("m", any_model=True)
    settings = replace(seeing.settings, catalog=catalog, max_context=1 << 20)
    made = prepared(body, replace(seeing, settings=settings))
    assert len(made.images) == 3
    assert b"The code is 7421." in bytes(id for id in made.prompt_ids if id < 256)


def test_work_that_computes_too_long_ends_with_its_process() -> None:
    code = (
        "import dataclasses, minimsg.server.pdf_guard as guard\n"
        "guard.LIMITS = dataclasses.replace(guard.LIMITS, pdf_time_s=0)\n"
        "with guard.guarding(print)('here'):\n"
        "    while True: pass"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGXCPU
    why = cause_of(done.returncode)
    assert why == f"Could not process PDF: it takes more than {LIMITS.pdf_time_s} s of computing"
    assert cause_of(-signal.SIGKILL) is None
