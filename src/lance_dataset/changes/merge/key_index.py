"""Which row of a merge's source has the key of a target row: a hash index over the key columns of the source."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.changes.merge.keys import key_columns, key_kind
from lance_dataset.errors import SchemaError
from lancecodec.join_keys import KeyTable, measure_groups

__all__ = ["KeyIndex", "LastRows", "index_size"]

#: Rows whose keys are described together: what must be decoded for that is bounded.
_ROWS_AT_ONCE = 1 << 20
#: Bytes per row at most: group, first row, number of rows; slots; their filter; end of a key.
_BYTES_PER_ROW = 24 + 32 + 4 + 8


def index_size(num_rows: int, key_bytes: int) -> int:
    """Bytes that an index of `num_rows` different keys has at most, given the size of the key columns."""
    return num_rows * _BYTES_PER_ROW + key_bytes + key_bytes // 2


class KeyIndex:
    """Rows of a source by key.

    Rows with equal keys form a *group*; groups are numbered in the order of their first rows. A key of which a part is
    null equals no other, so rows with such a key are in no group. Below structs and lists nulls are values like others.
    Floating point numbers are compared by their bits.

    Parameters
    ----------
    columns
        The key columns of the source, all of one length.

    Attributes
    ----------
    num_rows
        Rows of the source.
    num_groups
        Distinct keys without a null part.

    Raises
    ------
    UnsupportedError
        Values of a type cannot be compared.
    """

    num_rows: int
    num_groups: int

    def __init__(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        keys = pa.Table.from_arrays(list(columns), [str(number) for number in range(len(columns))])
        self._kinds = [key_kind(column.type) for column in columns]
        self._table = KeyTable()
        self._groups = np.empty(keys.num_rows, np.int64)
        done = 0
        for batch in keys.to_batches(_ROWS_AT_ONCE):
            self._table.add(key_columns(batch.columns), batch.num_rows, self._groups[done:])
            done += batch.num_rows
        self._groups.flags.writeable = False
        self.num_rows, self.num_groups = keys.num_rows, len(self._table)

    @property
    def groups(self) -> NDArray[np.int64]:
        """Group of each source row, -1 where a part of its key is null."""
        return self._groups

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """Number of source rows of each group."""
        return self._measured[1]

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """First source row of each group."""
        return self._measured[0]

    @cached_property
    def _measured(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first, sizes = np.empty(self.num_groups, np.int64), np.empty(self.num_groups, np.int64)
        measure_groups(self._groups, first, sizes)
        return first, sizes

    def matches(self, columns: Sequence[pa.Array]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The target rows whose keys the source has; several threads may call this.

        Parameters
        ----------
        columns
            The key columns of a batch of the target, in the order of the source's. They are compared by value: a
            dictionary is what it stands for, and the width of offsets does not matter.

        Returns
        -------
        places, groups : numpy.ndarray
            int64: numbers of the rows, ascending, and the group of each.

        Raises
        ------
        SchemaError
            Their types are others than those of the source, and not compared with them.
        """
        kinds = [key_kind(column.type) for column in columns]
        if kinds != self._kinds:
            raise SchemaError(f"keys of other types than those of the source: {kinds}, not {self._kinds}; cast them")
        num_rows = len(columns[0])
        if self.num_groups == 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        places, groups = np.empty(num_rows, np.int64), np.empty(num_rows, np.int64)
        found = self._table.find(key_columns(columns), num_rows, places, groups)
        return places[:found], groups[:found]

    def probe(self, columns: Sequence[pa.Array]) -> NDArray[np.int64]:
        """Group of the key of each target row, -1 where the source has no such key; otherwise as `matches`."""
        places, found = self.matches(columns)
        groups = np.full(len(columns[0]), -1, np.int64)
        groups[places] = found
        return groups


class LastRows:
    """The last row of some data that has a key; unlike in a merge, null equals null.

    Parameters
    ----------
    keys
        The key column of the data.
    """

    def __init__(self, keys: pa.ChunkedArray) -> None:
        self._index = KeyIndex([keys])
        self._rows = np.full(self._index.num_groups + 1, -1, np.int64)
        np.maximum.at(self._rows, self._index.groups, np.arange(len(keys)))  # group -1 stands for the last place

    def find(self, keys: pa.Array) -> NDArray[np.int64]:
        """Row of the data for each key, -1 where there is none; raises as `KeyIndex.probe`."""
        groups = self._index.probe([keys])
        missing = groups < 0
        if keys.null_count:
            missing &= ~pc.is_null(keys).to_numpy(zero_copy_only=False)
        return np.where(missing, -1, self._rows[groups])
