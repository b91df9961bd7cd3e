"""Sets of keys, and which of many keys are in one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.changes.keys.key_index import KeyIndex
from lance_dataset.properties import cached_property

__all__ = ["KeySet", "newest_first"]

#: Entries of the table of a range of integers, for each key in it, and at most.
_SPARSE, _MAX_TABLE = 256, 1 << 26


class KeySet:
    """Set of keys of one type. Several threads may look keys up.

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

    @property
    def keys(self) -> pa.Array | None:
        """The keys as they were given; None if there are none."""
        return self._keys

    def places(self, keys: pa.Array) -> NDArray[np.int64]:
        """Return the places of the keys that are in the set, ascending."""
        known = self._keys
        if known is None or not len(keys):
            return np.empty(0, np.int64)
        if known.null_count:
            return np.flatnonzero(pc.is_in(keys, known).to_numpy(zero_copy_only=False))
        table = self._table
        if table is None or keys.null_count:
            return self._index.matches([keys])[0]
        first, flags = table
        # A key before the first one wraps around. The last flag is that of no key.
        numbers = keys.to_numpy().astype(np.int64, copy=False).view(np.uint64)
        at = numbers - np.uint64(first % (1 << 64))
        np.minimum(at, np.uint64(len(flags) - 1), out=at)
        return np.flatnonzero(flags[at.view(np.int64)])

    def holds(self, keys: pa.Array) -> pa.BooleanArray:
        """Return True for each key that is in the set."""
        held = np.zeros(len(keys), bool)
        held[self.places(keys)] = True
        return pa.array(held)

    @cached_property
    def _index(self) -> KeyIndex:
        assert self._keys is not None
        return KeyIndex([self._keys])

    @cached_property
    def _table(self) -> tuple[int, NDArray[np.bool_]] | None:
        """First key, and flags of all integers up to one behind the last key, if they lie close together."""
        keys = self._keys
        if keys is None or keys.null_count or not pa.types.is_integer(keys.type) or keys.type == pa.uint64():
            return None
        numbers = keys.to_numpy().astype(np.int64)
        first, last = int(numbers.min()), int(numbers.max())
        if last - first > min(len(numbers) * _SPARSE, _MAX_TABLE):
            return None
        flags = np.zeros(last - first + 2, bool)
        flags[numbers - first] = True
        return first, flags


def newest_first(sources: Sequence[pa.Array]) -> list[pa.BooleanArray | None]:
    """Return, for the keys of each source, which of them no source before it has; None for all.

    Parameters
    ----------
    sources
        Keys of each source, each once.
    """
    if len(sources) < 2:
        return [None] * len(sources)
    coded = pa.concat_arrays(sources).dictionary_encode(null_encoding="encode")
    codes = coded.indices.to_numpy(zero_copy_only=False)
    rows = np.arange(len(codes))
    first = np.empty(len(coded.dictionary), np.int64)
    first[codes[::-1]] = rows[::-1]  # the one that is written last stays
    visible = first[codes] == rows
    ends = np.cumsum([len(keys) for keys in sources])
    parts = [visible[end - len(keys) : end] for keys, end in zip(sources, ends.tolist(), strict=True)]
    return [None if part.all() else pa.array(part) for part in parts]
