"""Sets of keys, and which of many keys are in one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.properties import cached_property

__all__ = ["KeySet"]

#: Entries of the table of a range of integers, for each key in it, and at most.
_SPARSE, _MAX_TABLE = 256, 1 << 26


class KeySet:
    """Set of keys of one type.

    Parameters
    ----------
    parts
        Arrays of keys, which may repeat.
    """

    def __init__(self, parts: Sequence[pa.Array]) -> None:
        filled = [part for part in parts if len(part)]
        self._keys = pa.concat_arrays(filled) if filled else None

    def __bool__(self) -> bool:
        return self._keys is not None

    def holds(self, keys: pa.Array) -> pa.BooleanArray:
        """Return True for each key that is in the set."""
        if self._keys is None:
            return pa.repeat(pa.scalar(False), len(keys))
        table = self._table
        if table is None or keys.null_count or not len(keys):
            return pc.is_in(keys, self._keys)
        first, flags = table
        places = keys.to_numpy().astype(np.int64) - (first - 1)
        np.clip(places, 0, len(flags) - 1, out=places)
        return pa.array(flags[places])

    @cached_property
    def _table(self) -> tuple[int, NDArray[np.bool_]] | None:
        """First key, and flags of all integers from before it to behind the last key, if they lie close together."""
        keys = self._keys
        if keys is None or keys.null_count or not pa.types.is_integer(keys.type) or keys.type == pa.uint64():
            return None
        numbers = keys.to_numpy().astype(np.int64)
        first, last = int(numbers.min()), int(numbers.max())
        if last - first > min(len(numbers) * _SPARSE, _MAX_TABLE) or max(abs(first), abs(last)) > 1 << 61:
            return None
        flags = np.zeros(last - first + 3, bool)
        flags[numbers - (first - 1)] = True
        return first, flags
