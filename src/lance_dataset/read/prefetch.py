"""Announcements: have the system load parts of mapped files before they are read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.open_together import any_remote, open_together
from lance_dataset.types.schema import Field
from lancecodec import CodecError

if sys.platform != "win32":
    import resource

__all__ = ["Announcements", "announce", "announce_numbers", "open_for_announcing"]

#: Fewer rows of a fragment are not announced: finding out whether they are in memory costs as much as taking them.
_ANNOUNCED_ROWS = 64
#: Fragments of at most this many bytes are not announced: their files are loaded when they are opened.
_SMALL_FRAGMENT = 32 << 10


class Announcements:
    """Announcements of reads of mapped files, made while reads still have to wait for the device.

    Finding out what is in memory takes time too. So after a read that found everything in memory, the next one is not
    announced.
    """

    def __init__(self) -> None:
        self._cold = True

    @contextmanager
    def taking(self, announce_rows: Callable[[], None]) -> Iterator[None]:
        """Return a context in which rows are read; `announce_rows` announces them."""
        before = device_reads()
        try:
            if self._cold:
                with suppress(CodecError, CorruptFileError, UnsupportedError):  # the read reports what is wrong
                    announce_rows()
            yield
        finally:
            self._cold = device_reads() != before


def device_reads() -> int:
    """Return a number that changes when this process reads from a device; 0 if the system does not count that."""
    if sys.platform == "win32":
        return 0
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_inblock + usage.ru_majflt


def announce(fragment: FragmentReader, fields: Iterable[Field], rows: NDArray[np.int64]) -> None:
    """Have the system load what a take of many rows reads from the mapped files of a fragment, if not in memory.

    Parameters
    ----------
    fragment
        The fragment.
    fields
        Stored columns to be taken.
    rows
        Physical rows, in any order.
    """
    if len(rows) < _ANNOUNCED_ROWS or fragment.num_bytes <= _SMALL_FRAGMENT or not fragment.is_mapped:
        return
    ascending = np.sort(rows)
    for field in fields:
        fragment.column(field).will_need(ascending)
    fragment.expect_many_rows()


def open_for_announcing(fragments: Sequence[FragmentReader], fields: Sequence[Field]) -> None:
    """Open files that are on other machines at the same time, before `announce` asks whether they are mapped."""
    if len(fragments) > 1 and any_remote(fragments):
        open_together(fragments, fields)


def announce_numbers(
    fragments: Sequence[FragmentReader], starts: NDArray[np.int64], fields: Sequence[Field], rows: NDArray[np.int64]
) -> None:
    """Do the same for live rows by number; `starts` are the live rows before each fragment, then those of all."""
    if len(rows) < _ANNOUNCED_ROWS:
        return
    ascending = np.sort(rows)
    cuts = np.searchsorted(ascending, starts)
    positions = np.flatnonzero(np.diff(cuts) >= _ANNOUNCED_ROWS).tolist()
    open_for_announcing([fragments[position] for position in positions], fields)
    for position in positions:
        mine = ascending[cuts[position] : cuts[position + 1]] - starts[position]
        announce(fragments[position], fields, fragments[position].physical(mine))
