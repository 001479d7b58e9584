"""A server that does one thing wrong, on purpose: for those who test clients, and suites.

`proxy.py` stands before a Messages server and passes everything on. A `Mutant`
(`mutant.py`) changes requests, answers or events on their way, always in the same one
respect. Those that there are, by what they change: of a request `requests.py`, `turns.py`,
`checks.py`, `wishes.py`; of a plain answer `answers.py`, `blocks.py`, `cited.py`, `usage.py`,
`errors.py`, `objects.py`; of a stream `order.py`, `envelopes.py`, `deltas.py`,
`cited_streams.py`, `frames.py`. `faults.py` are failures that real servers have now and then.
Knows the API, never who is asking: it does not import the suite that is to find them.
"""
