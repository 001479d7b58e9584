"""Start the command of the README's first minute, ask it one question, stop it.

Standard library only: it runs in an environment that has no test tools yet.
Usage: python .ci/first_minute.py "minimsg serve"
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request

command = [*shlex.split(sys.argv[1]), "--port", "0"]
print("+", shlex.join(command), flush=True)
server = subprocess.Popen(
    command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ
)
assert server.stdout is not None
signal.alarm(900)  # a server that never says its address ends this script
url = None
for line in server.stdout:
    print(line, end="", flush=True)
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    if found:
        url = found.group()
        break
if url is None:
    sys.exit(f"the server ended without printing its address, exit code {server.wait()}")

with urllib.request.urlopen(f"{url}/v1/models", timeout=60) as response:
    model = json.load(response)["data"][0]["id"]
body = {
    "model": model,
    "max_tokens": 32,
    "temperature": 0,
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
}
request = urllib.request.Request(
    f"{url}/v1/messages",
    data=json.dumps(body).encode(),
    headers={"content-type": "application/json", "anthropic-version": "2023-06-01"},
)
with urllib.request.urlopen(request, timeout=300) as response:
    message = json.load(response)
print(json.dumps(message, ensure_ascii=False), flush=True)
server.send_signal(signal.SIGTERM)
rest, _ = server.communicate(timeout=60)
print(rest, flush=True)
if server.returncode != 0:
    sys.exit(f"the server left with exit code {server.returncode} after SIGTERM")
if "Paris" not in message["content"][0]["text"]:
    sys.exit("the reply does not name Paris")
