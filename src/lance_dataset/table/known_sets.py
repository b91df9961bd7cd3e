"""Serialized row sets whose containers are known: their unions, and their rows in portions of limited size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.limits import check_memory
from lance_dataset.table.roaring import bitmap_parts
from lance_dataset.table.row_addresses import addresses_in
from lance_dataset.table.row_sets import SetForm, bounds_of_sets, encode_groups, layout_of_sets, sets_from
from lancecodec.errors import CodecError
from lancecodec.search.row_sets import RowSets

__all__ = ["KnownSets"]

_Ints = NDArray[np.int64]
#: Rows that are decoded together, unless one container has more.
_PORTION = 1 << 20
#: Rows that a fragment can have.
_MOST = 1 << 32


class KnownSets:
    """Row sets whose containers were found.

    Parameters
    ----------
    sets
        The sets. None has a bitmap that stands for all rows of a fragment.
    form
        Their form.
    where
        Name of the file, for error messages.

    Attributes
    ----------
    sets : LargeBinaryArray
        The sets, maybe in another serialization, without runs.
    stops : int64[sets]
        Number of containers up to the end of those of each set.
    counts : int64[containers]
        Number of rows of each container.

    Raises
    ------
    CorruptFileError
        A value is not such a set.
    """

    def __init__(self, sets: pa.LargeBinaryArray, form: SetForm, where: str) -> None:
        if sets.null_count:
            raise CorruptFileError(f"{where}: a {form.name} is null")
        self._form = form
        self._where = where
        try:
            self._known = _opened(sets, form)
        except CodecError:  # runs, or damage, which is described better there
            sets = _without_runs(sets, form, where)
            self._known = self._checked(_opened, sets, form)
        self.sets = sets
        self.stops = np.empty(len(sets), np.int64)
        self.counts = np.empty(self._known.describe(self.stops, np.empty(0, np.int64)), np.int64)
        self._known.describe(self.stops, self.counts)

    @property
    def sizes(self) -> _Ints:
        """Number of rows of each set."""
        ends = np.append(0, np.cumsum(self.counts))
        return np.diff(ends[np.append(0, self.stops)])

    def portions(self) -> Iterator[tuple[_Ints, NDArray[np.uint64]]]:
        """Yield all rows, in portions: the number of the set of each row, ascending, and the rows, ascending in a set.

        Raises
        ------
        CorruptFileError
            A set has other rows than it says.
        """
        owners = np.repeat(np.arange(len(self.sets)), np.diff(self.stops, prepend=0))
        ends, start = np.cumsum(self.counts), 0
        while start < len(ends):
            before = int(ends[start - 1]) if start else 0
            stop = max(int(np.searchsorted(ends, before + _PORTION, side="right")), start + 1)
            rows = np.empty(int(ends[stop - 1]) - before, np.uint64)
            self._checked(self._known.decode, start, stop, rows)
            yield np.repeat(owners[start:stop], self.counts[start:stop]), rows
            start = stop

    def intersection(self) -> NDArray[np.uint64]:
        """Return the rows that are in all sets, ascending.

        Raises
        ------
        CorruptFileError
            A set has other rows than it says.
        """
        rows = np.empty(int(self.sizes.min()) if len(self.sets) else 0, np.uint64)
        return rows[: self._checked(self._known.intersect, rows)]

    def union(self, order: _Ints, stops: _Ints) -> pa.LargeBinaryArray:
        """Return unions of some of the sets.

        Parameters
        ----------
        order : int64[n]
            Numbers of the sets, those of the first union first.
        stops : int64[unions]
            Number of these up to the end of those of each union.

        Raises
        ------
        CorruptFileError
            A set has other rows than it says.
        """
        sizes = np.diff(bounds_of_sets(self.sets))
        output = pa.allocate_buffer(int(sizes[order].sum()) + 8 * len(stops))
        bounds = np.empty(len(stops) + 1, np.int64)
        self._checked(self._known.unite, order, stops, bounds, output)
        return sets_from(bounds, output)

    def _checked(self, call: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except CodecError as error:
            raise CorruptFileError(f"{self._where}: a {self._form.name} is damaged: {error}") from None


def _opened(sets: pa.LargeBinaryArray, form: SetForm) -> RowSets:
    data = sets.buffers()[2] if len(sets) else None
    return RowSets(b"" if data is None else data, bounds_of_sets(sets), form.count_bytes, form.sized)


def _without_runs(sets: pa.LargeBinaryArray, form: SetForm, where: str) -> pa.LargeBinaryArray:
    """Return the same sets without runs."""
    layout = layout_of_sets(sets, form, where)
    read = sets.nbytes
    parts: list[pa.LargeBinaryArray] = []
    owners: list[int] = []
    size = 0
    for number in range(len(sets)):
        for part in layout.parts(number):
            if part.bitmap is None:
                raise CorruptFileError(f"{where}: a {form.name} has a bitmap of size 0")
            for lower in bitmap_parts(part.bitmap, _MOST, where):
                parts.append(encode_groups(addresses_in(part.key, lower), np.array([len(lower)]), form))
                owners.append(number)
                size += parts[-1].nbytes
                check_memory(size, read, f"{where}: a {form.name}")
    if not parts:
        return sets
    stops = np.searchsorted(np.array(owners), np.arange(len(sets)), side="right")
    joined = pa.concat_arrays(parts)
    return KnownSets(joined, form, where).union(np.arange(len(joined)), stops)
