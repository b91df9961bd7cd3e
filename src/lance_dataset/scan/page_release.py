"""Release of mapped bytes whose values a scan has copied, so that a large table does not fill the memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset.file.container import FileMetadata
from lance_dataset.io.base import InputFile
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.scan.windows import Window
from lance_dataset.types.schema import Field

__all__ = ["Release"]

#: Smaller buffers and parts of buffers are not worth a system call.
_LEAST_BYTES = 64 << 10
#: Number of fragments whose pages are remembered.
_REMEMBERED = 64

#: One row of numbers per large buffer: its rows ``[start, stop)`` in the fragment, its position and its size.
_Places: TypeAlias = "list[tuple[InputFile, NDArray[np.int64]]]"


class Release:
    """Releases the bytes that hold windows of some columns.

    The bytes stay readable: if they are touched again, they are loaded again. So it is harmless that the position of
    values of variable size is estimated, and that another thread may still be reading them.

    Parameters
    ----------
    fields
        The stored columns.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._known: dict[int, _Places] = {}

    def window(self, window: Window) -> None:
        """Release the bytes of all rows from the first to the last of each slice."""
        for part in window.slices:
            if part.ranges and part.fragment.is_mapped:
                self._rows(part.fragment, part.ranges[0][0], part.ranges[-1][1])

    def fragment(self, fragment: FragmentReader) -> None:
        """Release the bytes of all rows of a fragment."""
        if fragment.is_mapped:
            self._rows(fragment, 0, fragment.physical_rows)

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
        if isinstance(file, FileMetadata):  # legacy files release their reads themselves
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
