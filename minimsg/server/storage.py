"""Where a server keeps its message batches and files, by its settings."""

from __future__ import annotations

from minimsg.config import ServerConfig
from minimsg.hub.store import default_data_dir
from minimsg.store import Store


def store_of(config: ServerConfig) -> Store:
    """The store of a server with `config`, not open yet."""
    folder = (config.data_dir or default_data_dir()) / "store"
    return Store(None if config.no_store else folder)


async def check_store(config: ServerConfig) -> None:
    """Raise ConfigError for a store that could not be opened now; what is not there can be."""
    store = store_of(config)
    if store.is_there:
        await store.open()
        await store.close()
