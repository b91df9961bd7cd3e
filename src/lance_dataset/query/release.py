"""Letting go of mapped bytes whose values a scan has copied, so that a large table does not fill the memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset.file.container import FileMetadata
from lance_dataset.io.base import InputFile
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.query.windows import Window
from lance_dataset.schema import Field

__all__ = ["Release"]

#: Buffers and parts of them that are smaller than this are not worth a system call.
_LEAST_BYTES = 64 << 10
#: Fragments whose pages are remembered.
_REMEMBERED = 64

#: A row of numbers per large buffer: the rows ``[start, stop)`` of the fragment it is about, its position and its size.
_Places: TypeAlias = "list[tuple[InputFile, NDArray[np.int64]]]"


class Release:
    """Lets go of what windows of some columns are stored in.

    The bytes stay readable; who touches them again has them loaded again. So it does no harm that where values of
    variable size lie is a guess, nor that another thread still reads them.

    Parameters
    ----------
    fields
        Stored columns.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._known: dict[int, _Places] = {}

    def window(self, window: Window) -> None:
        """Let go of the bytes of all rows from the first to the last of each slice."""
        for part in window.slices:
            if part.ranges and part.fragment.is_mapped:
                self._rows(part.fragment, part.ranges[0][0], part.ranges[-1][1])

    def _rows(self, fragment: FragmentReader, start: int, stop: int) -> None:
        places = self._known.get(fragment.fragment.id)
        if places is None:
            if len(self._known) >= _REMEMBERED:
                self._known = {}
            places = self._known[fragment.fragment.id] = _places(fragment, self._fields)
        for source, buffers in places:
            touched = buffers[(buffers[:, 0] < stop) & (buffers[:, 1] > start)]
            for first, last, position, size in touched.tolist():
                low = size * (max(start, first) - first) // (last - first)
                high = size * (min(stop, last) - first) // (last - first)
                if high - low >= _LEAST_BYTES:
                    source.discard(position + low, high - low)


def _places(fragment: FragmentReader, fields: Sequence[Field]) -> _Places:
    columns = {}
    for node in (node for field in fields for node in field.walk()):
        file, index = fragment.stored(node.id) or (None, 0)
        if isinstance(file, FileMetadata):  # legacy files let go of what they read themselves
            columns[id(file), index] = file, index
    found: _Places = []
    for file, index in columns.values():
        pages = file.column(index).pages
        # pages of 2.0 count the items of lists
        scale = fragment.physical_rows / max(sum(page.length for page in pages), 1)
        rows: list[tuple[int, int, int, int]] = []
        done = 0
        for page in pages:
            first, last = int(done * scale), int((done + page.length) * scale)
            done += page.length
            if first < last:
                rows.extend((first, last, *buffer) for buffer in page.buffers if buffer[1] >= _LEAST_BYTES)
        if rows:
            found.append((file.source, np.array(rows, np.int64)))
    return found
