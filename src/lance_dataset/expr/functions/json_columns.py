"""Values at a path of all documents of a column, found by compiled code without decoding the documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import octets
from lance_dataset.properties import cached_property
from lancecodec import CodecError, jsonb, utf8

__all__ = ["LocatedValues", "data_of", "described_steps", "located", "typed_members"]

#: Number of an element above that of every element of a document.
_BEYOND = 1 << 40


@dataclass(frozen=True)
class LocatedValues:
    """Values at a path of documents.

    Attributes
    ----------
    documents
        The documents.
    kinds
        Kinds of the values, see `lancecodec.jsonb.find`. Null documents have no value.
    integers
        Values of integers; the bits of floats, and arbitrary numbers for other values.
    ranges
        Where the bytes of each value start and end in the data of the documents.
    """

    documents: pa.Array
    kinds: NDArray[np.uint8]
    integers: NDArray[np.int64]
    ranges: NDArray[np.int64]

    def has_kind(self, *kinds: int) -> NDArray[np.bool_]:
        """Return for each document whether its value is of one of some kinds."""
        table = np.zeros(256, np.bool_)
        table[list(kinds)] = True
        return table[self.kinds]

    @cached_property
    def floats(self) -> NDArray[np.float64]:
        """Values of numbers as floats, arbitrary ones for other documents."""
        found = np.where(self.kinds == jsonb.UNSIGNED, self.integers.view(np.uint64), 0).astype(np.float64)
        found = np.where(self.kinds == jsonb.INTEGER, self.integers.astype(np.float64), found)
        return np.where(self.kinds == jsonb.FLOAT, self.integers.view(np.float64), found)

    def strings(self, chosen: NDArray[np.bool_]) -> pa.StringArray:
        """Return the strings of the chosen documents, all of which must have one, and nulls for the others.

        Raises
        ------
        CorruptFileError
            A string is not UTF-8.
        """
        data, count = octets(data_of(self.documents)), len(self.kinds)
        lengths = self.ranges[1::2] - self.ranges[::2]
        out, ends = pa.allocate_buffer(int(lengths.sum())), np.zeros(count + 1, np.int64)
        jsonb.strings(
            data, np.where(chosen, self.kinds, jsonb.MISSING).astype(np.uint8), self.ranges, octets(out), ends
        )
        try:
            utf8.validate(octets(out), ends.data.cast("B"), True)
        except CodecError:
            raise CorruptFileError("a JSON string is not UTF-8") from None
        validity = None if chosen.all() else pa.py_buffer(np.packbits(chosen, bitorder="little"))
        texts = pa.Array.from_buffers(pa.large_string(), count, [validity, pa.py_buffer(ends), out])
        return texts.cast(pa.string())


def located(documents: pa.Array, steps: Sequence[tuple[str | None, int | None]]) -> LocatedValues:
    """Find the value at a path of each document.

    Parameters
    ----------
    documents
        Documents in binary form, of either width.
    steps
        Steps from the outside to the inside. Each has the key to use in objects, the place to use in arrays, or both.
    """
    count = len(documents)
    keys, described = described_steps(steps)
    kinds, words, ranges = np.empty(count, np.uint8), np.empty(count, np.int64), np.empty(2 * count, np.int64)
    offsets = documents.buffers()[1]
    if count and offsets is not None:
        wide = pa.types.is_large_binary(documents.type)
        first = octets(offsets)[(8 if wide else 4) * documents.offset :]
        jsonb.find(octets(data_of(documents)), first, wide, keys, described, kinds, words, ranges)
    if documents.null_count:
        kinds[documents.is_null().to_numpy(zero_copy_only=False)] = jsonb.MISSING
    return LocatedValues(documents, kinds, words, ranges)


def described_steps(steps: Sequence[tuple[str | None, int | None]]) -> tuple[bytes, NDArray[np.int64]]:
    """Return steps as `lancecodec.jsonb` takes them: the keys back to back, and three numbers for each step."""
    names = [b"" if key is None else key.encode() for key, _ in steps]
    ends = np.cumsum([len(name) for name in names], dtype=np.int64)
    described = np.full((len(steps), 3), -1, np.int64)
    for number, (key, place) in enumerate(steps):
        if key is not None:
            described[number, :2] = ends[number] - len(names[number]), ends[number]
        if place is not None:
            described[number, 2] = min(max(place, -1), _BEYOND)
    return b"".join(names), described.ravel()


def typed_members(documents: pa.Array, key: str, place: int | None, kind: pa.DataType) -> tuple[pa.Array, _Rows]:
    """Read the value under a key of each document as a type, as far as that needs no conversion.

    Parameters
    ----------
    documents
        Documents in binary form.
    key
        The key to use in objects.
    place
        The place to use in arrays; None for none.
    kind
        Type of the values: int64, float64, bool or string.

    Returns
    -------
    values
        The values.
    left
        Documents whose value is of another type, or not known here; they are null among the values.
    """
    found = located(documents, [(key, place)])
    if kind == pa.int64():
        jsonb.digits(octets(data_of(documents)), found.kinds, found.integers, found.ranges)
    known = found.has_kind(*_KINDS[kind])
    left = np.flatnonzero(~(known | found.has_kind(jsonb.MISSING, jsonb.NULL_VALUE)))
    is_true = found.kinds == jsonb.TRUE
    if kind == pa.int64():
        return pa.array(np.where(found.kinds == jsonb.INTEGER, found.integers, is_true), mask=~known), left
    if kind == pa.float64():
        return pa.array(np.where(found.has_kind(*_NUMBERS), found.floats, is_true), mask=~known), left
    if kind == pa.bool_():
        return pa.array(is_true, mask=~known), left
    return found.strings(known), left


_Rows: TypeAlias = "NDArray[np.int64]"
_NUMBERS = (jsonb.INTEGER, jsonb.UNSIGNED, jsonb.FLOAT)
_TRUTHS = (jsonb.FALSE, jsonb.TRUE)
#: Kinds of values that each type has without a conversion of text.
_KINDS = {
    pa.int64(): (jsonb.INTEGER, *_TRUTHS),
    pa.float64(): (*_NUMBERS, *_TRUTHS),
    pa.bool_(): _TRUTHS,
    pa.string(): (jsonb.STRING,),
}


def data_of(documents: pa.Array) -> pa.Buffer:
    """Return the bytes of all documents of an array."""
    data = documents.buffers()[2]
    return pa.py_buffer(b"") if data is None else data
