"""Sets of row addresses that restrict a scan: the rows it may return, and the rows it must not.

The serialized form is that of pylance: the number of fragments, then for each fragment its id, the size of a 32-bit
roaring bitmap of row offsets, and the bitmap. All numbers are little-endian and 32 bits wide. A size of zero stands for
all rows of the fragment. (The portable form of 64-bit roaring bitmaps is a different format.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, InvalidInputError
from lance_dataset.file.container import MAX_ROWS
from lance_dataset.late_dataclass import dataclass
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.row_ranges import RowRanges
from lance_dataset.table.roaring import decode_bitmap, encode_bitmap
from lance_dataset.table.row_addresses import by_fragment, offsets_of

__all__ = ["RowAddressSet", "restricted"]

#: An offset above every row of a fragment.
_END = 1 << 62


@dataclass(frozen=True)
class RowAddressSet:
    """Row addresses by fragment.

    Attributes
    ----------
    fragments
        Row offsets by fragment id (uint32, ascending), or None for all rows.
    """

    fragments: Mapping[int, NDArray[np.uint32] | None]

    @staticmethod
    def of(addresses: Iterable[int]) -> RowAddressSet:
        """Return the set of the given addresses."""
        values = np.array(sorted(set(addresses)), np.uint64)
        return RowAddressSet({owner: offsets_of(values[mine]).astype(np.uint32) for owner, mine in by_fragment(values)})

    @staticmethod
    def decode(data: bytes, name: str) -> RowAddressSet:
        """Read a serialized set. Trailing bytes are ignored; if a fragment occurs twice, the last entry wins.

        Raises
        ------
        InvalidInputError
            The bytes are not a serialized set; the message refers to them as `name`.
        """
        where, position = "", 4
        fragments: dict[int, NDArray[np.uint32] | None] = {}
        try:
            (count,) = struct.unpack_from("<I", data)
            for _ in range(count):
                fragment_id, size = struct.unpack_from("<II", data, position)
                where, position = f" of fragment {fragment_id}", position + 8
                if len(data) - position < size:
                    raise InvalidInputError(f"its bitmap{where} has {size} bytes, but the data ends before that")
                offsets = decode_bitmap(data[position : position + size], MAX_ROWS, name) if size else None
                fragments[fragment_id] = offsets
                position += size
        except struct.error:
            raise InvalidInputError(
                f"{name} is not a set of row addresses made by serialize_row_addrs: it ends after {len(data)} bytes"
            ) from None
        except (InvalidInputError, CorruptFileError) as error:
            raise InvalidInputError(
                f"{name} is not a set of row addresses made by serialize_row_addrs: {error}"
            ) from None
        return RowAddressSet(fragments)

    def encode(self) -> bytes:
        """Serialize the set."""
        parts = [struct.pack("<I", len(self.fragments))]
        for fragment_id, offsets in sorted(self.fragments.items()):
            data = b"" if offsets is None else encode_bitmap(offsets)
            parts.append(struct.pack("<II", fragment_id, len(data)) + data)
        return b"".join(parts)

    def ranges(self, fragment_id: int) -> RowRanges | None:
        """Return the rows of a fragment that are in the set; None for all."""
        offsets = self.fragments.get(fragment_id, np.empty(0, np.uint32))
        return None if offsets is None else RowRanges.of_rows(offsets.astype(np.int64))

    def complement(self, fragment_id: int) -> RowRanges | None:
        """Return the rows of a fragment that are not in the set; None for all."""
        if fragment_id not in self.fragments:
            return None
        inside = self.ranges(fragment_id)
        if inside is None:
            return RowRanges(np.empty(0, np.int64), np.empty(0, np.int64))
        starts, stops = np.append(0, inside.stops), np.append(inside.starts, _END)
        return RowRanges(starts[starts < stops], stops[starts < stops])


def restricted(
    reader: TableReader, request: ScanRequest, allowed: RowAddressSet | None, blocked: RowAddressSet | None
) -> ScanRequest:
    """Return the request restricted to the allowed rows that are not blocked, deleted rows included.

    Rows are given by address, also in tables with stable row ids.
    """
    if allowed is None and blocked is None:
        return request
    # Imported here, so that `import lance_dataset` does not load the pruning.
    from lance_dataset.scan.narrowing import narrowed

    request = narrowed(reader, request)
    positions = range(len(reader.fragments)) if request.fragments is None else request.fragments
    ids = reader.manifest.fragment_list.columns.ids
    rows: dict[int, RowRanges] = {}
    for position in positions:
        fragment_id = int(ids[position])
        found = (
            None if request.rows is None else request.rows[fragment_id],
            None if allowed is None else allowed.ranges(fragment_id),
            None if blocked is None else blocked.complement(fragment_id),
        )
        known = [ranges for ranges in found if ranges is not None]
        everything = RowRanges(np.zeros(1, np.int64), np.full(1, _END))
        ranges = reduce(RowRanges.intersection, known) if known else everything
        if len(ranges.starts):
            rows[fragment_id] = ranges
    kept = tuple(position for position in positions if int(ids[position]) in rows)
    return replace(request, rows=rows, fragments=kept)
