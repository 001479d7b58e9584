"""Thinking over HTTP: asked for, shown, signed, sent back, remembered; plain and streamed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from pydantic import JsonValue

from minimsg.builtin import THINKING_CHATML, write_scripted
from minimsg.config import ServerConfig
from minimsg.limits import LIMITS
from minimsg.server.signatures import KEY_FILE

from .conftest import WRITERS, Start
from .running import Json, Running, ask
from .test_sdk import sdk

NOW = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
TOOL: Json = {"name": "now", "input_schema": {"type": "object", "properties": {}}}
TAPES = {
    "plan": "<think>plan it</think>Hello",
    "plain": "Hello",
    "end of thinking only": f"plan</think>\n{NOW}",
    "call after thinking": f"<think>x</think>hello{NOW}",
    "interleaved": f"<think>a</think>one<think>b</think>{NOW}",
    "nothing but thoughts": "<think>hm",
    "nothing thought": "<think>\n\n</think>\n\nHello",
    "stop inside": "<think>a STOP b</think>c STOP d",
    "accents": "<think>\n\u00e9\U0001f469\u200d\U0001f680\n</think>\n\n\u00e9",
    "tags in text": "<thin k> a < b </ think>",
}
TITLES = list(TAPES)
Change = Callable[[Any], Any]  # of a reply's content, before it is sent back
ENABLED: Json = {"type": "enabled", "budget_tokens": 1024}
ADAPTIVE: Json = {"type": "adaptive"}
OFF: Json = {"type": "disabled"}
OMITTED: Json = {**ENABLED, "display": "omitted"}
OPENING = THINKING_CHATML.replace("assistant\\n'", "assistant\\n<think>\\n'")
WRITERS["thinker"] = lambda folder: write_scripted(folder, list(TAPES.values()))
WRITERS["opened"] = lambda folder: write_scripted(
    folder,
    [f"<think>\n{tape.removeprefix('<think>')}" for tape in TAPES.values()],
    template=OPENING,
)

# As long as the beginning of the tape, which then goes on with its answer.
SWITCH = "{% if enable_thinking is false %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
WRITERS["switched"] = lambda folder: write_scripted(
    folder,
    ["<think>hmmm</think>Hello"],
    template=THINKING_CHATML.replace("{% endif %}", SWITCH + "{% endif %}"),
)


ENDLESS = "x" * 2_000
WRITERS["endless"] = lambda folder: write_scripted(folder, [f"<think>{ENDLESS}"])
WRITERS["endless and opened"] = lambda folder: write_scripted(
    folder, [f"<think>\n{ENDLESS}"], template=OPENING
)
WRITERS["in parts"] = lambda folder: write_scripted(
    folder, [f"<think>{ENDLESS[:50]}</think>one<think>{ENDLESS}"]
)


def write_endless_in_bytes(folder: Path) -> None:
    """A model whose tags are no tokens: seven and eight bytes."""
    write_scripted(folder, ["y"], template=THINKING_CHATML)
    config = json.loads((folder / "config.json").read_text())
    config["tapes"] = [list(f"<think>{ENDLESS}".encode())]
    (folder / "config.json").write_text(json.dumps(config))


WRITERS["endless in bytes"] = write_endless_in_bytes


def asked(title: str, model: str = "thinker", /, **fields: JsonValue) -> Json:
    """The body that the model answers with the tape of this title."""
    return ask(TITLES.index(title), **{"model": model, **fields})


@pytest.fixture
def serve(start: Start, tmp_path: Path) -> Start:
    """Starts a model that thinks, with a data folder of its own."""

    async def serve_one(name: str = "thinker", **settings: Any) -> Running:
        return await start(name, config=ServerConfig(**{"data_dir": tmp_path, **settings}))

    return serve_one


@pytest.fixture
async def thinker(serve: Start) -> Running:
    return await serve()


@pytest.fixture
async def client(thinker: Running) -> AsyncIterator[AsyncAnthropic]:
    async with sdk(thinker) as made:
        yield made


async def answer(running: Running, body: Json) -> Json:
    """The plain answer, which the streamed one must add up to; no id is the same."""
    async with sdk(running) as client:
        request: Any = body
        plain: Json = (await client.messages.create(**request)).to_dict(mode="json")
        async with client.messages.stream(**request) as stream:
            streamed = (await stream.get_final_message()).to_dict(mode="json")
    assert without_ids(plain) == without_ids(streamed)
    return plain


def without_ids(message: Any) -> Any:
    blocks = [{k: v for k, v in block.items() if k != "id"} for block in message["content"]]
    return {**message, "id": "", "content": blocks}


def shown(message: Json) -> list[tuple[str, str]]:
    """Each block's type and what it says."""
    content: Any = message["content"]
    keys = {"text": "text", "thinking": "thinking", "tool_use": "name"}
    return [(block["type"], block[keys[block["type"]]]) for block in content]


