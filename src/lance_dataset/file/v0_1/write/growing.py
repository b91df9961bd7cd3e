"""Dictionary of a field, shared by all batches and files of a write."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.errors import SchemaError
from lance_dataset.file.kinds import is_binary_like, is_text
from lance_dataset.file.v0_1.arrays import valid_bytes
from lance_dataset.file.v0_1.dictionaries import empty_as_null
from lance_dataset.file.v0_1.write.pages import Warn
from lance_dataset.types.schema import Field

__all__ = ["GrowingDictionary"]

_SHOWN = 5
#: If there are at most this many times the values to look up, all of them are hashed again.
_MANY_TIMES = 8
_Indices = NDArray[np.int64]


class GrowingDictionary:
    """Values of a dictionary field, to which the dictionaries of all batches are mapped.

    Values are only ever added at the end, so indices written earlier stay valid.

    Parameters
    ----------
    field
        The field. If the table already has a dictionary for it (`Field.dictionary_values`), no value can be added.
    """

    def __init__(self, field: Field) -> None:
        dictionary = field.storage_type
        self._index_type: pa.DataType = dictionary.index_type
        self._value_type: pa.DataType = dictionary.value_type
        self._has_empty = is_binary_like(self._value_type)
        self._empty = pa.scalar(("" if is_text(self._value_type) else b"") if self._has_empty else 0, self._value_type)
        known = field.dictionary_values
        self._frozen = known is not None
        self._nullable = field.nullable
        if known is None:
            known = pa.array([], self._value_type)
        self._pieces = [self._plain(known)]
        self._count = len(known)
        self._codes: dict[bytes | int, int] | None = None
        self._same: pa.Array | None = None

    @property
    def values(self) -> pa.Array:
        """Values so far, as they are read."""
        return empty_as_null(self._joined())

    def _joined(self) -> pa.Array:
        if len(self._pieces) > 1:
            self._pieces = [pa.concat_arrays(self._pieces)]
        return self._pieces[0]

    def indices(self, array: pa.DictionaryArray, path: str, absent: int, warn: Warn) -> pa.Array:
        """Return indices into `values` for the values of an array; the result has no nulls.

        Parameters
        ----------
        array
            Values with a dictionary of their own.
        path
            Name of the field for messages.
        absent
            Number of values that are null because the struct around them is null.
        warn
            Called for nulls that are lost.

        Raises
        ------
        SchemaError
            There is a null where none is allowed, there are more values than the index type can count, or the
            dictionary of the table lacks a value.
        """
        if len(array) == 0:
            return pa.array([], self._index_type)
        given = array.dictionary
        raw = pc.fill_null(array.indices, 0) if array.null_count else array.indices
        indices = raw.to_numpy().astype(np.int64, copy=False)
        valid = valid_bytes(array.indices) if array.null_count else None
        self._check_range(indices if valid is None else indices[valid], len(given), path)
        self._check_nulls(array, indices, valid, absent, path, warn)
        mapping = self._map(given, indices, valid, path)
        if mapping is None and valid is None:
            return raw
        mapped = indices if mapping is None else mapping[indices]
        if valid is not None:
            mapped = np.where(valid, mapped, self._null_index(path, warn))
        return pa.array(mapped.astype(self._index_type.to_pandas_dtype()), self._index_type)

    def _plain(self, values: pa.Array) -> pa.Array:
        """Return values without nulls."""
        return pc.fill_null(values, self._empty) if values.null_count else values

    def _check_range(self, indices: _Indices, count: int, path: str) -> None:
        if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= count):
            raise SchemaError(f"column {path!r}: the data has indices outside its dictionary of {count} values")

    def _check_nulls(
        self,
        array: pa.DictionaryArray,
        indices: _Indices,
        valid: NDArray[np.bool_] | None,
        absent: int,
        path: str,
        warn: Warn,
    ) -> None:
        """Raise if there are nulls where none are allowed, in either form; warn of values that become nulls."""
        given = array.dictionary
        used = indices if valid is None else indices[valid]
        nulls = array.null_count - absent
        if given.null_count:
            nulls += int(np.count_nonzero(~valid_bytes(given)[used]))
        if nulls and not self._nullable:
            raise SchemaError(f"column {path!r} is declared not nullable, but its data holds {nulls} null values")
        if self._has_empty:
            empty = pc.fill_null(pc.equal(pc.binary_length(given), 0), False)
            if pc.any(empty).as_py() and empty.to_numpy(zero_copy_only=False)[used].any():
                warn(
                    path,
                    "holds empty values, which dictionaries of legacy (0.1) tables cannot tell from nulls: they "
                    "will be read as null",
                )
        elif given.null_count and nulls:
            warn(path, "holds nulls, which dictionaries of integers cannot hold: they will be read as zeros")

    def _map(self, given: pa.Array, indices: _Indices, valid: NDArray[np.bool_] | None, path: str) -> _Indices | None:
        """Return the index in `values` of each value of a dictionary; None if both are the same."""
        if self._same is not None and _shares_memory(self._same, given):
            return None
        values = self._plain(given)
        if self._count == 0 and not self._frozen:
            self._append(values, path)
        if len(values) <= len(self._pieces[0]) and self._pieces[0].slice(0, len(values)).equals(values):
            self._same = given
            return None
        used = np.zeros(len(values), np.bool_)
        used[indices if valid is None else indices[valid]] = True
        wanted = values.filter(pa.array(used))
        known = self._find(wanted)
        if (known < 0).any():
            self._append(pc.unique(wanted.filter(pa.array(known < 0))), path)
            known = self._find(wanted)
        mapping = np.zeros(len(values), np.int64)
        mapping[used] = known
        return mapping

    def _find(self, wanted: pa.Array) -> _Indices:
        """Return the indices of values in `values`, or -1; the time depends on the number of values to find."""
        if self._count <= _MANY_TIMES * len(wanted):
            found = pc.index_in(wanted, value_set=self._joined())
            return pc.fill_null(found, -1).to_numpy().astype(np.int64)
        if self._codes is None:
            self._codes = {}
            self._learn(self._joined(), 0)
        codes = self._codes
        return np.fromiter((codes.get(key, -1) for key in self._keys(wanted)), np.int64, len(wanted))

    def _learn(self, values: pa.Array, first: int) -> None:
        if self._codes is not None:
            for place, key in enumerate(self._keys(values), first):
                self._codes.setdefault(key, place)

    def _keys(self, values: pa.Array) -> list[bytes | int]:
        keys: list[bytes | int] = (values.cast(pa.large_binary()) if self._has_empty else values).to_pylist()
        return keys

    def _append(self, new: pa.Array, path: str) -> None:
        try:
            new.validate(full=True)
        except pa.ArrowInvalid as error:
            raise SchemaError(f"column {path!r}: its dictionary is not a valid Arrow array: {error}") from error
        if self._frozen:
            shown = ", ".join(repr(value) for value in new.slice(0, _SHOWN).to_pylist())
            more = f" and {len(new) - _SHOWN} more" if len(new) > _SHOWN else ""
            raise SchemaError(
                f"column {path!r}: {shown}{more} are not in the dictionary of the table, which cannot grow in a legacy "
                "(0.1) table; overwrite the table, or store it without a dictionary or in a later version"
            )
        count = self._count + len(new)
        limit = int(np.iinfo(self._index_type.to_pandas_dtype()).max)
        if count - 1 > limit:
            raise SchemaError(
                f"column {path!r}: its dictionaries together have {count} different values, but indices of type "
                f"{self._index_type} only count to {limit}; use a wider index type"
            )
        self._learn(new, self._count)
        # The first piece is compared with dictionaries of later batches.
        self._pieces = [*self._pieces, new] if self._count else [new]
        self._count = count

    def _null_index(self, path: str, warn: Warn) -> int:
        """Return the index to write for a null."""
        if self._has_empty:
            found = int(self._find(pa.array([self._empty.as_py()], self._value_type))[0])
            if found >= 0:
                return found
            if self._frozen:
                raise SchemaError(
                    f"column {path!r} holds nulls, but the dictionary of the table has no empty value to stand for "
                    "them; overwrite the table, or store it in a later version than 0.1"
                )
        else:
            warn(path, "holds nulls, which dictionaries of integers cannot hold: they will be read as its first value")
            if self._count:
                return 0
        self._append(pa.array([self._empty.as_py()], self._value_type), path)
        return self._count - 1


def _shares_memory(first: pa.Array, second: pa.Array) -> bool:
    """Return True if two arrays are the same view of the same buffers."""
    if len(first) != len(second) or first.offset != second.offset:
        return False
    pairs = zip(first.buffers(), second.buffers(), strict=True)
    return all((a and (a.address, a.size)) == (b and (b.address, b.size)) for a, b in pairs)
