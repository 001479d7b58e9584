"""Rows: images, PDFs, files and addresses."""

from __future__ import annotations

from typing import Final

from .row import (
    HI,
    OK,
    PDF,
    Json,
    Row,
    after_call,
    ask,
    document,
    image,
    result,
    system,
    talk,
    text,
)

NO_IMAGE: Final = "this model does not support image input"

NO_PDF: Final = "this model does not support PDF input"

NO_READER: Final = (
    "this server cannot read PDFs yet; install what does, and start it again: "
    'pip install "minimsg[pdf]"'
)

NO_URL: Final = (
    "type 'url' is not supported; send the content itself "
    "(with --allow-urls the server fetches it for a reply, never to count tokens)"
)

UPLOAD: Final[Json] = {"type": "container_upload", "file_id": "file_1"}

ROWS: Final = (
    Row("an image", ask(image()), OK),
    Row(
        "an image on a model without eyes",
        ask(image()),
        f"messages.0.content.0.image: {NO_IMAGE}",
        lacking=("images",),
    ),
    Row(
        "images are off",
        ask(image()),
        f"messages.0.content.0.image: {NO_IMAGE}",
        without=("images",),
    ),
    Row(
        "an image in a result",
        after_call(result("t1", text(), image())),
        f"messages.2.content.0.tool_result.content.1.image: {NO_IMAGE}",
        lacking=("images",),
    ),
    Row(
        "an image in a document",
        ask(document({"type": "content", "content": [image()]})),
        f"messages.0.content.0.document.source.content.content.0.image: {NO_IMAGE}",
        lacking=("images",),
    ),
    Row("a PDF", ask(document(PDF)), OK),
    Row(
        "a PDF where nothing reads it",
        ask(document(PDF)),
        f"messages.0.content.0.document: {NO_READER}",
        lacking=("pdfs",),
    ),
    Row(
        "PDFs are off",
        ask(document(PDF)),
        f"messages.0.content.0.document: {NO_PDF}",
        without=("pdfs",),
    ),
    Row(
        "a PDF in a result",
        after_call(result("t1", document(PDF))),
        f"messages.2.content.0.tool_result.content.0.document: {NO_PDF}",
        without=("pdfs",),
    ),
    Row(
        "a PDF behind an address, and PDFs are off",
        ask(document({"type": "url", "url": "https://x.example/a"})),
        f"messages.0.content.0.document: {NO_PDF}",
        without=("pdfs",),
    ),
    Row(
        "a document behind an address",
        ask(document({"type": "url", "url": "https://x.example/a"})),
        f"messages.0.content.0.document.source: {NO_URL}",
    ),
    Row(
        "an image behind an address",
        ask(image({"type": "url", "url": "https://x.example/a"})),
        f"messages.0.content.0.image.source: {NO_URL}",
    ),
    Row(
        "an image that was uploaded",
        ask(image({"type": "file", "file_id": "file_1"})),
        "messages.0.content.0.image.source: type 'file' is not supported; send the content itself",
    ),
    Row(
        "a document that was uploaded",
        ask(document({"type": "file", "file_id": "file_1"})),
        "messages.0.content.0.document.source: type 'file' is not supported; "
        "send the content itself",
    ),
    Row(
        "a source of an unknown kind",
        ask(image({"type": "s3", "key": "k"})),
        "messages.0.content.0.image.source: Input tag 's3' found using 'type' does not match any "
        "of the expected tags: 'base64', 'url', 'file'",
    ),
    Row(
        "a file for code",
        ask(text(), UPLOAD),
        "messages.0.content.1: container_upload needs code execution, which is not run here",
    ),
    Row(
        "a file for code is not the system's",
        talk(HI, system(UPLOAD)),
        "messages.1.content.0: `container_upload` blocks can only be in `user` or `assistant` "
        "messages",
    ),
)
