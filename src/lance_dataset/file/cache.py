"""Cache of decoded parts of a column that are needed again for other rows of the same pages."""

from __future__ import annotations

import itertools
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, cast

__all__ = ["EXPANDED", "Decoded", "PageCache", "expanded_bytes", "is_expanded"]

T = TypeVar("T")

_keys = itertools.count()
#: Lock of all caches. One is enough because it is never held for long, and one lock for each of thousands of caches
#: would cost memory. Callbacks that make or measure values, and destructors of values, run without it.
_lock = threading.RLock()


def _renew_lock() -> None:
    """Replace the lock in a forked child, where the thread that held it does not exist."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class PageCache:
    """Least recently used values, limited by size in bytes; the newest value stays whatever its size.

    Parameters
    ----------
    max_bytes
        Maximum number of bytes kept beside the newest value.
    """

    __slots__ = ("_bytes", "_entries", "_max_bytes", "key")

    def __init__(self, max_bytes: int = 16 << 20) -> None:
        #: Unique number of the cache, for keys of a cache that several share. It keeps nothing alive.
        self.key = next(_keys)
        self._max_bytes = max_bytes
        # Created on first use: every open column has a cache, and few use it.
        self._entries: OrderedDict[Hashable, tuple[object, int]] | None = None
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """Return the value of `key`, made on a miss; two threads that miss together may both make it."""
        with _lock:
            entries = self._entries
            entry = None if entries is None else entries.get(key)
            if entries is not None and entry is not None:
                entries.move_to_end(key)
                return cast("T", entry[0])
        value = make()
        bytes_ = size(value)
        with _lock:
            if self._entries is None:
                self._entries = OrderedDict()
            entries, dropped = self._entries, []
            if key not in entries:
                entries[key] = value, bytes_
                self._bytes += bytes_
            while self._bytes > self._max_bytes and len(entries) > 1:
                dropped.append(entries.popitem(last=False)[1])
                self._bytes -= dropped[-1][1]
        return value


class Decoded(Generic[T]):
    """Decoded part of a page. It stays, unless it takes many times its stored bytes.

    Parameters
    ----------
    size
        Measures the part in bytes.
    stored
        Bytes of the part in the file.
    """

    __slots__ = ("_key", "_size", "_stored", "_value")

    def __init__(self, size: Callable[[T], int], stored: int) -> None:
        self._size = size
        self._stored = stored
        self._value: T | None = None
        #: Key of the value in `EXPANDED`, once it is known to belong there.
        self._key: int | None = None

    def get(self, make: Callable[[], T]) -> T:
        """Return the part, made on first use. The function is not kept: it would refer to the owner of this object."""
        if self._value is not None:
            return self._value
        if self._key is not None:
            return EXPANDED.get(self._key, make, self._size)
        value = make()
        if is_expanded(self._size(value), self._stored):
            self._key = next(_keys)
            return EXPANDED.get(self._key, lambda: value, self._size)
        self._value = value
        return value

    @property
    def stays(self) -> bool:
        """True if the part was decoded and stays."""
        return self._value is not None


#: Decoded parts of pages of all open files that take many times their bytes, see `is_expanded`.
EXPANDED = PageCache(16 << 20)
_MAX_EXPANSION = 8
_SMALL_PART = 64 << 10


def is_expanded(size: int, stored: int) -> bool:
    """Return whether a decoded part of a page is too large for its stored bytes to stay as long as its file is open."""
    return size > expanded_bytes(stored)


def expanded_bytes(stored: int) -> int:
    """Return the maximum bytes of a decoded part of a page that stays as long as its file is open."""
    return _MAX_EXPANSION * stored + _SMALL_PART
