"""Sets of row addresses in index files: roaring bitmaps by the upper half of the address.

Files contain one set for each value of a column. There may be millions of sets with few rows each, so many are read and
written together. Every count and length is checked, because the bytes come from files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_dataset.errors import CorruptFileError
from lance_dataset.table.roaring import MAX_ARRAY, NO_RUNS, WITH_RUNS, bitmap_size
from lancecodec.search import row_sets

__all__ = [
    "EMPTY_ROW_SET",
    "ROW_SETS",
    "TREEMAPS",
    "SetForm",
    "SetPart",
    "SetsLayout",
    "bounds_of_sets",
    "decode_sets",
    "encode_groups",
    "encode_parts",
    "encode_sets",
    "layout_of_sets",
    "sets_from",
]

_Ints = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]

_ENTRY_KEY = 4
_BITMAP_HEAD = 8
_CONTAINER_HEAD = 8
_BITSET_BYTES = 8192
_MAX_CONTAINERS = 1 << 16
_HIGH = np.uint64(32)


@dataclass(frozen=True)
class SetForm:
    """Layout of the bitmaps of a set.

    Attributes
    ----------
    name
        Name for error messages.
    count_bytes
        Bytes of the number of bitmaps, which comes first.
    sized
        True if each bitmap has its size before it. A size of 0 stands for all rows of a fragment.
    """

    name: str
    count_bytes: int
    sized: bool

    @property
    def entry_head(self) -> int:
        """Bytes before each bitmap."""
        return _ENTRY_KEY + (4 if self.sized else 0)


#: Form in bitmap, label-list and R-tree indices, and of null rows.
ROW_SETS: Final = SetForm("row set", 4, True)
#: A row set without rows.
EMPTY_ROW_SET: Final = bytes(4)
#: The 64-bit form of roaring bitmaps, used in n-gram indices.
TREEMAPS: Final = SetForm("64-bit roaring bitmap", 8, False)


@dataclass(frozen=True)
class SetPart:
    """The rows of one fragment in a set.

    Attributes
    ----------
    key
        Upper half of the addresses, which is the id of the fragment.
    bitmap
        Roaring bitmap of the lower halves. None for all rows of the fragment.
    """

    key: int
    bitmap: bytes | None


class SetsLayout:
    """Positions of the bitmaps of many sets.

    Attributes
    ----------
    data : uint8[n]
        The bytes.
    form : SetForm
        Form of the sets.
    owners : int64[m]
        Number of the set of each bitmap. Ascending.
    keys : int64[m]
        Upper half of its addresses.
    starts, stops : int64[m]
        Range of its bytes. Empty for all rows of a fragment.
    dense : bool[sets]
        Mask of the sets with bitmaps that may represent many more rows than they have bytes.
    """

    def __init__(self, data: _Bytes, form: SetForm, sets: int, entries: list[tuple[_Ints, ...]], dense: _Ints) -> None:
        self.data = data
        self.form = form
        columns = zip(*entries, strict=True) if entries else iter([()] * 4)
        parts = [np.concatenate([np.empty(0, np.int64), *column]) for column in columns]
        order = np.argsort(parts[0], kind="stable")  # reading goes round by round, one bitmap of each set
        self.owners, self.keys, self.starts, self.stops = (part[order] for part in parts)
        self.dense = np.zeros(sets, bool)
        self.dense[dense] = True

    def parts(self, number: int) -> Iterator[SetPart]:
        """Yield the bitmaps of one set, by ascending key."""
        low, high = np.searchsorted(self.owners, [number, number + 1])
        for entry in range(low, high):
            start, stop = int(self.starts[entry]), int(self.stops[entry])
            yield SetPart(int(self.keys[entry]), self.data[start:stop].tobytes() if stop > start else None)


def bounds_of_sets(sets: pa.LargeBinaryArray) -> _Ints:
    """Return the positions in an array's buffer at which each set begins, and the end of the last one: int64[n + 1]."""
    if not len(sets):
        return np.zeros(1, np.int64)
    return np.frombuffer(sets.buffers()[1], np.int64, len(sets) + 1, sets.offset * 8)


def layout_of_sets(sets: pa.LargeBinaryArray, form: SetForm, where: str) -> SetsLayout:
    """Find the bitmaps of serialized sets.

    Parameters
    ----------
    sets
        One value for each set.
    form
        Form of the sets.
    where
        Name of the file, for error messages.

    Raises
    ------
    CorruptFileError
        A value is null or is not a set. Values inside bitmaps are not checked.
    """
    if sets.null_count:
        raise CorruptFileError(f"{where}: a {form.name} is null")
    bounds, content = bounds_of_sets(sets), sets.buffers()[2]
    data = np.frombuffer(content, np.uint8) if content is not None else np.empty(0, np.uint8)
    reading = _Reading(data, bounds[1:], form, where)
    return reading.run(bounds[:-1].copy())


