"""Values of a column as they are stored, and decoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from lance_dataset.file.dictionaries import decode_dictionary_array
from lance_dataset.read.concatenate import UnjoinableError, join_arrays, keep_rows
from lancecodec import OffsetOverflowError

__all__ = ["EncodedColumn", "EncodedValues", "decoded", "is_encoded"]

#: A column as `ColumnReader.read_encoded` returns it: arrays, some of which may be dictionary arrays.
EncodedValues: TypeAlias = "Sequence[pa.Array]"


def is_encoded(chunk: pa.Array) -> bool:
    """Return True if values are stored as indices into a dictionary."""
    return isinstance(chunk, pa.DictionaryArray)


def _plain(chunk: pa.Array, column: str) -> pa.Array:
    """Return the values of a chunk decoded from its dictionary."""
    if not is_encoded(chunk):
        return chunk
    try:
        return decode_dictionary_array(chunk)
    except (OffsetOverflowError, pa.ArrowInvalid, pa.ArrowCapacityError) as error:
        raise UnjoinableError(
            f"column {column!r}: the values do not fit one Arrow array of type {chunk.dictionary.type}, which ends at "
            "2 GiB; ask for fewer rows at a time, or store the column as large_string or large_binary",
            oversize=True,
        ) from error


def decoded(chunks: EncodedValues, column: str) -> pa.Array:
    """Return all values of a column as one array.

    Raises
    ------
    UnjoinableError
        The values do not fit one array.
    """
    plain = [_plain(chunk, column) for chunk in chunks]
    return join_arrays(plain, plain[0].type if plain else pa.null(), column)


class EncodedColumn:
    """Values of a column as they are stored, for callers that need only some of them decoded.

    Parameters
    ----------
    chunks
        The values; see `EncodedValues`.
    arrow_type
        Type of the decoded values.
    name
        Name of the column, for error messages.
    """

    __slots__ = ("_decoded", "arrow_type", "chunks", "name")

    def __init__(self, chunks: EncodedValues, arrow_type: pa.DataType, name: str) -> None:
        self.chunks = chunks
        self.arrow_type = arrow_type
        self.name = name
        self._decoded: pa.Array | None = None

    def __len__(self) -> int:
        return sum(len(chunk) for chunk in self.chunks)

    @property
    def is_encoded(self) -> bool:
        """True if all values are dictionary-encoded."""
        return all(is_encoded(chunk) for chunk in self.chunks)

    @property
    def nbytes(self) -> int:
        """Bytes of the values in their stored form."""
        return sum(chunk.nbytes for chunk in self.chunks)

    def decoded(self) -> pa.Array:
        """Return all values as one array.

        Raises
        ------
        UnjoinableError
            The values do not fit one array.
        """
        if self._decoded is None:
            self._decoded = join_arrays([self._plain(chunk) for chunk in self.chunks], self.arrow_type, self.name)
        return self._decoded

    def take(self, places: pa.Int64Array) -> pa.Array:
        """Return the values at ascending places as one array; errors as for `decoded`."""
        if self._decoded is not None:
            return self._decoded.take(places)
        if len(self.chunks) == 1:
            return self._plain(self.chunks[0].take(places))
        wanted = places.to_numpy()
        return join_arrays(
            [self._plain(part) for part in keep_rows(list(self.chunks), wanted)], self.arrow_type, self.name
        )

    def slice(self, first: int, length: int) -> EncodedColumn:
        """Return `length` values starting at `first`."""
        if self._decoded is not None:
            return EncodedColumn([self._decoded.slice(first, length)], self.arrow_type, self.name)
        found, base = [], 0
        for chunk in self.chunks:
            low, high = max(first - base, 0), min(first + length - base, len(chunk))
            if low < high:
                found.append(chunk.slice(low, high - low))
            base += len(chunk)
        return EncodedColumn(found, self.arrow_type, self.name)

    def _plain(self, chunk: pa.Array) -> pa.Array:
        return chunk if chunk.type.equals(self.arrow_type) else _plain(chunk, self.name)
