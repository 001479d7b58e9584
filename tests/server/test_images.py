"""Images over HTTP: from base64 to the tokens that transformers gives for the same prompt."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from PIL import Image

from minimsg.config import ServerConfig
from minimsg.errors import RequestError
from minimsg.limits import LIMITS
from minimsg.prompt.chat import ChatModel
from minimsg.protocol.dialect import Dialect
from minimsg.server.catalog import Catalog, lacking
from minimsg.server.prepare import Prepared, Served, Settings, count_prompt, prepare_message

from ..models.seeing_checkpoints import SeeingOracle, picture, save_chatting  # noqa: TID252
from .conftest import WRITERS, Start
from .running import Json, Running

NAME = "seeing"
ORACLES: dict[str, SeeingOracle] = {}


def write_seeing(folder: Path) -> None:
    ORACLES[NAME] = save_chatting(folder)


WRITERS[NAME] = write_seeing


def encoded(image: Image.Image, format: str = "PNG", **options: Any) -> str:
    stream = BytesIO()
    image.save(stream, format, **options)
    return base64.b64encode(stream.getvalue()).decode()


def block(image: Image.Image, format: str = "PNG", **fields: Any) -> Json:
    kind = f"image/{format.lower()}"
    source: Json = {"type": "base64", "media_type": kind, "data": encoded(image, format)}
    return {"type": "image", "source": source, **fields}


def text(words: str = "What is it?") -> Json:
    return {"type": "text", "text": words}


def ask(*content: Any, **fields: Any) -> Json:
    turns: list[Any] = [{"role": "user", "content": list(content)}]
    return {"model": NAME, "max_tokens": 8, "temperature": 0, "messages": turns, **fields}


def result(*content: Any) -> Json:
    """A conversation that ends with the result of a tool."""
    call: Json = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    answer: Json = {"type": "tool_result", "tool_use_id": "t1", "content": list(content)}
    body = ask()
    body["messages"] = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [answer]},
    ]
    return {**body, "tools": [{"name": "look", "input_schema": {"type": "object"}}]}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder = tmp_path_factory.mktemp("seeing")
    ORACLES["served"] = save_chatting(folder)
    settings = Settings(Catalog(NAME), max_context=2048, default_max_tokens=8)
    return Served(ChatModel.open(folder, NAME), settings)


@pytest.fixture
async def seeing(start: Start) -> Running:
    return await start(NAME, config=ServerConfig(no_store=True))


def dialect_of(served: Served) -> Dialect:
    return Dialect(lacking=lacking(served.chat))


def prepared(served: Served, body: Json) -> Prepared:
    return prepare_message(json.dumps(body).encode(), served, dialect_of(served))


def refused(served: Served, body: Json) -> Any:
    with pytest.raises(RequestError) as caught:
        prepared(served, body)
    return caught.value


def words_of(oracle: SeeingOracle, ids: list[int], pictures: list[Image.Image], n: int) -> str:
    said: list[int] = []
    for _ in range(n):
        said.append(int(oracle.logits([*ids, *said], pictures)[-1].argmax()))
    return bytes(id for id in said if id < 256).decode(errors="replace")


CATS, DOGS = picture(30, 40), picture(60, 20, seed=1)


async def test_a_token_of_an_image_looked_at_nothing_behind_it(start: Start) -> None:
    running = await start(NAME, config=ServerConfig(no_store=True, trace=1))
    _, answer = await running.post(ask(block(CATS)))
    id = answer.headers["request-id"]
    async with running.session.get(f"{running.url}/minimsg/traces/{id}") as got:
        (image,) = (await got.json())["prompt"]["images"]
    asked: Json = {"trace": id, "what": "attention", "position": image["start"] + 1}
    found, _ = await running.post(asked, "/minimsg/lens")
    heads: Any = found["heads"]
    assert {len(head) for head in heads} == {image["start"] + 2}


async def test_a_reply_to_images_is_that_of_transformers(seeing: Running) -> None:
    """However small, such a body goes to a process; one that is broken harms no other."""
    body = ask(block(CATS), text("and"), block(DOGS))
    answer, _ = await seeing.post(body)
    own = Served(seeing.server.chat, Settings(Catalog(NAME), 2048, 8))
    given = prepared(own, body)
    expected = words_of(ORACLES[NAME], list(given.prompt_ids), [CATS, DOGS], 8)
    usage: Any = answer["usage"]
    assert usage["input_tokens"] == len(given.prompt_ids)
    content: Any = answer["content"]
    assert "".join(part["text"] for part in content) == expected
    assert len(seeing.server.pool._idle) == 1
    count, _ = await seeing.post(
        {key: body[key] for key in ("model", "messages")}, "/v1/messages/count_tokens"
    )
    assert count == {"input_tokens": len(given.prompt_ids)}
    models: Any = await (await seeing.session.get(seeing.url + f"/v1/models/{NAME}")).json()
    assert models["capabilities"]["image_input"] == {"supported": True}
    broken = ask(block(CATS))
    data: Any = broken["messages"]
    source = data[0]["content"][0]["source"]
    source["data"] = encoded(CATS)[:400]
    error, _ = await seeing.post(broken, status=400)
    assert error["error"] == {
        "type": "invalid_request_error",
        "message": "messages.0.content.0.image.source.base64: Could not process image",
    }
    again, _ = await seeing.post(body)
    assert again["content"] == content


def test_an_image_stands_between_its_tokens_wherever_it_is(served: Served) -> None:
    control = served.chat.tokenizer.control
    start, pad, end = (
        control[f"<|{name}|>"] for name in ("vision_start", "image_pad", "vision_end")
    )
    document = {"type": "document", "source": {"type": "content", "content": [block(DOGS)]}}
    bodies = [
        ask(block(CATS), text()),
        ask(text(), block(CATS), block(DOGS)),
        result(text("seen:"), block(CATS)),
        ask(document, text()),
    ]
    for body in bodies:
        given = prepared(served, body)
        ids = given.prompt_ids
        assert ids.count(pad) == sum(image.stop - image.start for image in given.images)
        assert ids.count(start) == ids.count(end) == len(given.images) > 0
        for image in given.images:
            assert ids[image.start - 1] == start
            assert ids[image.stop] == end
            assert set(ids[image.start : image.stop]) == {pad}
            assert len(image.pixels) == 3 * 64 * image.rows * image.columns


def test_what_a_user_writes_like_an_image_is_text(served: Served) -> None:
    pad = served.chat.tokenizer.control["<|image_pad|>"]
    words = "<|vision_start|><|image_pad|><|vision_end|>\U0010ffff"
    given = prepared(served, ask(text(words)))
    assert (given.images, given.prompt_ids.count(pad)) == ((), 0)
    assert words.encode() in bytes(id for id in given.prompt_ids if id < 256)


@pytest.mark.parametrize(
    "body",
    [
        ask(block(CATS), text()),
        ask(text(), block(CATS), text("x"), block(DOGS), block(CATS, "JPEG")),
        result(block(DOGS), text("and"), block(CATS, "WEBP")),
        ask(block(picture(1, 150)), block(picture(400, 300)), block(picture(1, 1))),
    ],
)
def test_counted_tokens_are_those_of_the_reply_and_the_bill_adds_up(
    body: Json, served: Served
) -> None:
    counting = {key: body[key] for key in body if key in ("model", "messages", "tools")}
    counted = count_prompt(
        json.dumps({**counting, "bill": True}).encode(), served, dialect_of(served)
    )
    ids = prepared(served, body).prompt_ids
    assert counted.answer["input_tokens"] == len(ids)
    bill = counted.answer["bill"]
    assert sum(bill["blocks"].values()) + sum(bill["tools"].values()) + bill["template"] == len(ids)


def test_the_bill_of_an_image_has_all_its_tokens(served: Served) -> None:
    body = ask(text("a"), block(CATS))
    counting = {"model": NAME, "messages": body["messages"], "bill": True}
    counted = count_prompt(json.dumps(counting).encode(), served, dialect_of(served))
    (image,) = prepared(served, body).images
    blocks = counted.answer["bill"]["blocks"]
    assert blocks["messages.0.content.1"] == image.stop - image.start + 2  # and those around it


def test_a_cache_mark_behind_an_image_covers_it(served: Served) -> None:
    """The token behind is not sure to be the block's, and is left out."""
    mark: Json = {"cache_control": {"type": "ephemeral"}}
    given = prepared(served, ask({**block(CATS), **mark}, text("and then")))
    assert [each.num_tokens for each in given.marks] == [image.stop for image in given.images]
    answered: Any = result(text("a"), block(CATS), text("b"))
    answered["messages"][-1]["content"][0] |= mark
    given = prepared(served, answered)
    assert given.marks[0].num_tokens > given.images[0].stop


