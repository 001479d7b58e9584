"""What survives a crash: message batches and uploaded files, for one server at a time.

`Store` (store.py) is the face, all `async`; its `files` is in `files.py`. Rows are in SQLite
(`database.py`, `schema.py`; queries in `batches.py` and `file_rows.py`), the bytes of files
lie beside it (`blobs.py`), and `lock.py` keeps a second server out. Knows tenants by name,
requests and results as bytes; nothing of HTTP, JSON or the engine.
"""

from minimsg.store.records import Batch, File, Item, NewItem, Result, ResultKind
from minimsg.store.store import Store

__all__ = ["Batch", "File", "Item", "NewItem", "Result", "ResultKind", "Store"]
