"""Posting lists in use: those that were used last, up to a number of bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from lance_dataset.locks import SharedLock

__all__ = ["TermCache"]

#: Bytes of memory.
_ROOM = 128 << 20


class TermCache:
    """The objects that were used last. Any thread may use it."""

    def __init__(self, room: int = _ROOM) -> None:
        self._room = room
        self._held = 0
        self._items: OrderedDict[Any, Any] = OrderedDict()
        self._lock = SharedLock()

    def get(self, key: Any) -> Any:
        """Return an object, None if it is not here."""
        with self._lock:
            found = self._items.get(key)
            if found is not None:
                self._items.move_to_end(key)
            return found

    def put(self, key: Any, item: Any) -> None:
        """Keep an object, which has its number of bytes, and drop what was not used for the longest time."""
        with self._lock:
            if key in self._items or item.nbytes > self._room:
                return
            self._items[key] = item
            self._held += item.nbytes
            while self._held > self._room:
                _, dropped = self._items.popitem(last=False)
                self._held -= dropped.nbytes
