"""Stable row ids of one fragment as a sequence that programs make and read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError, OutOfRangeError, UnsupportedError
from lance_dataset.records.fragment import RowIdMeta
from lance_dataset.table.lineage.row_ids import RowIds

__all__ = ["RowIdSequence"]

#: A fragment has no more rows.
_MAX_ROWS = 1 << 32
#: Number of ids that are unpacked at once.
_UNPACKED = 1 << 16
_SHOWN = 10


class RowIdSequence:
    """Stable row ids of a fragment, in the order of its rows, each of them once.

    Parameters
    ----------
    row_ids
        Integers, or an Arrow array of them.

    Raises
    ------
    TypeError
        The value is not an iterable of integers.
    InvalidInputError
        An id is null, or there twice.
    OutOfRangeError
        An id is negative or has more than 64 bits.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, row_ids: Iterable[int] | pa.Array | pa.ChunkedArray) -> None:
        if isinstance(row_ids, range) and row_ids.step == 1 and row_ids.start >= 0:
            self._ids = RowIds.from_range(row_ids.start, len(row_ids))
            return
        values = _checked(row_ids)
        _refuse_repeats(values)
        self._ids = RowIds.from_values(values)

    def __len__(self) -> int:
        """Return the number of ids."""
        return len(self._ids)

    def __iter__(self) -> Iterator[int]:
        """Yield the ids."""
        for start in range(0, len(self), _UNPACKED):
            yield from self._ids.slice(start, min(start + _UNPACKED, len(self))).to_numpy().tolist()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowIdSequence):
            return NotImplemented
        return len(self) == len(other) and np.array_equal(self._ids.to_numpy(), other._ids.to_numpy())

    def __repr__(self) -> str:
        first = ", ".join(str(each) for each in self._ids.slice(0, _SHOWN).to_numpy())
        more = f", ...], len={len(self)}" if len(self) > _SHOWN else "]"
        return f"RowIdSequence([{first}{more})"

    def to_pyarrow(self) -> pa.Array:
        """Return the ids as an array of uint64."""
        return pa.array(self._ids.to_numpy(), pa.uint64())

    def to_inline_metadata(self) -> RowIdMeta:
        """Return the sequence as metadata of a fragment, for `FragmentMetadata`."""
        return RowIdMeta(self._ids.encode() if len(self) else b"")

    @staticmethod
    def from_inline_metadata(metadata: RowIdMeta) -> RowIdSequence:
        """Read the ids in the metadata of a fragment.

        Raises
        ------
        CorruptFileError
            The metadata contradicts the format.
        UnsupportedError
            The ids are in a column of the data files.
        """
        if not isinstance(metadata, RowIdMeta):
            raise TypeError(f"metadata must be a RowIdMeta, not {metadata!r}")
        content = metadata.asdict()
        if content == "Column":
            raise UnsupportedError("the row ids are in a column of the data files, not in the metadata")
        found = RowIdSequence.__new__(RowIdSequence)
        found._ids = RowIds.decode_partial(bytes(content["Inline"]), _MAX_ROWS, "row id metadata")
        return found


def _checked(row_ids: Iterable[int] | pa.Array | pa.ChunkedArray) -> NDArray[np.uint64]:
    """Return the ids as an array."""
    if isinstance(row_ids, (pa.Array, pa.ChunkedArray)):
        if row_ids.null_count:
            raise InvalidInputError(f"Row ids must not be null, but the array has {row_ids.null_count} null values")
        if not pa.types.is_integer(row_ids.type):
            raise TypeError(f"Row ids must be integers, but the array has the type {row_ids.type}")
        row_ids = row_ids.to_numpy() if isinstance(row_ids, pa.ChunkedArray) else row_ids.to_numpy(zero_copy_only=False)
    if isinstance(row_ids, np.ndarray):
        if row_ids.ndim != 1 or (row_ids.dtype.kind not in "iu" and len(row_ids)):
            raise TypeError(f"Row ids must be integers, but the array has the type {row_ids.dtype}")
        if len(row_ids) and int(row_ids.min()) < 0:
            raise OutOfRangeError("Row ids must not be negative")
        return row_ids.astype(np.uint64)
    if not isinstance(row_ids, Iterable) or isinstance(row_ids, (str, bytes)):
        raise TypeError(f"Row ids must be an iterable of integers or an Arrow array, but got {type(row_ids).__name__}")
    values = list(row_ids)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"Row ids must be integers, but got {value!r}")
        if not 0 <= value < 1 << 64:
            raise OutOfRangeError(f"Row ids must be from 0 to {(1 << 64) - 1}, but got {value}")
    return np.array(values, np.uint64)


def _refuse_repeats(values: NDArray[np.uint64]) -> None:
    """Raise InvalidInputError if an id is there twice."""
    ordered = np.sort(values)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(again):
        raise InvalidInputError(
            f"Row ids must be unique, but row id {again[0]} appears more than once in the sequence of {len(values)} "
            "row ids"
        )