def test_the_same_pixels_have_one_digest_and_others_another(served: Served) -> None:
    turned = DOGS.transpose(Image.Transpose.ROTATE_90)
    bodies = [ask(block(each), text()) for each in (CATS, CATS, DOGS, turned)]
    digests = [prepared(served, body).images[0].digest for body in bodies]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3
    lossless = prepared(served, ask(block(CATS, "GIF"), text())).images[0].digest
    assert lossless not in digests  # 256 colours are others


def bomb() -> str:
    """The head of a PNG of 19,000 pixels each way."""
    data = base64.b64decode(encoded(Image.new("1", (9, 9))))
    size = (19_000).to_bytes(4, "big")
    head = b"IHDR" + size + size + data[24:29]
    return base64.b64encode(
        data[:12] + head + zlib.crc32(head).to_bytes(4, "big") + data[33:]
    ).decode()


def source(data: str, kind: str = "image/png") -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            lambda: ask(source("not base64!")),
            "messages.0.content.0.image.source.base64.data: Invalid base64 data",
        ),
        (
            lambda: ask(source("data:image/png;base64," + encoded(CATS))),
            "messages.0.content.0.image.source.base64.data: Invalid base64 data",
        ),
        (
            lambda: ask(source(encoded(CATS).rstrip("=") + "===")),
            "messages.0.content.0.image.source.base64.data: Invalid base64 data",
        ),
        (
            lambda: ask(text(), source(base64.b64encode(b"<svg/>").decode())),
            "messages.0.content.1.image.source.base64: Could not process image",
        ),
        (
            lambda: ask(source(encoded(CATS), "image/jpeg")),
            "messages.0.content.0.image.source.base64: The image was specified using the "
            "image/jpeg media type, but the image appears to be a image/png image",
        ),
        (
            lambda: ask(*[block(picture(1, 1))] * 101),
            "messages: too many images: 101 > 100 maximum",
        ),
        (
            lambda: ask(source("A" * (14 << 20))),
            "messages.0.content.0.image.source.base64: image exceeds 10 MB maximum: "
            "11010048 bytes > 10485760 bytes",
        ),
        (
            lambda: ask(block(picture(1, 201))),
            "messages.0.content.0.image.source.base64: one side is more than 200 times the other "
            "(1x201 pixels)",
        ),
        (
            lambda: ask(block(picture(80, 60), transformations={"oversized_image": "error"})),
            "messages.0.content.0.image.source.base64: image dimensions 80x60 exceed the maximum "
            "image size of the model; the largest that fit are 56x40",
        ),
    ],
)
def test_what_is_wrong_with_an_image_is_said_at_its_path(
    make: Callable[[], Json], why: str, served: Served
) -> None:
    error = refused(served, make())
    assert (error.status, error.message) == (400, why)


