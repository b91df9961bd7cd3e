"""Check of B-tree indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.index.files import IndexFolder
from lance_dataset.index.scalar.btree import PageBounds, open_lookup, open_page_data, page_rows
from lance_dataset.index.scalar.value_order import KeyedOrder, order_of
from lance_dataset.index.validating.keyed_rows import KeyedRows, digests, shown

__all__ = ["BTreeContent"]

_BOUNDS: Final = ("min", "max", "null_count", "page_idx")


class BTreeContent:
    """Entries of a segment of a B-tree index: the value of each row.

    Parameters
    ----------
    folder
        Folder of the files.

    Attributes
    ----------
    kind : DataType
        Type of the values.

    Raises
    ------
    CorruptFileError
        The files contradict the format.
    """

    is_exact = True

    def __init__(self, folder: IndexFolder) -> None:
        self._lookup = open_lookup(folder)
        self._files = open_page_data(folder, self._lookup)
        self._page_rows = page_rows(self._lookup)
        self.kind = self._lookup.schema.fields[0].storage_type
        pages = sum(-(-file.num_rows // self._page_rows) for file in self._files)
        if pages != self._lookup.num_rows:
            raise self._lookup.corrupt(f"has the bounds of {self._lookup.num_rows} pages, but the index has {pages}")

    def entries(self) -> Iterator[KeyedRows]:
        """Yield all entries. The values must be in order, and the bounds of pages those of their values."""
        first, order = 0, _Order(self.kind)
        for file in self._files:
            bounds = PageBounds(self.kind, self._page_rows)
            row = 0
            for batch in file.batches():
                values, rows = batch.columns
                if rows.null_count:
                    raise file.corrupt(f"a value of page {row // self._page_rows} has no row")
                place = order.first_misplaced(values)
                if place is not None:
                    raise file.corrupt(
                        f"the values of page {first + (row + place) // self._page_rows} are not in order: "
                        f"{shown(values[place])} is at position {row + place}"
                    )
                bounds.add(values)
                row += len(values)
                yield KeyedRows(values, digests(values), rows.to_numpy(zero_copy_only=False))
            first += self._check_bounds(bounds, first)

    def _check_bounds(self, bounds: PageBounds, first: int) -> int:
        """Compare the bounds of the pages of a file from the first one on; return the number of pages."""
        schema = self._lookup.schema.storage_arrow
        expected = bounds.finish(pa.schema([field.with_nullable(True) for field in schema]))
        stored = self._lookup.read(first, first + expected.num_rows)
        numbers = pa.array(np.arange(first, first + expected.num_rows, dtype=np.uint32))
        wanted = [*expected.columns[:3], numbers]
        for name, one, other in zip(_BOUNDS, stored.columns, wanted, strict=True):
            wrong = np.flatnonzero(digests(one) != digests(other))
            if len(wrong):
                page = int(wrong[0])
                raise self._lookup.corrupt(
                    f"{name} of page {first + page} is {shown(one[page])}, but that of its values is "
                    f"{shown(other[page])}"
                )
        return expected.num_rows

    def expected(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield the entries that values should have."""
        yield KeyedRows(values, digests(values), np.arange(len(values), dtype=np.uint64))

    required = expected


class _Order:
    """Check that values that are read in portions are in order, nulls first."""

    def __init__(self, kind: pa.DataType) -> None:
        self._order = order_of(kind)
        self._last: pa.Array | None = None

    def first_misplaced(self, values: pa.Array) -> int | None:
        """Return the position of a value that is not in order, None if there is none."""
        nulls = values.null_count
        if nulls and (self._last is not None or values[:nulls].null_count != nulls):
            valid = 0 if self._last is not None else int(np.flatnonzero(np.asarray(values.is_valid(), bool))[0])
            return valid + int(np.flatnonzero(np.asarray(values[valid:].is_null(), bool))[0])
        known = values[nulls:]
        if not len(known):
            return None
        joined = known if self._last is None else pa.concat_arrays([self._last, known])
        start = nulls + len(known) - len(joined)
        self._last = known[-1:]
        falls = np.flatnonzero(self._falls(joined))
        return start + int(falls[0]) + 1 if len(falls) else None

    def _falls(self, values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return for each value but the first whether it is below the one before."""
        if isinstance(self._order, KeyedOrder):
            keys = self._order.keys(values)
            return keys[1:] < keys[:-1]
        return np.asarray(pc.less(values[1:], values[:-1]), bool)
