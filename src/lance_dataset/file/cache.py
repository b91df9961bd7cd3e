"""What was decoded of a column and is needed again for other rows of the same pages."""

from __future__ import annotations

import itertools
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar, cast, overload

__all__ = ["PageCache", "lazy"]

T = TypeVar("T")

_keys = itertools.count()
#: Of all caches, none of which is asked for long: there are thousands of them, and each lock is an object. What makes
#: values, measures them, or ends with them, is called without it.
_lock = threading.RLock()


def _renew_lock() -> None:
    """In a forked child, where nobody releases what another thread held."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class PageCache:
    """The values asked for last, within a number of bytes; the newest stays whatever its size.

    Parameters
    ----------
    max_bytes
        Bytes kept at most beside the newest value.
    """

    __slots__ = ("_bytes", "_entries", "_max_bytes", "key")

    def __init__(self, max_bytes: int = 16 << 20) -> None:
        #: What no other cache has, for keys of a cache that several share; it keeps nothing alive.
        self.key = next(_keys)
        self._max_bytes = max_bytes
        # made when there is something to keep: every open column has a cache, and few use it
        self._entries: OrderedDict[Hashable, tuple[object, int]] | None = None
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """The value of `key`, made where it is not there: perhaps twice if two threads ask at once."""
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


class lazy(Generic[T]):
    """A property that is computed when it is first asked for, and then an attribute.

    As `functools.cached_property`, which before Python 3.12 has a lock for all objects of a class: threads that open
    pages of different files would wait for each other's reads. Without one, two threads may both compute a value; all
    of them get the one that was there first.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, owner: None, kind: type[Any] | None = None) -> lazy[T]: ...
    @overload
    def __get__(self, owner: object, kind: type[Any] | None = None) -> T: ...
    def __get__(self, owner: object | None, kind: type[Any] | None = None) -> T | lazy[T]:
        """The value; only the first time, as the attribute is found before this is asked."""
        if owner is None:
            return self
        return vars(owner).setdefault(self._name, self._compute(owner))
