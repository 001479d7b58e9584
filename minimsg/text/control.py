"""Text that others have written, made fit for a terminal: nothing in it drives one."""

from __future__ import annotations

import re
from typing import Final

# C0 and C1 controls, DEL, line and paragraph separators, and the marks that turn text round.
CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def escape(text: str) -> str:
    """Control characters as `\\xNN` or `\\uNNNN`."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