def thinking_tokens(message: Any) -> int:
    tokens: int = message["usage"]["output_tokens_details"]["thinking_tokens"]
    return tokens


class TestWhatIsShown:
    @pytest.mark.parametrize("thinking", [ENABLED, ADAPTIVE, {**ENABLED, "display": "summarized"}])
    @pytest.mark.parametrize(
        ("title", "blocks", "num_thought"),
        [
            ("plan", [("thinking", "plan it"), ("text", "Hello")], 7),
            ("plain", [("text", "Hello")], 0),
            (
                "call after thinking",
                [("thinking", "x"), ("text", "hello"), ("tool_use", "now")],
                1,
            ),
            (
                "interleaved",
                [("thinking", "a"), ("text", "one"), ("thinking", "b"), ("tool_use", "now")],
                2,
            ),
            ("nothing but thoughts", [("thinking", "hm")], 2),
            ("nothing thought", [("text", "Hello")], 2),
            ("accents", [("thinking", "\u00e9\U0001f469\u200d\U0001f680"), ("text", "\u00e9")], 15),
            ("tags in text", [("text", "<thin k> a < b </ think>")], 0),
        ],
    )
    async def test_thinking_is_a_block_of_its_own(
        self,
        thinker: Running,
        title: str,
        blocks: list[tuple[str, str]],
        num_thought: int,
        thinking: Json,
    ) -> None:
        message = await answer(thinker, asked(title, thinking=thinking, tools=[TOOL]))
        assert shown(message) == blocks
        assert thinking_tokens(message) == num_thought

    @pytest.mark.parametrize("fields", [{}, {"thinking": OFF}, {"thinking": None}])
    async def test_what_nobody_asked_for_is_not_shown(self, thinker: Running, fields: Json) -> None:
        message = await answer(thinker, asked("plan", **fields))
        assert shown(message) == [("text", "Hello")]
        assert thinking_tokens(message) == 7

    @pytest.mark.parametrize("title", ["plan", "interleaved"])
    async def test_omitted_thinking_has_a_block_and_a_signature(
        self, thinker: Running, title: str
    ) -> None:
        message: Any = await answer(thinker, asked(title, thinking=OMITTED, tools=[TOOL]))
        thought = [block for block in message["content"] if block["type"] == "thinking"]
        assert [block["thinking"] for block in thought] == [""] * len(thought)
        assert all(block["signature"] for block in thought)

    async def test_a_signature_comes_last_and_once(self, thinker: Running) -> None:
        for thinking in (ENABLED, OMITTED):
            events: Any = await thinker.stream(asked("plan", thinking=thinking))
            deltas = [
                event["delta"]["type"]
                for event in events
                if event["type"] == "content_block_delta" and event["index"] == 0
            ]
            assert deltas.count("signature_delta") == 1
            assert deltas[-1] == "signature_delta"
            assert ("thinking_delta" in deltas) == (thinking is ENABLED)

    async def test_a_template_variable_is_followed_here_as_elsewhere(
        self, thinker: Running
    ) -> None:
        kwargs: Json = {"chat_template_kwargs": {"enable_thinking": True}}
        message, _ = await thinker.post(asked("plan", **kwargs))
        assert shown(message) == [("text", "Hello")]  # it has no such switch

    async def test_a_stop_sequence_is_not_looked_for_in_thinking(self, thinker: Running) -> None:
        body = asked("stop inside", thinking=ENABLED, stop_sequences=["STOP"])
        message = await answer(thinker, body)
        assert shown(message) == [("thinking", "a STOP b"), ("text", "c ")]
        assert message["stop_sequence"] == "STOP"

    @pytest.mark.parametrize("max_tokens", range(1, 14))
    async def test_max_tokens_counts_thinking(self, thinker: Running, max_tokens: int) -> None:
        no_budget: Json = {"output_config": {"effort": "max"}}
        body = asked("plan", thinking=ADAPTIVE, max_tokens=max_tokens, **no_budget)
        message: Any = await answer(thinker, body)
        assert message["usage"]["output_tokens"] == max_tokens
        assert thinking_tokens(message) == max(min(max_tokens - 1, 7), 0)
        text = "".join(said for kind, said in shown(message) if kind == "text")
        assert text == "Hello"[: max(max_tokens - 9, 0)]

    async def test_a_budget_ends_thinking_to_the_token(self, thinker: Running) -> None:
        """Of 9 tokens 6 may be thought; the closing tag is forced, and the answer goes on."""
        message = await answer(thinker, asked("plan", thinking=ADAPTIVE, max_tokens=9))
        assert thinking_tokens(message) == 6
        assert [kind for kind, _ in shown(message)][:1] == ["thinking"]


