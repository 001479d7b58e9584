"""A real Chromium for tests, driven over its own protocol: no driver to install.

`open_browser` starts one with a profile of its own that ends with it; a `Tab` loads, types,
waits, takes pictures, and keeps whatever the page complained of. Needs `chromium` on the path.
Source: Chrome DevTools Protocol.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",  # tests run as root in containers
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-proxy-server",
    "--remote-debugging-port=0",
)
WAIT_S: Final = 20.0
KEYS: Final = {"Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}


class Tab:
    """One page. `complaints` are its errors and what its policy forbade."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        self._socket = socket
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read())

    async def send(self, method: str, **params: object) -> dict[str, Any]:
        """What the browser answers to a command."""
        number = len(self._waiting) + 1
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        answer = await asyncio.wait_for(self._waiting[number], WAIT_S)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    async def start(self) -> None:
        """Listen to what the page does."""
        for domain in ("Page", "Runtime", "Log"):
            await self.send(f"{domain}.enable")

    async def load(self, url: str) -> None:
        """Go to `url`; what is there by then, `until` says."""
        await self.send("Page.navigate", url=url)

    async def value(self, script: str) -> Any:
        """What an expression is, promises waited for."""
        answer = await self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, script: str) -> Any:
        """The value of an expression once it is true; its page's text is the failure."""
        for _ in range(int(WAIT_S / 0.05)):
            with suppress(AssertionError):  # while a page is being exchanged
                if value := await self.value(script):
                    return value
            await asyncio.sleep(0.05)
        text = await self.value("document.body.innerText")
        raise AssertionError(f"never came: {script}\n{self.complaints}\n{text}")

    async def until_text(self, text: str) -> None:
        """Return once the page shows `text`."""
        await self.until(f"document.body.innerText.includes({json.dumps(text)})")

    async def click(self, selector: str, text: str = "") -> None:
        """Click the first that matches and holds `text`."""
        what = f"[...document.querySelectorAll({json.dumps(selector)})]"
        found = f"{what}.find((e) => e.textContent.includes({json.dumps(text)}))"
        await self.until(f"Boolean({found})")
        await self.value(f"{found}.click()")

    async def type(self, selector: str, text: str) -> None:
        """Focus a field and type into it."""
        await self.until(f"Boolean(document.querySelector({json.dumps(selector)}))")
        await self.value(f"document.querySelector({json.dumps(selector)}).focus()")
        await self.send("Input.insertText", text=text)

    async def press(self, key: str) -> None:
        """Press a key and let it go."""
        code = KEYS[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            await self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **(text if kind == "keyDown" else {}),
            )

    async def resize(self, width: int, height: int = 900) -> None:
        """Show the page in a window of that size."""
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    async def prefer(self, **features: str) -> None:
        """What the reader prefers: `color_scheme="dark"`, `reduced_motion="reduce"`."""
        media = [
            {"name": f"prefers-{name.replace('_', '-')}", "value": value}
            for name, value in features.items()
        ]
        await self.send("Emulation.setEmulatedMedia", features=media)

    async def picture(self) -> bytes:
        """The whole page as it looks now, as PNG."""
        answer = await self.send("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(answer["data"])

    async def _read(self) -> None:
        async for message in self._socket:
            said = message.json()
            if "id" in said:
                self._waiting[said["id"]].set_result(said)
            else:
                self._note(said["method"], said.get("params", {}))

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")


@asynccontextmanager
async def open_browser(folder: Path) -> AsyncIterator[Tab]:
    """A Chromium with one tab; its profile is in `folder`. Skips where there is none."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no chromium on the path")
    process = await asyncio.create_subprocess_exec(
        program,
        *FLAGS,
        f"--user-data-dir={folder}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with aiohttp.ClientSession() as session:
            socket = await session.ws_connect(await _address(folder, session), max_msg_size=0)
            tab = Tab(socket)
            await tab.start()
            yield tab
    finally:
        process.terminate()
        await process.wait()


async def _address(folder: Path, session: aiohttp.ClientSession) -> str:
    """Where its first tab is spoken to: it writes its port into its profile."""
    for _ in range(int(WAIT_S / 0.05)):
        await asyncio.sleep(0.05)
        with suppress(OSError, ValueError):
            port = int((folder / "DevToolsActivePort").read_text().splitlines()[0])
            async with session.get(f"http://127.0.0.1:{port}/json") as response:
                for each in await response.json():
                    if each["type"] == "page":
                        return str(each["webSocketDebuggerUrl"])
    raise AssertionError("chromium opened no page")
