"""Citations: which passages of a request's documents the sentences of a reply come from.

A local model does not say where it has something from, so each sentence is compared with
what was there to read. `sentences.py` cuts texts, `passages.py` finds what can be cited,
`words.py` and `attribution.py` say what a sentence was taken from, `citer.py` puts that into
the stream of segments, and `places.py` tells the engine where the passages stand in the
prompt; `citing.py` has all that is found out before a reply begins. Knows nothing of torch or
HTTP.
"""
