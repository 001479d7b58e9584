"""What a server's /metrics says, as `minimsg top` shows it: sums, shares and rates.

Pure arithmetic on a text; asking for it and drawing are in `top.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from minimsg.errors import ConfigError

PAGE_STATES = ("free", "cached", "used")


@dataclass(frozen=True)
class Figures:
    """One look at a server, `time` seconds into some clock."""

    time: float
    running: int
    waiting: int
    pages: dict[str, int]  # by state
    pinned: int
    queried_tokens: int
    hit_tokens: int
    prompt_tokens: int
    generated_tokens: int
    requests: int
    preemptions: int
    restarts: int

    @classmethod
    def read(cls, text: str, time: float) -> Figures:
        """The figures in the text of /metrics. Raises ConfigError: it is not that of minimsg."""
        sums, pages = _sums(text)
        try:
            return cls(
                time=time,
                running=sums["requests_running"],
                waiting=sums["requests_waiting"],
                pages={state: pages[state] for state in PAGE_STATES},
                pinned=sums["pages_pinned"],
                queried_tokens=sums["prefix_cache_queries_total"],
                hit_tokens=sums["prefix_cache_hits_total"],
                prompt_tokens=sums["prompt_tokens_total"],
                generated_tokens=sums["generation_tokens_total"],
                requests=sums.get("requests_total", 0),  # none has ended yet
                preemptions=sums["preemptions_total"],
                restarts=sums["engine_restarts_total"],
            )
        except KeyError as missing:
            raise ConfigError(f"its /metrics has no minimsg_{missing.args[0]}") from None


@dataclass(frozen=True)
class Rates:
    """What was done between two looks, a second; and the share of prompts that was there."""

    prompt_tokens: float
    generated_tokens: float
    requests: float
    hit_share: float | None  # None: nothing was looked up


def rates(before: Figures, now: Figures) -> Rates:
    """The rates between two looks. A server that began anew in between is looked at as new."""
    if now.requests < before.requests or now.prompt_tokens < before.prompt_tokens:
        return Rates(0.0, 0.0, 0.0, hit_share(now))
    seconds = max(now.time - before.time, 1e-9)
    queried = now.queried_tokens - before.queried_tokens
    return Rates(
        (now.prompt_tokens - before.prompt_tokens) / seconds,
        (now.generated_tokens - before.generated_tokens) / seconds,
        (now.requests - before.requests) / seconds,
        (now.hit_tokens - before.hit_tokens) / queried if queried else None,
    )


def hit_share(figures: Figures) -> float | None:
    """Of all prompt tokens so far, the share that the cache had."""
    return figures.hit_tokens / figures.queried_tokens if figures.queried_tokens else None


def _sums(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """The samples of minimsg by name, over all labels; and the pages by state."""
    from prometheus_client.parser import text_string_to_metric_families

    sums: dict[str, int] = {}
    pages: dict[str, int] = {}
    try:
        samples = [each for found in text_string_to_metric_families(text) for each in found.samples]
    except ValueError as error:
        raise ConfigError(f"its /metrics is not Prometheus's text: {error}") from None
    for sample in samples:
        name = sample.name.removeprefix("minimsg_")
        if name == "requests_total" and sample.labels.get("endpoint") != "/messages":
            continue  # those who watch it are not its work
        if name == "pages":
            pages[sample.labels.get("state", "")] = int(sample.value)
        elif not name.endswith(("_bucket", "_sum")):
            sums[name] = sums.get(name, 0) + int(sample.value)
    return sums, pages
