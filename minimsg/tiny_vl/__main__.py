"""`python -m minimsg.tiny_vl FOLDER`: train the model again, in twenty minutes on two cores."""

from __future__ import annotations

import sys
from pathlib import Path

from minimsg.tiny_vl.training import Training

if len(sys.argv) != 2:
    sys.exit(__doc__)
training = Training(Path(sys.argv[1]))
for progress in training:
    if progress.step % 50 == 0:
        print(progress, flush=True)
training.save()