class TestAPromptThatOpensThinking:
    async def test_the_reply_begins_with_thinking(self, serve: Start) -> None:
        running = await serve("opened")
        message = await answer(running, asked("plan", "opened", thinking=ENABLED))
        assert shown(message) == [("thinking", "plan it"), ("text", "Hello")]
        assert thinking_tokens(message) == 7

    async def test_the_closing_tag_is_in_no_text(self, serve: Start) -> None:
        running = await serve("opened")
        body = asked("end of thinking only", "opened", thinking=ENABLED, tools=[TOOL])
        assert shown(await answer(running, body)) == [("thinking", "plan"), ("tool_use", "now")]
        body = asked("end of thinking only", "opened", tools=[TOOL])
        assert shown(await answer(running, body)) == [("tool_use", "now")]


class TestASwitch:
    async def test_both_routes_are_told_alike(self, serve: Start) -> None:
        running = await serve("switched")
        tokens = {}
        for is_on in (True, False):
            kwargs: Any = {"enable_thinking": is_on}
            body = ask(0, model="switched", chat_template_kwargs=kwargs)
            message: Any = (await running.post(body))[0]
            tokens[is_on] = message["usage"]["input_tokens"]
            del body["max_tokens"]
            counted, _ = await running.post(body, "/v1/messages/count_tokens")
            assert counted["input_tokens"] == tokens[is_on]
            assert shown(message) == [("thinking", "hmmm")] * is_on + [("text", "Hello")]
        assert tokens[False] == tokens[True] + len("\n\n\n\n") + 2


class TestBudgets:
    @pytest.mark.parametrize("name", ["endless", "endless and opened", "endless in bytes"])
    async def test_a_budget_holds_to_the_token(self, serve: Start, name: str) -> None:
        running = await serve(name)
        message: Any = await answer(running, ask(0, model=name, max_tokens=100, thinking=ADAPTIVE))
        assert thinking_tokens(message) == 75
        (kind, thought), (other, text) = shown(message)
        assert (kind, other, thought) == ("thinking", "text", "x" * len(thought))
        assert text == "x" * len(text) != ""  # what the tape goes on with
        assert message["usage"]["output_tokens"] == 100

    async def test_the_clients_budget_is_kept(self, serve: Start) -> None:
        running = await serve("endless")
        body = ask(0, model="endless", max_tokens=1_040, thinking=OMITTED)
        message, _ = await running.post(body)
        assert thinking_tokens(message) == 1_024
        assert [kind for kind, _ in shown(message)] == ["thinking", "text"]

    async def test_parts_share_a_budget(self, serve: Start) -> None:
        running = await serve("in parts")
        body = ask(0, model="in parts", max_tokens=100, thinking=ADAPTIVE)
        message = await answer(running, body)
        assert [len(text) for kind, text in shown(message) if kind == "thinking"] == [50, 25]
        assert thinking_tokens(message) == 75

    async def test_a_model_that_cannot_but_think_answers_after_a_while(self, serve: Start) -> None:
        running = await serve("endless and opened")
        message = await answer(running, ask(0, model="endless and opened", max_tokens=100))
        assert [kind for kind, _ in shown(message)] == ["text"]
        assert thinking_tokens(message) == 75


