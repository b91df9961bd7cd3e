"""Concatenation of arrays of one column. It can fail: offsets have 32 bits, and dictionary indices may have only 8."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.buffers import concat_arrays
from lance_dataset.file.column import ColumnReader, DictionaryOverflowError, OversizeError
from lance_dataset.file.kinds import is_binary_like
from lancecodec import OffsetOverflowError

__all__ = [
    "UnjoinableError",
    "bisected",
    "join_arrays",
    "keep_rows",
    "read_chunks",
    "read_encoded",
    "read_range",
    "refusing",
    "take_chunked",
    "take_values",
]

_Result = TypeVar("_Result")

#: If a larger share of strings or lists than this is kept, they are copied in runs.
_MOST = 0.5


class UnjoinableError(UnsupportedError):
    """The requested values do not fit one Arrow array of their type. Fewer values may fit.

    Attributes
    ----------
    oversize
        True if 32-bit offsets are too small, False if the index type of a dictionary is too small.
    """

    def __init__(self, message: str, *, oversize: bool) -> None:
        super().__init__(message)
        self.oversize = oversize


#: Errors that Arrow and the codec raise if arrays cannot be concatenated.
_JOINING_ERRORS = (
    OversizeError,
    OffsetOverflowError,
    DictionaryOverflowError,
    pa.ArrowInvalid,
    pa.ArrowCapacityError,
)


def _refuse(error: Exception, column: str, arrow_type: pa.DataType) -> NoReturn:
    """Raise an UnjoinableError for an error of a concatenation, or the error itself if it has another cause."""
    text = "" if isinstance(error, OversizeError) else str(error).lower()
    in_arrow = ("dictionar" in text and "combined" in text) or "larger index type" in text
    if isinstance(error, DictionaryOverflowError) or in_arrow:
        raise _unjoinable(column, arrow_type, oversize=False) from error
    if isinstance(error, OversizeError | OffsetOverflowError | pa.ArrowCapacityError) or "overflow" in text:
        raise _unjoinable(column, arrow_type, oversize=True) from error
    raise error


def _unjoinable(column: str, arrow_type: pa.DataType, *, oversize: bool) -> UnjoinableError:
    if oversize:
        text = f"the values do not fit one Arrow array of type {arrow_type}, which ends at 2 GiB"
        hint = "ask for fewer rows at a time, or store the column as large_string, large_binary or large_list"
    else:
        text = f"the dictionaries of its fragments and pages together are too large for the index type of {arrow_type}"
        hint = "ask for fewer rows at a time, or store the column with a wider index type or as plain values"
    return UnjoinableError(f"column {column!r}: {text}; {hint}", oversize=oversize)


@contextmanager
def refusing(column: str, arrow_type: pa.DataType) -> Iterator[None]:
    """Return a context in which errors of values that do not fit one array become an UnjoinableError."""
    try:
        yield
    except _JOINING_ERRORS as error:
        _refuse(error, column, arrow_type)


# -- reading -----------------------------------------------------------------------------------------------------


def read_range(reader: ColumnReader, start: int, stop: int, column: str) -> pa.Array:
    """Read values ``[start, stop)`` of a column as one array.

    Raises
    ------
    UnjoinableError
        The values do not fit one array.
    """
    try:
        return reader.read(start, stop)
    except _JOINING_ERRORS as error:
        _refuse(error, column, reader.arrow_type)


def read_chunks(reader: ColumnReader, column: str, start: int, stop: int) -> list[pa.Array]:
    """Read values ``[start, stop)`` of a column in chunks chosen by the reader.

    Raises
    ------
    UnjoinableError
        The values of a chunk do not fit one array.
    """
    try:
        return reader.read_chunks(start, stop)
    except _JOINING_ERRORS as error:
        _refuse(error, column, reader.arrow_type)


def read_encoded(reader: ColumnReader, column: str, start: int, stop: int) -> list[pa.Array]:
    """Read values ``[start, stop)`` of a column as they are stored; see `ColumnReader.read_encoded`.

    Raises
    ------
    UnjoinableError
        The values of a chunk do not fit one array.
    """
    try:
        return reader.read_encoded(start, stop)
    except _JOINING_ERRORS as error:
        _refuse(error, column, reader.arrow_type)


def take_values(reader: ColumnReader, rows: NDArray[np.int64], column: str) -> pa.Array:
    """Take values of a column at `rows` as one array. Unused dictionary values are dropped if necessary.

    Raises
    ------
    UnjoinableError
        The values do not fit one array.
    """
    try:
        try:
            return reader.take(rows)
        except _JOINING_ERRORS as error:
            _refuse(error, column, reader.arrow_type)
    except UnjoinableError as error:
        if error.oversize or len(rows) < 2:
            raise
    middle = len(rows) // 2
    halves = [take_values(reader, part, column) for part in (rows[:middle], rows[middle:])]
    return join_arrays(halves, reader.arrow_type, column)


def bisected(work: Callable[[int, int], _Result], start: int, stop: int) -> Iterator[_Result]:
    """Yield the results of `work` for the range ``[start, stop)``, halving it while its rows do not fit one array."""
    try:
        result = work(start, stop)
    except UnjoinableError:
        if stop - start < 2:
            raise
    else:
        yield result
        return
    middle = (start + stop) // 2
    yield from bisected(work, start, middle)
    yield from bisected(work, middle, stop)


# -- arrays ------------------------------------------------------------------------------------------------------


def join_arrays(arrays: list[pa.Array], arrow_type: pa.DataType, column: str) -> pa.Array:
    """Concatenate arrays. Unused dictionary values are dropped if the dictionaries would not fit otherwise.

    Raises
    ------
    UnjoinableError
        The values do not fit one array even then.
    """
    try:
        try:
            return concat_arrays(arrays, arrow_type)
        except pa.ArrowInvalid:
            # the order of values matters in an ordered dictionary, so it cannot be rebuilt
            if not pa.types.is_dictionary(arrow_type) or arrow_type.ordered:
                raise
            encoded = pa.concat_arrays([array.dictionary_decode() for array in arrays]).dictionary_encode()
            indices = encoded.indices
            if len(encoded.dictionary) > np.iinfo(arrow_type.index_type.to_pandas_dtype()).max + 1:
                raise
        return pa.DictionaryArray.from_arrays(indices.cast(arrow_type.index_type), encoded.dictionary)
    except _JOINING_ERRORS as error:
        _refuse(error, column, arrow_type)


def keep_rows(chunks: list[pa.Array], rows: NDArray[np.int64]) -> list[pa.Array]:
    """Return the values at `rows` (ascending) of a chunked array. Chunks that are kept as a whole are not copied."""
    kept, base = [], 0
    for chunk in chunks:
        low, high = np.searchsorted(rows, [base, base + len(chunk)])
        if high - low == len(chunk):
            kept.append(chunk)
        elif high > low:
            kept.append(_picked(chunk, rows[low:high] - base))
        base += len(chunk)
    return kept


def _picked(array: pa.Array, places: NDArray[np.int64]) -> pa.Array:
    binary = array if is_binary_like(array.type) else None
    if len(places) > _MOST * len(array):
        binary = _lists_as_binaries(array) if binary is None else binary
        if binary is not None:
            # copies adjacent strings together
            keep = np.zeros(len(array), bool)
            keep[places] = True
            kept = binary.filter(pa.array(keep))
            return kept if binary is array else _binaries_as_lists(kept, array.type)
    return array.take(pa.array(places))


def _lists_as_binaries(array: pa.Array) -> pa.LargeBinaryArray | None:
    """Convert lists of values of whole bytes without nulls to binaries. Return None for other arrays."""
    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        return None
    kind, values = array.type.value_type, array.values
    if not pa.types.is_primitive(kind) or kind.bit_width % 8 or values.null_count or values.buffers()[1] is None:
        return None
    width = kind.bit_width // 8
    ends = (array.offsets.to_numpy().astype(np.int64) + values.offset) * width
    valid = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(pa.large_binary(), len(array), [valid, pa.py_buffer(ends), values.buffers()[1]])


def _binaries_as_lists(array: pa.LargeBinaryArray, arrow_type: pa.DataType) -> pa.Array:
    """Convert binaries made by `_lists_as_binaries` back to lists."""
    kind = arrow_type.value_type
    valid, ends, data = array.buffers()
    starts = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1] // (kind.bit_width // 8)
    values = pa.Array.from_buffers(kind, int(starts[-1]), [None, data])
    wide = np.int64 if pa.types.is_large_list(arrow_type) else np.int32
    buffers = [valid, pa.py_buffer(starts.astype(wide))]
    return pa.Array.from_buffers(arrow_type, len(array), buffers, null_count=array.null_count, children=[values])


def take_chunked(values: pa.ChunkedArray, rows: NDArray[np.int64], column: str) -> list[pa.Array]:
    """Return the values at `rows` (any order) as one array, or as several if they do not fit one.

    Raises
    ------
    UnjoinableError
        The dictionaries of the chunks do not fit one dictionary.
    """
    starts = np.cumsum([0, *(len(chunk) for chunk in values.chunks)])

    def gather(first: int, end: int) -> pa.Array:
        wanted = rows[first:end]
        owners = np.searchsorted(starts, wanted, side="right") - 1
        order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=values.num_chunks)
        pieces, done = [], 0
        for number in np.flatnonzero(counts).tolist():
            local = wanted[order[done : done + counts[number]]] - starts[number]
            pieces.append(values.chunk(number).take(pa.array(local)))
            done += counts[number]
        joined = join_arrays(pieces, values.type, column)
        if len(pieces) < 2:
            return joined
        back = np.empty(len(wanted), np.int64)
        back[order] = np.arange(len(wanted))
        return joined.take(pa.array(back))

    if 2 * len(rows) > len(values):
        # copying all values is cheaper than finding the rows of each chunk
        with suppress(UnjoinableError):
            return [join_arrays(values.chunks, values.type, column).take(pa.array(rows))]
    try:
        return [gather(0, len(rows))]
    except UnjoinableError as error:
        if not error.oversize:
            raise
    return list(bisected(gather, 0, len(rows)))
