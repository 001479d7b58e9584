"""A server that does one thing wrong, on purpose: for those who test clients, and suites.

`proxy.py` stands before a Messages server and passes everything on. A `Mutant`
(`mutant.py`) changes requests, answers or events on their way, always in the same one
respect; those that there are stand in `requests.py`, `answers.py`, `events.py`, `errors.py`
and `objects.py`. `faults.py` are failures that real servers have now and then. Knows the API,
never who is asking: it does not import the suite that is to find them.
"""
