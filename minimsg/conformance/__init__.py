"""Does a server speak the Messages API? Cases as data, and what runs them against any URL.

Open `cases/` first: TOML files, one a theme, each case with its rule and where that stands.
`case.py` says what a case may hold, `catalog.py` reads them. One case goes through
`request.py` (steps to bytes), `wire.py` (bytes both ways, with times), `reply.py` (what came
back) and `asserts.py` (what should have); `runner.py` does that for all of them. Reports are
made from `verdict.py` alone. Knows neither torch nor our server.
"""
