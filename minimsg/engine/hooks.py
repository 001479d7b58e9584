"""What a sequence's hook is told, and when: each id once, in order, as it is committed.

Where a step samples several ids of a sequence, its hook takes in each of them but the last
before it is committed, since the next is chosen by what the hook then allows. What it was
told ahead in a step that came to nothing is taken back. Hooks fail alone: what they raise
ends their own request.
"""

from __future__ import annotations

from minimsg.engine.types import Sequence


def advance(sequence: Sequence, id: int) -> str | None:
    """An id is committed. What went wrong, if the hook had to be told and raised."""
    if sequence.num_ahead:
        sequence.num_ahead -= 1
        return None
    return _tell(sequence, id)


def advance_ahead(sequence: Sequence, id: int) -> str | None:
    """An id will be committed, unless the step comes to nothing; as `advance`."""
    sequence.num_ahead += 1
    return _tell(sequence, id)


def take_back(sequence: Sequence, num_ahead: int) -> None:
    """Leave the hook told of `num_ahead` ids that are not committed. Raises what it raises."""
    surplus, sequence.num_ahead = sequence.num_ahead - num_ahead, num_ahead
    if surplus and sequence.request.hook:
        sequence.request.hook.rollback(surplus)


def _tell(sequence: Sequence, id: int) -> str | None:
    if sequence.request.hook is None:
        return None
    try:
        sequence.request.hook.advance(id)
    except Exception as error:  # a grammar's failure ends its own request, no neighbour's
        return f"{type(error).__name__}: {error}"
    return None
