"""Every setting of the server and the engine, once: name, default, unit, meaning.

The command line flags (`cli/options.py`) and their environment names
(`MINIMSG_` + the field in capitals) are made from these dataclasses; a test fails
when a field has no help text. Bounds on what clients send are in `limits.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from minimsg.features import FEATURES

T = TypeVar("T")


def option(
    default: T,
    help: str,
    *,
    choices: tuple[str, ...] = (),
    minimum: int = 0,
    maximum: int | None = None,
    environment: tuple[str, ...] = (),
) -> T:
    """A dataclass field with its help text; `choices` closes the set, the others bound numbers.

    `environment`: names that others have given it, looked at after our own.
    """
    metadata: dict[str, Any] = {
        "help": help,
        "choices": choices,
        "minimum": minimum,
        "maximum": maximum,
        "environment": environment,
    }
    value: T = field(default=default, metadata=metadata)
    return value


@dataclass(frozen=True)
class EngineConfig:
    """How the model is loaded and run. Read by `loading.py` and `engine/`."""

    dtype: str = option(
        "auto",
        "Number format of the weights; auto is bfloat16 where the device is fast in it, else "
        "float32. int8 rounds weights and what they are multiplied with, in groups of 32: faster "
        "on a CPU, and less exact. float16 is slow on a CPU.",
        choices=("auto", "float32", "bfloat16", "float16", "int8"),
    )
    device: str = option("auto", "Where the model runs: auto, cpu, cuda, cuda:N, mps.")
    kernel: str | None = option(
        None, "Kernel to force; default is the first that can run (see doctor)."
    )
    threads: int | None = option(
        None, "CPU threads of the model; default is every core.", minimum=1
    )
    max_context: int | None = option(
        None,
        "Context window in tokens; default is the model's own, if the cache can hold it.",
        minimum=1,
    )
    kv_memory: str = option(
        "25%", "Memory of the KV cache: bytes (2GiB, 500MB) or a share of the free memory (25%)."
    )
    num_pages: int | None = option(None, "Pages of the KV cache; overrides --kv-memory.", minimum=1)
    max_step_tokens: int = option(
        512,
        "Tokens that one step computes at most, prefill included: fewer keep the replies in "
        "work flowing while a long prompt is read.",
        minimum=1,
    )
    max_sequences: int = option(
        64, "Sequences that run at once; more wait in the queue.", minimum=1
    )
    deterministic: bool = option(
        False,
        "Compute every token alike, whatever else runs: replies are then equal to the last bit. "
        "Slower with other kernels than cpu_native.",
    )
    no_prefix_cache: bool = option(
        False, "Compute every prompt anew, whatever was computed before."
    )
    pin_budget: float = option(
        0.5,
        "Share of the KV cache, 0 to 1, that cache_control may keep from being given away.",
        maximum=1,
    )
    speculate: int = option(
        0,
        "Ids to draft for a step at most, while one or two sequences run: what follows an "
        "earlier passage like the last few ids. Replies stay the same; those that repeat what "
        "was read come faster.",
        maximum=64,
    )
    check_kernels: float = option(
        0.0,
        "Share of the steps, 0 to 1, in which the reference kernel attends beside the one that "
        "runs: the largest errors are in /metrics, in records and on the inspector's page.",
        maximum=1,
    )
    page_size: int = 16  # slots a page; fixed, no flag: kernels are written for it


@dataclass(frozen=True)
class ParserConfig:
    """How the model writes what is no text. Read by `prompt/probe.py`.

    The choices are the names of `parsing/formats.py` and `parsing/thinking.py`, spelled out
    so that a flag's help imports neither.
    """

    tool_call_parser: str = option(
        "auto",
        "How the model writes tool calls; auto is what its chat template shows.",
        choices=("auto", "none", "hermes", "qwen_xml", "llama_json", "json"),
    )
    reasoning_parser: str = option(
        "auto",
        "Tags around the model's thinking; auto is what its chat template shows. qwen3 is think; "
        "deepseek_r1 is think, and the reply begins inside.",
        choices=("auto", "none", "think", "qwen3", "deepseek_r1", "thinking"),
    )


BY_TEMPLATE: Final = ParserConfig()


@dataclass(frozen=True)
class ServerConfig:
    """How requests are received and answered. Read by `server/`."""

    host: str = option("127.0.0.1", "Address to listen on.")
    port: int = option(8080, "Port to listen on; 0 takes a free one.", maximum=65535)
    profile: str = option(
        "compat",
        "How requests are read: compat takes what local servers take, strict refuses what the "
        "hosted API refuses.",
        choices=("compat", "strict"),
    )
    alias: tuple[str, ...] = option(
        (), "Another name for the model, such as 'claude-*'; may be given several times."
    )
    any_model: bool = option(False, "Answer whatever model a request names.")
    without: tuple[str, ...] = option(
        (),
        "Switch a feature off, to see how a client takes it; may be given several times.",
        choices=tuple(FEATURES),
    )
    citations: str = option(
        "overlap",
        "How it is told which passages a sentence of a reply was taken from, where a request "
        "wants citations: overlap by the words that both have, attention also by what the model "
        "looked at, which makes its steps slower; off gives none.",
        choices=("off", "overlap", "attention"),
    )
    drop_server_tools: bool = option(
        False, "Leave out tools that the hosted API runs itself, instead of answering 400."
    )
    keys_file: Path | None = option(
        None,
        "JSON file of API keys: tenant's name -> key, 'sha256:<hex>', or a list of them; "
        "MINIMSG_API_KEYS=name=key,... adds some.",
    )
    insecure: bool = option(
        False, "Listen on an address that others can reach although there are no keys."
    )
    allow_host: tuple[str, ...] = option(
        (),
        "A Host header to accept besides loopback names; may be given several times.",
    )
    allow_origin: tuple[str, ...] = option(
        (),
        "An Origin whose web pages may call the server, besides loopback; may be given "
        "several times; * allows all.",
    )
    allow_urls: bool = option(
        False,
        "Fetch images and documents that requests name by URL: https, from public addresses only.",
    )
    allow_http_urls: bool = option(
        False, "Fetch from http URLs too, which anybody on the way can read and change."
    )
    public_url: str | None = option(
        None,
        "URL that clients call the server by, such as https://llm.example.org, for the links in "
        "its answers; default is what each request says. Needed behind a proxy that ends TLS.",
    )
    requests_per_minute: int | None = option(
        None, "Requests a tenant may make in a minute; default is no limit.", minimum=1
    )
    tokens_per_minute: int | None = option(
        None, "Tokens, in and out, a tenant may use in a minute; default is no limit.", minimum=1
    )
    report_all_hits: bool = option(
        False,
        "Count every token that was not computed again as cache_read, not only those that "
        "cache_control had kept.",
    )
    no_remember_thinking: bool = option(
        False, "Do not put thinking back that a client has dropped from its conversation."
    )
    data_dir: Path | None = option(
        None, "Folder for models and stored objects; default is the platform's user data folder."
    )
    no_store: bool = option(
        False, "Keep message batches and files only until the server ends, in a temporary folder."
    )
    default_max_tokens: int = option(
        1024, "Length limit of a reply whose request gives no max_tokens.", minimum=1
    )
    min_cache_tokens: int = option(
        0, "Tokens that a cache mark must cover; shorter ones are passed over, as hosted."
    )
    max_queue: int = option(512, "Requests that may wait; one more is answered 529.")
    ping_interval_s: float = option(10.0, "Seconds of silence after which a stream gets a ping.")
    misbehave: str | None = option(
        None,
        "Do one thing wrong, to test clients and suites; minimsg conform mutants --list has "
        "the names.",
    )
    fault: str | None = option(
        None,
        "Fail now and then, as overloaded:0.2,drop@event:5,slow: also limited, broken (of all "
        "requests), error@event.",
    )
    write_timeout_s: float = option(
        120.0, "Seconds that a client may leave a stream unread before it is dropped."
    )
    trace: int = option(
        0,
        "Record every request and keep each tenant's last so many, for /minimsg/traces; 0: those "
        "whose header minimsg-trace is 1.",
        maximum=10_000,
    )
    inspect_control: bool = option(
        False,
        "Let whoever may ask also pause and step the engine, which holds up all requests; without "
        "keys on a loopback address anybody may.",
    )
    drain_timeout_s: float = option(
        30.0, "Seconds that running replies get to finish after SIGTERM."
    )
