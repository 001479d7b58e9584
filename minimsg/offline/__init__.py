"""Without a server: message batches, a file of requests in, a file of results out; and records.

`requests.py` reads the one and `results.py` writes the other; both know files and nothing of
models. `answering.py` has the engine, `run.py` keeps it full in this process and `on_ray.py`
those of other processes and machines. The way of one request is the server's own
(`server/batch_item.py`). `replay.py` computes a recorded request again, `compared.py` tells what
is the same.
"""