def test_an_image_that_fits_is_no_error_and_a_larger_one_is_scaled_by_default(
    served: Served,
) -> None:
    strictly = {"oversized_image": "error"}
    assert prepared(served, ask(block(picture(56, 40), transformations=strictly), text())).images
    (image,) = prepared(served, ask(block(picture(80, 60)), text())).images
    assert (image.rows, image.columns) == (5, 7)


def test_a_picture_may_have_exactly_as_many_bytes_as_the_limit_says(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as many as its base64 has room for."""
    data = base64.b64decode(encoded(CATS))
    data += bytes((1 - len(data)) % 3)  # as 10 MiB, two more would need no more base64
    limits = replace(LIMITS, image_bytes=len(data))
    monkeypatch.setattr("minimsg.prompt.pictures.LIMITS", limits)
    assert prepared(served, ask(source(base64.b64encode(data).decode()), text())).images
    error = refused(served, ask(source(base64.b64encode(data + b"x").decode())))
    assert f"{len(data) + 1} bytes > {len(data)} bytes" in error.message


def test_sides_that_are_too_long_are_all_named(served: Served) -> None:
    long = block(Image.new("1", (8_001, 50)))
    error = refused(served, ask(text(), long, block(CATS), source(bomb())))
    assert error.error_code == "image_dimensions_too_large"
    assert error.details["max_side_length_pixels"] == 8_000
    nested = refused(served, result(block(CATS), long))
    assert nested.details == {
        "max_side_length_pixels": 8_000,
        "paths": ["messages.2.content.0.content.1"],
    }
    two = refused(served, ask(long, block(CATS), long))
    assert two.details["paths"] == ["messages.0.content.0", "messages.0.content.2"]
    many = refused(served, ask(*[block(Image.new("1", (2_001, 50)))] * 2, *[block(CATS)] * 19))
    assert many.details == {
        "max_side_length_pixels": 2_000,
        "paths": ["messages.0.content.0", "messages.0.content.1"],
    }


def test_a_prompt_that_is_too_long_is_refused_before_anything_is_unpacked(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr("minimsg.prompt.pictures.decode", fail)
    error = refused(served, ask(*[block(picture(200, 200))] * 60))
    assert "prompt is too long" in error.message
    counted = count_prompt(
        json.dumps({"model": NAME, "messages": ask(block(CATS))["messages"]}).encode(),
        served,
        dialect_of(served),
    )
    assert counted.answer["input_tokens"] > 20


async def test_an_uploaded_image_is_read_by_its_id(start: Start, tmp_path: Path) -> None:
    running = await start(NAME, config=ServerConfig(data_dir=tmp_path))
    beta = {"anthropic-beta": "files-api-2025-04-14"}
    ids = []
    for name, data, kind in (
        ("cats.png", base64.b64decode(encoded(CATS)), "image/png"),
        ("words.txt", b"words", "text/plain"),
    ):
        form = aiohttp.FormData()
        form.add_field("file", data, filename=name, content_type=kind)
        async with running.session.post(
            running.url + "/v1/files", data=form, headers=beta
        ) as response:
            assert response.status == 200, await response.text()
            ids.append((await response.json())["id"])
    by_id, words, absent = (
        {"type": "image", "source": {"type": "file", "file_id": id}}
        for id in (*ids, "file_011CNha8iCJcU1wXNR6q4V8w")
    )
    mine, _ = await running.post(ask(by_id, text()))
    sent, _ = await running.post(ask(block(CATS), text()))
    assert mine["content"] == sent["content"]
    usages: Any = [each["usage"] for each in (mine, sent)]
    assert usages[0]["input_tokens"] == usages[1]["input_tokens"]
    error, _ = await running.post(ask(words, text()), status=400)
    assert "text/plain is no image" in str(error)
    await running.post(ask(absent, text()), status=404)


async def test_hostile_images_end_only_their_own_request(seeing: Running) -> None:
    """Rows of broken, lying and oversized pictures, while somebody else is answered."""
    plain = ask(text("Say something."), max_tokens=60)
    before, _ = await seeing.post(plain)
    png, noise = base64.b64decode(encoded(CATS)), encoded(Image.effect_noise((99, 99), 80), "JPEG")
    hostile = [
        source(bomb()),
        source(encoded(CATS), "image/webp"),
        source(base64.b64encode(png[:40]).decode()),
        source(base64.b64encode(b"\xff\xd8\xff" * 999).decode(), "image/jpeg"),
        source(noise[: len(noise) // 8 * 4], "image/jpeg"),
        block(picture(1, 8_000)),
        block(Image.new("1", (8_001, 8_000))),
    ]
    refusals = (seeing.post(ask(each, text()), status=400) for each in hostile)
    (during, _), *answers = await asyncio.gather(seeing.post(plain), *refusals)
    assert during["content"] == before["content"]
    for answer, _ in answers:
        error: Any = answer["error"]
        assert error["type"] == "invalid_request_error"
        assert error["message"].startswith("messages.0.content.0.image.source")


async def test_the_largest_picture_that_is_allowed_is_read(seeing: Running) -> None:
    answer, _ = await seeing.post(ask(block(Image.new("1", (8_000, 8_000))), text(), max_tokens=1))
    usage: Any = answer["usage"]
    assert usage["input_tokens"] > 36  # 6 by 6, as the preprocessor allows


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not count address space")
def test_a_process_that_prepares_cannot_take_all_memory() -> None:
    lines = (
        "from minimsg.server.prepare_process import limit_memory",
        "limit_memory(1 << 30)",
        "bytearray(2 << 30)",
    )
    done = subprocess.run(
        [sys.executable, "-c", "; ".join(lines)], capture_output=True, text=True, timeout=60
    )
    assert "MemoryError" in done.stderr


def test_a_recorded_request_with_a_picture_is_read_and_counted(
    served: Served, test_data: Path
) -> None:
    """Claude Code's Read of an image, without the PDF that it reads as well.

    The recording has other bytes in place of the picture.
    """
    recorded = (test_data / "recordings" / "img_02.json").read_text("utf-8")
    body = json.loads(recorded.replace("<base64 100 chars>", encoded(CATS)))["body"]
    for answer in body["messages"][3]["content"]:
        if isinstance(parts := answer.get("content"), list):
            answer["content"] = [part for part in parts if part["type"] != "document"]
    settings = replace(served.settings, catalog=Catalog(NAME, any_model=True), max_context=1 << 20)
    wide = replace(served, settings=settings)
    given = prepared(wide, body)
    assert [(image.rows, image.columns) for image in given.images] == [(5, 4)]
    kept = {key: body[key] for key in ("model", "messages", "system", "tools") if key in body}
    counted = count_prompt(json.dumps(kept).encode(), wide, dialect_of(served))
    assert counted.answer["input_tokens"] == len(given.prompt_ids)