class TestWhoCan:
    async def test_a_model_that_thinks_says_so(self, client: AsyncAnthropic) -> None:
        found = (await client.models.retrieve("thinker")).capabilities
        assert found is not None
        assert found.thinking.supported
        assert found.thinking.types.enabled.supported
        assert found.thinking.types.adaptive.supported
        assert found.effort.high.supported

    async def test_strict_lets_it_think(self, serve: Start) -> None:
        running = await serve(profile="strict")
        async with sdk(running) as client:
            for thinking in (ENABLED, ADAPTIVE):
                request: Any = asked("plan", thinking=thinking)
                message = await client.messages.create(**request)
                assert [block.type for block in message.content] == ["thinking", "text"]

    async def test_an_effort_that_changes_nothing_is_reported(self, thinker: Running) -> None:
        effort: Json = {"output_config": {"effort": "low"}}
        _, response = await thinker.post(asked("plan", **effort))
        assert response.headers["minimsg-ignored"] == "output_config.effort"
        _, response = await thinker.post(asked("plan", thinking=ADAPTIVE, **effort))
        assert "minimsg-ignored" not in response.headers

    async def test_nobody_thinks_before_an_assistant_prefix(self, thinker: Running) -> None:
        body: Any = asked("plain", thinking=ADAPTIVE)
        body["messages"].append({"role": "assistant", "content": "Hel"})
        message, response = await thinker.post(body)
        assert shown(message) == [("text", "lo")]
        assert response.headers["minimsg-ignored"] == "thinking"

    async def test_a_model_that_does_not_think_has_no_details(self, scripted: Running) -> None:
        message, _ = await scripted.post(ask(0))
        usage: Any = message["usage"]
        assert usage["output_tokens_details"] is None
        assert not scripted.server.thinks


async def replayed(running: Running, title: str, change: Change, **fields: Any) -> Any:
    """The body that goes on after the reply to `title`, whose content is first changed."""
    body: Any = asked(title, thinking=ENABLED, **fields)
    message, _ = await running.post(body)
    turn = {"role": "assistant", "content": change(message["content"])}
    return {**body, "messages": [*body["messages"], turn, {"role": "user", "content": "more"}]}


def block_of(index: int, **changes: Any) -> Change:
    """Changes one block."""
    return lambda content: [
        {**block, **changes} if place == index else block for place, block in enumerate(content)
    ]


def unchanged(content: Any) -> Any:
    return content


def dropped(content: Any) -> Any:
    """What a client sends back that keeps only what it shows."""
    return [block for block in content if block["type"] != "thinking"]


def as_text(content: Any) -> Any:
    return "".join(block.get("text", "") for block in content)


async def prompt_tokens(running: Running, body: Json) -> int:
    """What the prompt of `body` has, which both routes must say alike."""
    message, _ = await running.post({**body, "max_tokens": 1025})
    wanted = ("model", "messages", "tools", "thinking", "system", "seed", "context_management")
    counting = {key: value for key, value in body.items() if key in wanted}
    counted, _ = await running.post(counting, "/v1/messages/count_tokens")
    usage: Any = message["usage"]
    parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    tokens: int = sum(usage[part] for part in parts)
    assert counted["input_tokens"] == tokens
    return tokens


