"""Hash index over the key columns of a merge's source, which finds the source rows of a target row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.changes.keys.key_columns import key_columns, key_kind
from lance_dataset.errors import SchemaError
from lance_dataset.properties import cached_property
from lancecodec.join_keys import KeyTable, measure_groups

__all__ = ["KeyIndex", "LastRows", "index_size"]

#: Number of rows whose keys are described together, which bounds the memory for decoding.
_ROWS_AT_ONCE = 1 << 20
#: Maximum bytes per row: group, first row, number of rows; slots; their filter; end of a key.
_BYTES_PER_ROW = 24 + 32 + 4 + 8


def index_size(num_rows: int, key_bytes: int) -> int:
    """Return the maximum size in bytes of an index of `num_rows` different keys, given the size of the key columns."""
    return num_rows * _BYTES_PER_ROW + key_bytes + key_bytes // 2


class KeyIndex:
    """Index of the rows of a source by key.

    Rows with equal keys form a *group*. Groups are numbered in the order of their first rows. A key with a null part
    does not equal any other, so rows with such a key do not belong to a group. Inside structs and lists nulls are
    ordinary values. Floating point numbers are compared by their bits.

    Parameters
    ----------
    columns
        Key columns of the source, all of the same length.

    Attributes
    ----------
    num_rows
        Number of rows of the source.
    num_groups
        Number of distinct keys without a null part.

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
        """Group of each source row; -1 if a part of its key is null."""
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
        """Find the target rows whose keys the source has. Several threads may call this.

        Parameters
        ----------
        columns
            Key columns of a batch of the target, in the order of the source's. They are compared by value, so
            dictionary encoding and the width of offsets do not matter.

        Returns
        -------
        places, groups : numpy.ndarray
            int64: numbers of the rows, ascending, and the group of each.

        Raises
        ------
        SchemaError
            Their types cannot be compared with those of the source.
        """
        kinds = [key_kind(column.type) for column in columns]
        if kinds != self._kinds:
            raise SchemaError(f"the keys have the types {kinds}, but those of the source are {self._kinds}; cast them")
        num_rows = len(columns[0])
        if self.num_groups == 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        places, groups = np.empty(num_rows, np.int64), np.empty(num_rows, np.int64)
        found = self._table.find(key_columns(columns), num_rows, places, groups)
        return places[:found], groups[:found]

    def probe(self, columns: Sequence[pa.Array]) -> NDArray[np.int64]:
        """Return the group of each target row, or -1 if the source lacks its key; otherwise like `matches`."""
        places, found = self.matches(columns)
        groups = np.full(len(columns[0]), -1, np.int64)
        groups[places] = found
        return groups


class LastRows:
    """Index of the last data row with each key. Unlike in a merge, null equals null.

    Parameters
    ----------
    keys
        Key column of the data.
    """

    def __init__(self, keys: pa.ChunkedArray) -> None:
        self._index = KeyIndex([keys])
        self._rows = np.full(self._index.num_groups + 1, -1, np.int64)
        np.maximum.at(self._rows, self._index.groups, np.arange(len(keys)))  # group -1 stands for the last place

    def find(self, keys: pa.Array) -> NDArray[np.int64]:
        """Return the data row of each key, or -1 if the data lacks it; raises like `KeyIndex.probe`."""
        groups = self._index.probe([keys])
        missing = groups < 0
        if keys.null_count:
            missing &= ~pc.is_null(keys).to_numpy(zero_copy_only=False)
        return np.where(missing, -1, self._rows[groups])
