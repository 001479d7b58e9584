"""The inspector in a real Chromium: every pane, by keyboard, small, dark, and without a fault.

Chromium comes from the machine, axe-core from npm. What can be told without a browser is in
`tests/inspector` and `tests/server/test_inspect.py`. MINIMSG_PICTURES names a folder for
pictures of every pane, to be looked at.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from minimsg.builtin import write_scripted
from minimsg.inspector import show
from minimsg.trace import from_json

from . import fetched
from .browser import Tab, open_browser
from .conftest import Serve

AXE = "axe-core@4.14.1"
PANES = ("Chat", "Prompt", "Sampler", "Attention", "Engine", "Events")
EXAMPLE = Path(__file__).parent.parent / "server" / "example_trace.json"
SHOT_FOLDER = os.environ.get("MINIMSG_PICTURES")
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
CHOSEN = "document.querySelector('[role=option][aria-selected=true]')"
STEP = "Number(/step ([\\d,]+)/.exec(document.querySelector('main .row').textContent)[1])"

pytestmark = [pytest.mark.client, pytest.mark.timeout(600)]


@pytest.fixture
async def tab(tmp_path: Path) -> AsyncIterator[Tab]:
    """A browser whose page must have had no fault when the test ends."""
    async with open_browser(tmp_path / "profile") as opened:
        await opened.resize(1100)
        yield opened
        assert opened.complaints == []


async def ask(tab: Tab, url: str, text: str = "What is the capital of France?") -> None:
    """Open the page, say something, and wait until the answer and its record are there."""
    await tab.load(url + "/inspect")
    await tab.until_text("Talk to the model")
    await tab.type(".composer textarea", text)
    await tab.press("Enter")
    await tab.until(
        "document.querySelector('.turn.assistant .quiet')?.textContent.includes('token')"
    )
    await tab.until("document.querySelector('header select')")


async def go(tab: Tab, pane: str) -> None:
    """Open a pane and wait until nothing on it is on its way."""
    await tab.click("[role=tab]", pane)
    await tab.until(
        f"document.querySelector('[role=tab][aria-selected=true]').textContent === '{pane}'"
    )
    await tab.until(
        "![...document.querySelectorAll('[role=status]')].some((e) => e.textContent.endsWith('…'))"
    )


async def keep(tab: Tab, name: str) -> None:
    """A picture for people, where one is wanted."""
    if SHOT_FOLDER:
        picture = await tab.picture()
        await asyncio.to_thread((Path(SHOT_FOLDER) / f"{name}.png").write_bytes, picture)


async def test_a_request_can_be_followed_through_every_pane(serve: Serve, tab: Tab) -> None:
    await ask(tab, serve("tiny").url)
    await go(tab, "Prompt")
    assert await tab.value("document.querySelectorAll('[role=option]').length") > 20
    await tab.click("[role=option].user")
    await tab.until_text("messages.0.content.0")
    await go(tab, "Sampler")
    await tab.until("!document.body.innerText.includes('likeliest are known')")  # 256 have come
    row = "[...document.querySelectorAll('tbody tr')].find((r) => r.textContent.includes('picked'))"
    assert "came" in await tab.value(f"{row}?.textContent ?? ''")  # the same number, the same token
    await tab.value("document.querySelector('.knobs input').focus()")
    await tab.press("Home")
    await tab.until_text("always the likeliest")
    assert await tab.value("document.querySelectorAll('tbody tr.cut').length") > 5
    await go(tab, "Attention")
    await tab.until_text("looks most at")
    await tab.until("document.querySelectorAll('tbody tr').length === 2")  # layers of the model
    await go(tab, "Events")
    await tab.until_text("no rule is broken")


async def test_what_the_reference_kernel_found_is_told_of_engine_and_request(
    serve: Serve, tab: Tab
) -> None:
    await ask(tab, serve("tiny", "--check-kernels", "1").url)
    for pane in ("Engine", "Events"):
        await go(tab, pane)
        await tab.until_text("steps checked: largest error")
        await tab.click("summary", "Layer by layer")
        layers = "document.querySelectorAll('.checked tbody tr').length"
        assert await tab.value(layers) == 2
        errors = await tab.value(
            "[...document.querySelectorAll('.checked td')].map((e) => +e.textContent)"
        )
        assert len(errors) == 4
        assert all(0 <= error < 1e-2 for error in errors), errors  # the kernel is a good one
        await keep(tab, f"checked-{pane}")


async def test_the_engine_can_be_held_and_stepped_and_goes_on_when_the_page_leaves(
    serve: Serve, tab: Tab, tmp_path: Path
) -> None:
    write_scripted(tmp_path, ["word " * 400])
    url = serve(tmp_path).url
    await tab.load(url + "/inspect#Engine")
    await tab.click("button", "Pause")
    await tab.until_text("Paused at step")
    await go(tab, "Chat")
    await tab.type(".composer textarea", "go")
    await tab.press("Enter")
    await go(tab, "Engine")
    await tab.until_text("waiting")
    before = await tab.value(STEP)
    await tab.click("button", "Step")
    await tab.until(f"{STEP} === {before + 1}")
    await tab.until_text("running")
    await keep(tab, "paused")
    await tab.click("button", "Resume")
    await tab.until(f"{STEP} > {before + 20}")


async def test_the_page_can_be_used_by_keyboard_alone(serve: Serve, tab: Tab) -> None:
    await ask(tab, serve("tiny").url)
    await tab.value("document.querySelector('[role=tab][aria-selected=true]').focus()")
    await tab.press("ArrowRight")
    await tab.until("document.activeElement.id === 'tab-Prompt'")
    for _ in range(10):
        if await tab.value("document.activeElement.getAttribute('role') === 'listbox'"):
            break
        await tab.press("Tab")
    await tab.until("document.activeElement.getAttribute('role') === 'listbox'")
    first = await tab.value(f"{CHOSEN}.id")
    await tab.press("ArrowRight")
    await tab.until(f"{CHOSEN}.id !== '{first}'")
    assert await tab.value(
        f"document.activeElement.getAttribute('aria-activedescendant') === {CHOSEN}.id"
    )
    await tab.press("End")
    await tab.until(f"{CHOSEN}.nextElementSibling === null")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1100), ("dark", 320)])
async def test_every_pane_is_within_its_window_and_axe_finds_no_fault(
    serve: Serve, tab: Tab, cache: Path, scheme: str, width: int
) -> None:
    axe = fetched.node_packages(cache, AXE) / "node_modules" / "axe-core" / "axe.min.js"
    source = await asyncio.to_thread(axe.read_text)
    await tab.prefer(color_scheme=scheme, reduced_motion="reduce")
    await tab.resize(width)
    await ask(tab, serve("tiny", "--check-kernels", "1").url)
    await tab.value(f"{source}; 0")
    for pane in PANES:
        await go(tab, pane)
        await tab.value(
            "document.querySelectorAll('.checked details').forEach((e) => e.open = true)"
        )
        assert await tab.value("document.documentElement.scrollWidth") <= width, pane
        found = await tab.value(
            "axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map("
            "(v) => v.id + ': ' + v.nodes.map((n) => n.html + n.failureSummary).join('; ')))"
        )
        assert found == [], pane
        await keep(tab, f"{pane}-{scheme}-{width}")


async def test_what_a_model_says_is_text_whatever_it_says(
    serve: Serve, tab: Tab, tmp_path: Path
) -> None:
    write_scripted(tmp_path, [HOSTILE])
    await ask(tab, serve(tmp_path).url, text=HOSTILE)
    for pane in ("Chat", "Prompt", "Sampler", "Events"):
        await go(tab, pane)
        assert await tab.value("document.querySelectorAll('main img, main script').length") == 0
    await go(tab, "Chat")
    await tab.until_text(HOSTILE)
    assert await tab.value("document.title") == "minimsg inspector"


async def test_a_server_that_breaks_a_rule_is_found_out(serve: Serve, tab: Tab) -> None:
    await ask(tab, serve("scripted", "--misbehave", "stop-twice").url)
    await tab.click("[role=tab]", "Events")
    await tab.until_text("message_stop: the stream has ended")


async def test_a_key_is_asked_for_and_kept_for_the_tab(
    serve: Serve, tab: Tab, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"alice": "sk-alice"}))
    url = serve("scripted", "--keys-file", str(keys)).url
    await tab.load(url + "/inspect")
    await tab.until_text("API key of this server")
    await tab.type("input[type=password]", "wrong")
    await tab.press("Enter")
    await tab.until_text("does not know this key")
    await tab.value("document.querySelector('input[type=password]').select()")
    await tab.type("input[type=password]", "sk-alice")
    await tab.press("Enter")
    await tab.until_text("Talk to the model")
    await tab.load(url + "/inspect#Engine")
    await tab.until_text("What the engine is doing now")
    await tab.until_text("--inspect-control")
    tab.complaints = [each for each in tab.complaints if "401" not in each]  # it was meant


async def test_a_notebook_draws_the_same_panes_in_its_frame(tab: Tab, tmp_path: Path) -> None:
    shown = show(from_json(EXAMPLE.read_bytes()))
    notebook, frame = tmp_path / "notebook.html", tmp_path / "frame.html"
    notebook.write_text(f"<!doctype html><meta charset=utf-8>{shown._repr_html_()}")
    frame.write_text(shown.document)
    await tab.load(notebook.as_uri())
    await tab.until("document.querySelector('iframe')?.contentDocument === null")  # a sandbox
    await tab.load(frame.as_uri())
    await tab.until_text("What the model read")
    await tab.click("button", "Sampler")
    await tab.until_text("likeliest are known here")