class TestSignatures:
    async def test_a_block_is_taken_back_as_it_was_sent(self, serve: Start) -> None:
        for profile in ("compat", "strict"):
            running = await serve(profile=profile, no_store=True)  # beside the other
            running.session.headers["anthropic-version"] = "2023-06-01"
            for fields in ({}, {"thinking": OMITTED}):
                await running.post(await replayed(running, "plan", unchanged) | fields)

    async def test_omitted_thinking_is_restored(self, thinker: Running) -> None:
        whole = await replayed(thinker, "plan", unchanged)
        omitted = await replayed(thinker, "plan", block_of(0, thinking=""))
        missing = await replayed(thinker, "plan", block_of(0, thinking="", signature="theirs"))
        assert whole["messages"][1]["content"][0]["thinking"] == "plan it"
        assert await prompt_tokens(thinker, omitted) == await prompt_tokens(thinker, whole)
        tags_and_text = 2 + len("plan it")
        assert await prompt_tokens(thinker, missing) == (
            await prompt_tokens(thinker, whole) - tags_and_text
        )

    @pytest.mark.parametrize(
        "change",
        [
            block_of(0, thinking="plan something else"),
            block_of(0, thinking="plan it "),
            block_of(0, signature=""),
            block_of(0, signature="ErUBCkYIARgCIkDx"),
        ],
    )
    @pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
    async def test_strict_refuses_what_is_not_ours_or_was_altered(
        self, serve: Start, change: Change, path: str
    ) -> None:
        running = await serve(profile="strict")
        running.session.headers["anthropic-version"] = "2023-06-01"
        body = await replayed(running, "plan", change)
        if path.endswith("count_tokens"):
            del body["max_tokens"]
        answer, _ = await running.post(body, path, status=400)
        error: Any = answer["error"]
        assert error["message"] == ("messages.1.content.0: Invalid `signature` in `thinking` block")
        await running.post({**body, "thinking": OFF}, path)  # then nobody reads it

    @pytest.mark.parametrize(
        "change", [block_of(0, thinking="other"), block_of(0, signature=""), block_of(0)]
    )
    async def test_compat_takes_it_as_given(self, thinker: Running, change: Change) -> None:
        body = await replayed(thinker, "plan", change)
        given = body["messages"][1]["content"][0]["thinking"]
        without = await replayed(thinker, "plan", dropped) | {"seed": 1}
        tokens = await prompt_tokens(thinker, without) + 2 + len(given)
        assert await prompt_tokens(thinker, body) == tokens

    async def test_another_tenant_cannot_use_it(
        self, serve: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MINIMSG_API_KEYS", "alice=a,bob=b")
        running = await serve(profile="strict")
        running.session.headers.update({"anthropic-version": "2023-06-01", "x-api-key": "a"})
        body = await replayed(running, "plan", unchanged)
        await running.post(body)
        running.session.headers["x-api-key"] = "b"
        await running.post(body, status=400)

    async def test_it_outlives_the_server(self, serve: Start, tmp_path: Path) -> None:
        first = await serve(profile="strict", no_store=True)
        first.session.headers["anthropic-version"] = "2023-06-01"
        body = await replayed(first, "plan", unchanged)
        second = await serve(profile="strict", no_store=True)
        second.session.headers["anthropic-version"] = "2023-06-01"
        await second.post(body)
        assert (tmp_path / KEY_FILE).exists()

    async def test_a_big_body_is_checked_in_its_process(self, serve: Start) -> None:
        running = await serve(profile="strict")
        running.session.headers["anthropic-version"] = "2023-06-01"
        padding = "x" * LIMITS.inline_body_bytes
        body = await replayed(running, "plan", block_of(0, thinking="other"))
        body["metadata"] = {"user_id": None}
        body["stop_sequences"] = [padding[:4_000]] * 20
        answer, _ = await running.post(body, status=400)
        error: Any = answer["error"]
        assert "Invalid `signature`" in error["message"]

    async def test_redacted_thinking_is_passed_over(self, thinker: Running) -> None:
        redacted = {"type": "redacted_thinking", "data": "opaque"}
        body = await replayed(thinker, "plan", lambda content: [redacted, *dropped(content)])
        _, response = await thinker.post(body)
        assert response.headers["minimsg-ignored"] == "messages.1.content.0"


class TestRemembering:
    @pytest.mark.parametrize("change", [dropped, as_text])
    @pytest.mark.parametrize("first", [{}, {"thinking": OFF}, {"thinking": OMITTED}])
    async def test_thinking_that_a_client_drops_is_put_back(
        self, thinker: Running, change: Change, first: Json
    ) -> None:
        whole = await prompt_tokens(thinker, await replayed(thinker, "plan", unchanged))
        body: Any = asked("plan", **first)
        message, _ = await thinker.post(body)
        turns = [{"role": "assistant", "content": change(message["content"])}]
        turns.append({"role": "user", "content": "more"})
        again = {**body, "messages": [*body["messages"], *turns]}
        assert await prompt_tokens(thinker, again) == whole

    async def test_each_thought_finds_its_place(self, thinker: Running) -> None:
        body: Any = asked("interleaved", thinking=ENABLED, tools=[TOOL])
        message: Any = (await thinker.post(body))[0]
        result = {"type": "tool_result", "tool_use_id": message["content"][-1]["id"]}

        def loop(content: Any) -> Any:
            turns = [{"role": "assistant", "content": content}]
            turns.append({"role": "user", "content": [result]})
            return {**body, "messages": [*body["messages"], *turns]}

        whole = await prompt_tokens(thinker, loop(message["content"]))
        assert await prompt_tokens(thinker, loop(dropped(message["content"]))) == whole

    async def test_another_answer_gets_no_thoughts(self, thinker: Running) -> None:
        plain = await prompt_tokens(thinker, await replayed(thinker, "plan", dropped) | {"seed": 1})
        body = await replayed(thinker, "plan", lambda _: "Hullo")
        assert await prompt_tokens(thinker, body) == plain

    async def test_another_question_or_system_prompt_gets_none(self, thinker: Running) -> None:
        body = await replayed(thinker, "plan", dropped)
        whole = await prompt_tokens(thinker, body)
        body["messages"][0]["content"] = "Go"
        assert await prompt_tokens(thinker, body) == whole - 2 - len("plan it")
        body["messages"][0]["content"] = "go"
        assert await prompt_tokens(thinker, body) == whole
        assert await prompt_tokens(thinker, {**body, "system": "S"}) < await prompt_tokens(
            thinker, {**await replayed(thinker, "plan", dropped, system="S"), "system": "S"}
        )

    async def test_cache_marks_and_blocks_change_nothing(self, thinker: Running) -> None:
        body = await replayed(thinker, "plan", dropped)
        whole = await prompt_tokens(thinker, body)
        mark = {"cache_control": {"type": "ephemeral"}}
        body["messages"][0]["content"] = [{"type": "text", "text": " go\n", **mark}]
        assert await prompt_tokens(thinker, body) == whole + 2

    @pytest.mark.parametrize(
        ("settings", "fields"), [({"no_remember_thinking": True}, {}), ({}, {"seed": 3})]
    )
    async def test_it_can_be_switched_off(self, serve: Start, settings: Any, fields: Any) -> None:
        running = await serve(**settings)
        body = await replayed(running, "plan", dropped) | fields
        whole = await replayed(running, "plan", unchanged)
        assert await prompt_tokens(running, body) == (
            await prompt_tokens(running, whole) - 2 - len("plan it")
        )

    async def test_a_reply_to_a_seeded_request_is_not_kept(self, thinker: Running) -> None:
        await replayed(thinker, "plan", dropped, seed=3)
        assert not thinker.server.memory.of("local")

    async def test_strict_remembers_nothing(self, serve: Start) -> None:
        running = await serve(profile="strict")
        running.session.headers["anthropic-version"] = "2023-06-01"
        await replayed(running, "plan", dropped)
        assert not running.server.memory.of("local")

    async def test_a_bill_adds_up_with_what_was_put_back(self, thinker: Running) -> None:
        body = await replayed(thinker, "plan", dropped)
        del body["max_tokens"]
        counted: Any = (await thinker.post({**body, "bill": True}, "/v1/messages/count_tokens"))[0]
        bill = counted["bill"]
        assert bill["blocks"]["messages.1.content.0"] >= len("plan it") + len("Hello")
        tokens = [*bill["blocks"].values(), *bill["tools"].values(), bill["template"]]
        assert sum(tokens) == counted["input_tokens"]

    async def test_an_edit_clears_it_as_any_other_thinking(self, thinker: Running) -> None:
        body = await replayed(thinker, "plan", dropped)
        body["messages"][3:] = [
            {"role": "assistant", "content": "yes"},
            {"role": "user", "content": "more"},
        ]
        edit = {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}
        kept = await prompt_tokens(thinker, body)
        body["context_management"] = {"edits": [edit]}
        assert await prompt_tokens(thinker, body) == kept

    async def test_it_reaches_big_bodies_too(self, thinker: Running) -> None:
        body = await replayed(thinker, "plan", dropped)
        body["chat_template_kwargs"] = {"reasoning_effort": "x" * LIMITS.inline_body_bytes}
        whole = await replayed(thinker, "plan", unchanged)
        tokens = await prompt_tokens(thinker, whole)
        message, _ = await thinker.post(body)
        usage: Any = message["usage"]
        assert usage["input_tokens"] == tokens

    async def test_a_tenant_has_a_memory_of_its_own(
        self, serve: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MINIMSG_API_KEYS", "alice=a,bob=b")
        running = await serve()
        running.session.headers["x-api-key"] = "a"
        body = await replayed(running, "plan", dropped)
        whole = await prompt_tokens(running, body)
        running.session.headers["x-api-key"] = "b"
        assert await prompt_tokens(running, body) == whole - 2 - len("plan it")
