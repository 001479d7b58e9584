"""The latest values of each tenant, in memory and within bounds.

A tenant's values are for that tenant only. Bounded: of each tenant so many values and bytes,
the least recently used go first, and so many tenants. Lives on the event loop; knows nothing
of what the values are: `remembered.py`, `past_prompts.py`, `records.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from math import inf
from typing import Generic, TypeVar

T = TypeVar("T")


class Latest(Generic[T]):
    """Values by tenant and key; `size` tells about what one takes in memory."""

    def __init__(
        self,
        size: Callable[[T], int],
        *,
        max_bytes: int,
        max_tenants: int,
        max_values: float = inf,
    ) -> None:
        self._size = size
        self._max_bytes = max_bytes
        self._max_tenants = max_tenants
        self._max_values = max_values
        self._tenants: OrderedDict[str, OrderedDict[str, T]] = OrderedDict()

    def of(self, tenant: str) -> Mapping[str, T]:
        """What there is of `tenant`, the latest last."""
        return self._tenants.get(tenant, {})

    def keep(self, tenant: str, key: str, value: T) -> None:
        """One more, or another one for `key`; what is too much then goes."""
        own = self._tenants.setdefault(tenant, OrderedDict())
        self._tenants.move_to_end(tenant)
        own[key] = value
        own.move_to_end(key)
        while len(own) > self._max_values or sum(map(self._size, own.values())) > self._max_bytes:
            own.popitem(last=False)
        if len(self._tenants) > self._max_tenants:
            self._tenants.popitem(last=False)

    def touch(self, tenant: str, key: str) -> None:
        """The value of `key` was used, if it is still there: it goes later."""
        own = self._tenants.get(tenant)
        if own and key in own:
            own.move_to_end(key)
