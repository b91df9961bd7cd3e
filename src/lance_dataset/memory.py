"""Limit of the memory that operations use: how much of it windows, pages, temporary rows and caches get.

The limit is that of the innermost `limited_memory`, else the environment variable ``LANCE_MEMORY_LIMIT``, which is
read once, else there is none. Operations look at it when they start, in the thread that starts them. Each kind of
memory gets a share, so that what an operation needs at once fits into the limit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from enum import Enum
from functools import cache

from lance_dataset.errors import InvalidInputError, OutOfRangeError

__all__ = ["LEAST_LIMIT", "MemoryUse", "checked_limit", "limited_memory", "memory_limit", "share_of_memory"]

#: The least limit: what a scan on one thread, or a writer, needs for a few columns.
LEAST_LIMIT = 16 << 20

_VARIABLE = "LANCE_MEMORY_LIMIT"
_limit: ContextVar[int | None] = ContextVar("memory_limit", default=None)


class MemoryUse(Enum):
    """Kind of memory."""

    WINDOWS = "decoded rows of a scan, with those that wait for the consumer"
    PAGES = "rows of a writer that wait for their page"
    BATCHES = "rows that are rewritten together"
    TEMPORARY = "rows that go to temporary files if they are more"
    KEYS = "keys that are joined at once"
    INDEX = "rows of an index that is built"
    CACHE = "what a cache keeps"


#: Shares of the limit. An operation needs several kinds at once, and allocators keep about as much as is in use.
_SHARES = {
    MemoryUse.WINDOWS: 1 / 8,
    MemoryUse.PAGES: 1 / 16,
    MemoryUse.BATCHES: 1 / 32,
    MemoryUse.TEMPORARY: 1 / 8,
    MemoryUse.KEYS: 1 / 4,
    MemoryUse.INDEX: 1 / 4,
    MemoryUse.CACHE: 1 / 16,
}


def memory_limit() -> int | None:
    """Return the limit in bytes, None if there is none.

    Raises
    ------
    InvalidInputError, OutOfRangeError
        ``LANCE_MEMORY_LIMIT`` is not a number of bytes, or too small.
    """
    found = _limit.get()
    if found is not None:
        return found
    return _limit_of_process()


@cache
def _limit_of_process() -> int | None:
    text = os.environ.get(_VARIABLE)
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        raise InvalidInputError(f"{_VARIABLE} must be a number of bytes, not {text!r}")
    return checked_limit(int(text), _VARIABLE)


def checked_limit(limit: int, name: str = "memory_limit") -> int:
    """Return a limit. Raise TypeError unless it is an integer, OutOfRangeError if it is less than `LEAST_LIMIT`."""
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise TypeError(f"{name} must be a number of bytes, not {limit!r}")
    if limit < LEAST_LIMIT:
        raise OutOfRangeError(f"{name} must be at least {LEAST_LIMIT:,} bytes, not {limit:,}")
    return limit


def limited_memory(limit: int | None) -> AbstractContextManager[None]:
    """Limit the memory of operations that start inside of the ``with`` block; None keeps the limit that there is.

    Parameters
    ----------
    limit
        Bytes, at least `LEAST_LIMIT`.
    """
    return nullcontext() if limit is None else _limited(checked_limit(limit))


@contextmanager
def _limited(limit: int) -> Iterator[None]:
    token = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(token)


def share_of_memory(usual: int, use: MemoryUse, limit: int | None = None) -> int:
    """Return how many bytes a kind of memory may take.

    Parameters
    ----------
    usual
        Bytes without a limit; never more.
    use
        The kind.
    limit
        Limit of the operation; None for `memory_limit`.
    """
    most = memory_limit() if limit is None else limit
    return usual if most is None else min(usual, int(most * _SHARES[use]))
