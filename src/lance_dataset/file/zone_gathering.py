"""Bounds of the values of a column, gathered as it is written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.stored_bounds import KEY_BYTES, TEXT_KIND, StoredBounds
from lance_dataset.file.value_order import key_order
from lancecodec import zones

__all__ = ["ZoneGathering", "contradicted_row"]

#: Number of rows of the smallest zones.
_ZONE_ROWS = 1 << 13
#: Rows at the start of a file that tell whether the bounds of the others are worth a pass over them.
_SAMPLED_ROWS = 4 * _ZONE_ROWS
#: Zones that overlap more than this share of all zones exclude so little that one zone is enough.
_MOST_OVERLAP = 0.75


class ZoneGathering:
    """Bounds of the values of a column, as long as its first zones exclude each other, or have one value only.

    Parameters
    ----------
    arrow_type
        Type of the values, which `supports`.

    Attributes
    ----------
    width
        Bytes of a key.
    """

    def __init__(self, arrow_type: pa.DataType) -> None:
        order = key_order(arrow_type)
        self._kind = TEXT_KIND if order is None else order
        self._bits = 0 if order is None else arrow_type.bit_width
        self._is_wide = order is None and is_wide(arrow_type)
        self.width = KEY_BYTES if order is None else self._bits // 8
        self._bounds: zones.ZoneBounds | None = zones.ZoneBounds(_ZONE_ROWS)

    @staticmethod
    def supports(arrow_type: pa.DataType) -> bool:
        """Return True if values of a type have bounds."""
        return key_order(arrow_type) is not None or is_binary_like(arrow_type)

    def add(self, array: pa.Array) -> None:
        """Add the values that follow."""
        bounds = self._bounds
        if bounds is None:
            return
        if bounds.num_rows < _SAMPLED_ROWS < bounds.num_rows + len(array):
            sample = _SAMPLED_ROWS - bounds.num_rows
            self.add_to(bounds, array.slice(0, sample))
            if not _is_worthwhile(bounds):
                self._bounds = None
                return
            array = array.slice(sample)
        self.add_to(bounds, array)

    def add_to(self, bounds: zones.ZoneBounds, array: pa.Array) -> None:
        """Add values to given bounds."""
        buffers, first, count = array.buffers(), array.offset, len(array)
        validity = buffers[0] if array.null_count else None
        if self._bits:
            width = self._bits // 8
            values = buffers[1].slice(first * width, count * width)
            bounds.add_fixed(values, self._bits, self._kind, validity, first)
        else:
            size = 8 if self._is_wide else 4
            offsets = buffers[1].slice(first * size, (count + 1) * size)
            bounds.add_texts(buffers[2] or b"", offsets, self._is_wide, validity, first)

    def finish(self) -> zones.ZoneBounds | None:
        """Return the bounds with zones of a useful size; None if they exclude too little."""
        bounds = self._bounds
        if bounds is None or not bounds.num_rows:
            return None
        if 1 < bounds.num_rows <= _SAMPLED_ROWS and not _is_worthwhile(bounds):
            while len(bounds) > 1:
                bounds.halve()
        return bounds

    def stored(self, bounds: zones.ZoneBounds) -> StoredBounds:
        """Return bounds in the form in which files have them."""
        low, high, flags = written(bounds)
        return StoredBounds(self._kind, self.width, bounds.zone_rows, bounds.num_rows, low, high, flags)


def contradicted_row(stored: StoredBounds, array: pa.Array, start: int) -> int | None:
    """Return the first row of a zone whose bounds do not hold for the values; None if all do.

    Parameters
    ----------
    stored
        Bounds of a column.
    array
        Values of the column, of the type of the bounds.
    start
        Row of the first value.
    """
    at = 0
    while at < len(array):
        zone = (start + at) // stored.zone_rows
        rows = min((zone + 1) * stored.zone_rows - start - at, len(array) - at)
        gathered = ZoneGathering(array.type)
        bounds = zones.ZoneBounds(rows)
        gathered.add_to(bounds, array.slice(at, rows))
        low, high, flags = (part[0] for part in written(bounds))
        if flags & ~stored.flags[zone]:
            return zone * stored.zone_rows
        if flags & zones.BOUNDED:
            known = stored.low[zone], stored.high[zone]
            least, most, low, high = (tuple(keys[::-1].tolist()) for keys in (*known, low, high))
            if low < least or high > most:
                return zone * stored.zone_rows
        at += rows
    return None


def written(bounds: zones.ZoneBounds) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint8]]:
    """Return the low and the high keys of zones as rows of two words, and the flags."""
    count = len(bounds)
    low, high, flags = np.empty((count, 2), np.uint64), np.empty((count, 2), np.uint64), np.empty(count, np.uint8)
    bounds.write(low.data, high.data, flags.data)
    return low, high, flags


def _is_worthwhile(bounds: zones.ZoneBounds) -> bool:
    """Return True if a few zones exclude each other, or all have the same value; in plain Python, which is fast."""
    low, high, flags = written(bounds)
    lows, highs, marks = low[:, ::-1].tolist(), high[:, ::-1].tolist(), flags.tolist()
    if len(set(marks)) > 1 or not marks[0] & zones.BOUNDED:
        return True
    if min(lows) == max(highs):
        return True
    shared = sum(
        low <= other_high and other_low <= high
        for low, high in zip(lows, highs, strict=True)
        for other_low, other_high in zip(lows, highs, strict=True)
    )
    return shared <= _MOST_OVERLAP * len(marks) ** 2
