"""What was decoded of a column and is needed again for other rows of the same pages."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar, cast

__all__ = ["PageCache"]

T = TypeVar("T")


class PageCache:
    """The values asked for last, within a number of bytes; the newest stays whatever its size.

    Parameters
    ----------
    max_bytes
        Bytes kept at most beside the newest value.
    """

    def __init__(self, max_bytes: int = 16 << 20) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """The value of `key`, made where it is not there: perhaps twice if two threads ask at once."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                return cast("T", entry[0])
        value = make()
        with self._lock:
            if key not in self._entries:
                self._entries[key] = value, size(value)
                self._bytes += self._entries[key][1]
            while self._bytes > self._max_bytes and len(self._entries) > 1:
                self._bytes -= self._entries.popitem(last=False)[1][1]
        return value
