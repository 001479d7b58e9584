"""`python -m minimsg.tiny_vl FOLDER`: train the model again, on two cores in under 20 minutes."""

from __future__ import annotations

import sys
from pathlib import Path

from minimsg.tiny_vl.training import train

if __name__ == "__main__":  # the processes of the team import this file, too
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    train(Path(sys.argv[1]))