class _Reading:
    """Reads bitmaps in rounds, one from every set that has bitmaps left."""

    def __init__(self, data: _Bytes, ends: _Ints, form: SetForm, where: str) -> None:
        self._data = data
        self._ends = ends
        self._form = form
        self._where = where

    def run(self, positions: _Ints) -> SetsLayout:
        form = self._form
        self._demand(positions + form.count_bytes <= self._ends, "is too short for its number of bitmaps")
        left = _u32(self._data, positions)
        if form.count_bytes == 8:
            self._demand(_u32(self._data, positions + 4) == 0, "claims more bitmaps than there are keys")
        positions += form.count_bytes
        owners = np.arange(len(positions))
        before = np.full(len(positions), -1, np.int64)
        found: list[tuple[_Ints, ...]] = []
        dense = [np.empty(0, np.int64)]
        while True:
            more = left > 0
            self._demand(more | (positions == self._ends[owners]), "has bytes after its last bitmap")
            if not more.any():
                break
            owners, positions, before, left = owners[more], positions[more], before[more], left[more] - 1
            keys, starts, stops, wide = self._entries(owners, positions)
            self._demand(keys > before, "has keys that are not ascending")
            found.append((owners, keys, starts, stops))
            dense.append(owners[wide])
            positions, before = stops, keys
        return SetsLayout(self._data, form, len(self._ends), found, np.concatenate(dense))

    def _entries(self, owners: _Ints, positions: _Ints) -> tuple[_Ints, _Ints, _Ints, npt.NDArray[np.bool_]]:
        """Return keys, starts and stops of the bitmaps at positions, and a mask of those that may have many rows."""
        form, ends = self._form, self._ends[owners]
        starts = positions + form.entry_head
        self._demand(starts <= ends, "ends inside a bitmap")
        keys = _u32(self._data, positions)
        if not form.sized:
            sizes, wide = self._sizes(starts, ends)
            return keys, starts, starts + sizes, wide
        claimed = _u32(self._data, positions + _ENTRY_KEY)
        stops = starts + claimed
        self._demand(stops <= ends, "ends inside a bitmap")
        wide = claimed == 0
        some = ~wide
        sizes, wide[some] = self._sizes(starts[some], stops[some])
        self._demand(sizes == claimed[some], "has a bitmap whose size differs from the stated one")
        return keys, starts, stops, wide

    def _sizes(self, starts: _Ints, ends: _Ints) -> tuple[_Ints, npt.NDArray[np.bool_]]:
        """Return the sizes of bitmaps, and a mask of those with containers other than arrays."""
        self._demand(starts + _BITMAP_HEAD <= ends, "ends inside a bitmap")
        cookies = _u32(self._data, starts)
        wide = cookies != NO_RUNS
        self._demand(~wide | (cookies & 0xFFFF == WITH_RUNS), "has a bitmap with an unknown cookie")
        counts = np.where(wide, 0, _u32(self._data, starts + 4))
        self._demand(counts <= _MAX_CONTAINERS, "has a bitmap that claims too many containers")
        heads = _BITMAP_HEAD + counts * _CONTAINER_HEAD
        self._demand(starts + heads <= ends, "ends inside a bitmap")
        bitmaps = np.repeat(np.arange(len(starts)), counts)
        cardinalities = _cardinalities(self._data, starts, counts)
        bitsets = cardinalities > MAX_ARRAY
        contents = np.where(bitsets, _BITSET_BYTES, 2 * cardinalities)
        sizes = heads + np.bincount(bitmaps, contents, len(starts)).astype(np.int64)
        for number in np.flatnonzero(wide).tolist():
            sizes[number] = bitmap_size(self._data[starts[number] : ends[number]].data, self._where)
        wide[bitmaps[bitsets]] = True
        self._demand(starts + sizes <= ends, "ends inside a bitmap")
        return sizes, wide

    def _demand(self, holds: npt.NDArray[np.bool_], problem: str) -> None:
        if not holds.all():
            raise CorruptFileError(f"{self._where}: a {self._form.name} {problem}")


def _u16(data: _Bytes, positions: _Ints) -> _Ints:
    return data[positions].astype(np.int64) | data[positions + 1].astype(np.int64) << 8


def _u32(data: _Bytes, positions: _Ints) -> _Ints:
    return _u16(data, positions) | _u16(data, positions + 2) << 16


