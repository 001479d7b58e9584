"""Optional dependencies: whether they are there, and the command that adds them."""

from __future__ import annotations

from importlib.util import find_spec

from minimsg.errors import ConfigError


def require(package: str, *, extra: str, purpose: str) -> None:
    """Raise ConfigError with the installing command unless `package` can be imported."""
    if find_spec(package) is None:
        raise ConfigError(
            f"{purpose}, install what is missing: pip install 'minimsg[{extra}]' "
            f"(there is no module {package!r})"
        )
