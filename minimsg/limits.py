"""Every bound on what a client may send, in one table that code, docs and tests read.

A limit is checked before the work it limits: count, then bytes, then content.
Bounds on what the *server* does (batch size, memory) are in `config.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MIB: Final = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Bounds on input. Units are in the names; origins in the comments."""

    body_bytes: int = 32 * MIB  # API: Messages and count_tokens; over it 413
    inline_body_bytes: int = 64 * 1024  # larger bodies are prepared in a worker process
    header_line_bytes: int = 8_190  # the request line too; aiohttp's default, as nginx's
    headers: int = 128  # and trailers
    header_timeout_s: float = 10.0  # from the first byte of a request to its empty line
    idle_timeout_s: float = 70.0  # between requests; proxies that wait 60 s close first
    faults: int = 1_000  # unknown fields and errors of one request that are looked at
    prepare_timeout_s: float = 30.0  # validating, rendering and tokenizing one body
    body_timeout_s: float = 30.0  # a client that sends its body slower is answered 408
    betas: int = 100  # names in the anthropic-beta header; the API knows 66
    messages: int = 100_000  # API
    blocks_per_message: int = 100_000
    tools: int = 10_000
    short_list: int = 1_000  # lists that are a handful in practice
    skills: int = 8  # API
    mcp_servers: int = 20  # API
    model_name_chars: int = 256  # API
    called_name_chars: int = 200  # API: of the tool in a tool_use block
    name_chars: int = 256  # of a tool, a server, an object
    id_chars: int = 512  # of a tool call, a file
    title_chars: int = 500  # API: of a document
    short_text_chars: int = 65_536  # titles, addresses and other single lines
    count: int = (1 << 53) - 1  # any number of things; JSON's largest safe integer
    max_tokens: int = 1_000_000
    signature_chars: int = 8 * MIB  # of a thinking block: more than ours ever have
    stop_sequences: int = 8_192  # reported cap of the hosted API
    stop_sequence_chars: int = 4_096
    user_id_chars: int = 256  # API
    schema_chars: int = 256 * 1024  # of one JSON Schema
    seed: int = (1 << 63) - 1
    top_k: int = 1_000_000
    template_steps: int = 2_000_000  # loop turns and macro calls of one rendering
    template_time_s: float = 10.0
    template_output_chars: int = 64 * MIB
    images: int = 100  # API: of a request
    image_bytes: int = 10 * MIB  # API: of one image, decoded from base64
    image_side_pixels: int = 8_000  # API: width or height
    many_images: int = 20  # API: of more the sides
    many_images_side_pixels: int = 2_000  # may have so many pixels
    images_pixels: int = 256_000_000  # of all images of a request: four of the largest
    pdf_pages: int = 600  # API: of all PDFs of a request
    pdf_page_pixels: int = 1_200_000  # of a page as a model sees it; a letter at 108 dpi has 1.09
    pdf_time_s: int = 15  # of computing, to read one PDF or draw one page
    pdf_memory_bytes: int = 1 << 30  # that this may take
    prepare_memory_bytes: int = 4 << 30  # of a process that prepares big bodies and images
    urls: int = 20  # of one request; each may take
    url_timeout_s: float = 10.0  # with all its redirects
    file_bytes: int = 500 * MIB  # API: of an upload
    upload_bytes_per_s: int = 64 * 1024  # that keep an upload from being late
    form_parts: int = 16
    filename_chars: int = 255  # API
    file_ids: int = 100  # API: that a list of files may be asked for
    batch_bytes: int = 256 * MIB  # API: the body that creates a message batch
    batch_requests: int = 100_000  # API
    page_items: int = 1_000  # API: `limit` of a list route
    trace_bytes: int = 256 * MIB  # of a record that is to be computed again


LIMITS: Final = Limits()