def _ranks(counts: _Ints) -> _Ints:
    """Return the ranges 0, 1, ... for each count, concatenated."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


def _cardinalities(data: _Bytes, starts: _Ints, counts: _Ints) -> _Ints:
    """Return the numbers of values of the containers in bitmaps without runs."""
    return _u16(data, np.repeat(starts + _BITMAP_HEAD + 2, counts) + 4 * _ranks(counts)) + 1


def decode_sets(layout: SetsLayout, sets: npt.NDArray[np.bool_], where: str) -> tuple[_Ints, npt.NDArray[np.uint64]]:
    """Return all values of sets that are not dense.

    Parameters
    ----------
    layout
        Positions of their bitmaps.
    sets : bool[sets]
        Mask of the sets to decode.
    where
        Name of the file, for error messages.

    Returns
    -------
    owners : int64[m]
        Number of the set of each value, ascending.
    values : uint64[m]
        The values, ascending within a set.

    Raises
    ------
    CorruptFileError
        Values are not ascending.
    """
    chosen = sets[layout.owners]
    owners, keys, starts = layout.owners[chosen], layout.keys[chosen], layout.starts[chosen]
    data = layout.data
    counts = _u32(data, starts + 4)
    cardinalities = _cardinalities(data, starts, counts)
    upper = _u16(data, np.repeat(starts + _BITMAP_HEAD, counts) + 4 * _ranks(counts))
    bitmaps = np.repeat(np.arange(len(owners)), counts)
    # Containers are contiguous, so each begins after the total size of those before it in its bitmap.
    taken = np.cumsum(cardinalities) - cardinalities
    firsts = np.cumsum(counts) - counts
    first_taken = np.append(taken, 0)[firsts] if len(owners) else taken
    contents = np.repeat(starts + _BITMAP_HEAD + _CONTAINER_HEAD * counts, counts)
    contents += 2 * (taken - np.repeat(first_taken, counts))
    lower = _u16(data, np.repeat(contents, cardinalities) + 2 * _ranks(cardinalities))
    high = (keys[bitmaps].astype(np.uint64) << _HIGH) | (upper.astype(np.uint64) << np.uint64(16))
    values: npt.NDArray[np.uint64] = np.repeat(high, cardinalities)
    values |= lower.astype(np.uint64)
    owner: _Ints = np.repeat(owners[bitmaps], cardinalities)
    if ((values[1:] <= values[:-1]) & (owner[1:] == owner[:-1])).any():
        raise CorruptFileError(f"{where}: a {layout.form.name} has values that are not ascending")
    return owner, values


def encode_parts(parts: Mapping[int, bytes], form: SetForm) -> bytes:
    """Serialize one set of the given bitmaps by key; an empty one stands for all rows of a fragment."""
    output = [struct.pack("<I" if form.count_bytes == 4 else "<Q", len(parts))]
    for key, content in sorted(parts.items()):
        output += [struct.pack("<I", key), struct.pack("<I", len(content)) if form.sized else b"", content]
    return b"".join(output)


def encode_sets(owners: _Ints, values: npt.NDArray[np.uint64], sets: int, form: SetForm) -> pa.LargeBinaryArray:
    """Serialize many sets.

    Parameters
    ----------
    owners : int64[m]
        Number of the set of each value, ascending.
    values : uint64[m]
        The values, ascending within a set, without duplicates.
    sets
        Number of sets. Those without values are empty.
    form
        Form of the sets.

    Returns
    -------
    LargeBinaryArray
        One value for each set.
    """
    return encode_groups(values, np.cumsum(np.bincount(owners, minlength=sets)), form)


def encode_groups(values: npt.NDArray[np.uint64], stops: _Ints, form: SetForm) -> pa.LargeBinaryArray:
    """Serialize sets of adjacent values.

    Parameters
    ----------
    values : uint64[m]
        The values, ascending within a set, without duplicates.
    stops : int64[sets]
        Number of values up to the end of those of each set.
    form
        Form of the sets.
    """
    values, bounds = np.ascontiguousarray(values), np.empty(len(stops) + 1, np.int64)
    row_sets.measure(values, stops, form.count_bytes, form.sized, bounds)
    output = pa.allocate_buffer(int(bounds[-1]))
    row_sets.encode(values, stops, form.count_bytes, form.sized, bounds, output)
    return sets_from(bounds, output)


def sets_from(bounds: _Ints, data: pa.Buffer) -> pa.LargeBinaryArray:
    """Return sets as an array over their bytes."""
    buffers = [None, pa.py_buffer(bounds), data]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)
