"""Memory for random access to files that are not mapped: blocks of the file, at their offsets."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import pyarrow as pa

from lance_dataset.errors import InvalidInputError
from lance_dataset.io.base import InputFile
from lance_dataset.locks import SharedLock
from lance_dataset.memory import MemoryUse, share_of_memory
from lancecodec import blocks
from lancecodec.blocks import FileBlocks

__all__ = ["KnownBlocks"]

_Fetch: TypeAlias = "Callable[[Sequence[tuple[int, int]]], list[pa.Buffer]]"

_VARIABLE = "LANCE_BLOCK_CACHE"
#: Bytes of blocks of all files together.
_DEFAULT_LIMIT = 256 << 20
#: A file must have one object for its blocks, as pages refer to the addresses in it.
_lock = SharedLock()


class KnownBlocks:
    """The blocks of one file, made on first use. They live as long as a page of the file refers to them."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: weakref.ref[FileBlocks] | None = None

    def get(
        self,
        source: InputFile,
        lend: Callable[[], int] | None = None,
        give_back: Callable[[int, int], None] | None = None,
        *,
        fetch: _Fetch | None = None,
    ) -> FileBlocks | None:
        """Return the blocks, None if the system or the limit does not allow them.

        Parameters
        ----------
        source
            The file.
        lend, give_back
            See `FileBlocks`.
        fetch
            Function that reads ranges; None for `InputFile.read_ranges`.
        """
        known = None if self._made is None else self._made()
        if known is not None:
            return known
        if not _apply_limit():
            return None
        with _lock:
            known = None if self._made is None else self._made()
            if known is None:
                try:
                    known = FileBlocks(source.size, fetch or source.read_ranges, lend, give_back)
                except MemoryError:  # no address space: a limit of the process, or a system that cannot reserve it
                    return None
                self._made = weakref.ref(known)
        return known


def _apply_limit() -> int:
    """Set the limit of memory for all files, and return it: that of the operation which opens a file now."""
    own = _limit_of_process()
    limit = share_of_memory(_DEFAULT_LIMIT, MemoryUse.CACHE) if own is None else own
    _set_limit(limit)
    return limit


@lru_cache(maxsize=1)
def _limit_of_process() -> int | None:
    text = os.environ.get(_VARIABLE)
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        raise InvalidInputError(f"{_VARIABLE} must be a number of bytes, not {text!r}")
    return int(text)


@lru_cache(maxsize=1)
def _set_limit(limit: int) -> None:
    """Set a limit, unless it is the one that was set last."""
    blocks.set_limit(limit)
