"""A stand-in for `llama-server`: its flags, its /health, and the answers of `stand_in.py`.

To be run as a module, from the top of the checkout.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from aiohttp import web

from .stand_in import StandIn


async def health(request: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


def main() -> None:
    parser = argparse.ArgumentParser()
    for flag in ("-m", "-t", "-np", "-c", "--host", "--port"):
        parser.add_argument(flag, required=True)
    flags = vars(parser.parse_args())
    assert Path(flags["m"]).is_file()
    app = StandIn().app()
    app.router.add_get("/health", health)
    web.run_app(app, host=flags["host"], port=int(flags["port"]), print=None)


if __name__ == "__main__":
    main()
