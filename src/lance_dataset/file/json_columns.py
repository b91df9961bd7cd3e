"""Columns of JSON documents as text and in binary form, converted by compiled code.

`lance_dataset.file.jsonb` defines the forms. It also converts, or refuses, the few documents that the compiled code
leaves: those that are not valid, above all, so that there is one place for messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, SchemaError, UnsupportedError
from lance_dataset.file.buffers import bitmap_at_zero, octets
from lance_dataset.file.column import OversizeError
from lance_dataset.file.jsonb import decode_document, encode_document
from lance_dataset.limits import BASE_MEMORY, check_allocation
from lancecodec import CodecError, json_text, utf8

__all__ = ["decode_array", "encode_array"]

#: Bytes that the output of either direction needs for a document of n bytes to be certain to fit, as factor and sum.
_FACTOR, _SLACK = 6, 64
_MAX_TEXT = 2**31 - 1


def encode_array(texts: pa.Array, where: str) -> pa.LargeBinaryArray:
    """Encode the documents of a column in binary form; nulls stay null.

    Parameters
    ----------
    texts
        Strings of any width.
    where
        Name of the column, for error messages.

    Raises
    ------
    SchemaError
        A text is not JSON, or an object has a key twice.
    UnsupportedError
        A document is nested too deeply or too large.
    """
    if pa.types.is_string_view(texts.type):
        texts = texts.cast(pa.large_string())
    given = _Values.of(texts)
    try:
        utf8.validate(given.data, given.offsets.data.cast("B"), True)
    except CodecError:
        texts.to_pylist()  # raises the error of the value
        raise
    found = given.converted(json_text.encode)
    parts = [given.validity, pa.py_buffer(found.ends), found.data]
    documents = pa.Array.from_buffers(pa.large_binary(), len(texts), parts, texts.null_count)
    return _completed(documents, texts, found.left, encode_document, where)


def decode_array(documents: pa.LargeBinaryArray, where: str) -> pa.StringArray:
    """Decode the documents of a column to compact text; nulls stay null.

    Parameters
    ----------
    documents
        Documents in binary form.
    where
        Name of the column, for error messages.

    Raises
    ------
    CorruptFileError
        A document is malformed.
    UnsupportedError
        A document holds a value that JSON does not have, or is nested too deeply.
    OversizeError
        The text takes more than 2 GiB.
    """
    given = _Values.of(documents)
    found = given.converted(json_text.decode)
    parts = [given.validity, pa.py_buffer(found.ends), found.data]
    kind = pa.large_string()
    texts = pa.Array.from_buffers(kind, len(documents), parts, documents.null_count)
    texts = _completed(texts, documents, found.left, decode_document, where)
    if texts.buffers()[2] is not None and texts.buffers()[2].size > _MAX_TEXT:
        raise OversizeError(f"{where}: the JSON text of {len(documents)} values takes more than 2 GiB; read fewer rows")
    return texts.cast(pa.string())


@dataclass(frozen=True)
class _Converted:
    """Results of compiled code.

    Attributes
    ----------
    data
        The results, back to back.
    ends
        Where they start and end.
    left
        Numbers of the values that compiled code left.
    """

    data: pa.Buffer
    ends: NDArray[np.int64]
    left: NDArray[np.int64]


@dataclass(frozen=True)
class _Values:
    """Strings or bytes of an array, as kernels take them; `offsets` begin at 0, and `skip` marks nulls."""

    data: memoryview
    offsets: NDArray[np.int64]
    skip: NDArray[np.bool_]
    validity: pa.Buffer | None

    @classmethod
    def of(cls, array: pa.Array) -> _Values:
        validity, offsets, data = array.buffers()
        if offsets is None or not len(array):
            return cls(memoryview(b""), np.zeros(1, np.int64), np.empty(0, np.bool_), None)
        is_wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
        numbers = np.frombuffer(offsets, np.int64 if is_wide else np.int32, len(array) + 1 + array.offset)
        numbers = numbers[array.offset :].astype(np.int64)
        start, stop = int(numbers[0]), int(numbers[-1])
        numbers -= start
        content = memoryview(b"") if data is None else octets(data)[max(start, 0) : max(stop, 0)]
        if not array.null_count or validity is None:
            return cls(content, numbers, np.empty(0, np.bool_), None)
        skip = array.is_null().to_numpy(zero_copy_only=False)
        return cls(content, numbers, skip, bitmap_at_zero(validity, array.offset, len(array)))

    def converted(self, kernel: Callable[..., int]) -> _Converted:
        """Apply a kernel to all values, with more space for the results as often as they need it."""
        count, row = len(self.offsets) - 1, 0
        ends, offsets = np.zeros(count + 1, np.int64), self.offsets.data.cast("B")
        out = _resizable(len(self.data) + len(self.data) // 4 + 16 * count + _SLACK)
        while (row := kernel(self.data, offsets, True, self.skip, row, octets(out), ends)) < count:
            expected = int(ends[row]) * count // max(row, 1)
            certain = int(ends[row]) + _FACTOR * int(self.offsets[row + 1] - self.offsets[row]) + _SLACK
            out = _grown(out, int(ends[row]), max(expected + expected // 16, certain, out.size + out.size // 4))
        out.resize(int(ends[-1]), shrink_to_fit=True)
        is_left = np.diff(ends) == 0
        if len(self.skip):
            is_left &= ~self.skip
        return _Converted(out, ends, np.flatnonzero(is_left))


def _resizable(size: int) -> Any:
    if size > BASE_MEMORY:
        check_allocation(size)
    return pa.allocate_buffer(size, resizable=True)


def _grown(out: Any, used: int, size: int) -> Any:
    """Return a larger buffer with the first bytes of another one."""
    larger = _resizable(size)
    octets(larger)[:used] = octets(out)[:used]
    return larger


def _completed(
    found: pa.Array, given: pa.Array, left: NDArray[np.int64], convert: Callable[[Any], Any], where: str
) -> pa.Array:
    """Convert the values that compiled code left, one by one."""
    if not len(left):
        return found
    values = []
    for row in left.tolist():
        try:
            values.append(convert(given[row].as_py()))
        except (SchemaError, UnsupportedError, CorruptFileError) as error:
            raise type(error)(f"{where}, value {row} of a batch: {error}") from error
    chosen = np.zeros(len(given), np.bool_)
    chosen[left] = True
    return pc.replace_with_mask(found, pa.array(chosen), pa.array(values, found.type))
