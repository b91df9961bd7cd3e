"""Mini-block pages with a dictionary, whose values are indices of its entries."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.structural.arrays import BinaryDictionary, dictionary_array, resolve_fixed
from lance_dataset.file.structural.encodings.base import ChunkValues, Encoding, TakenLevels
from lance_dataset.file.take_shape import TakeShape
from lance_dataset.properties import cached_property
from lancecodec import miniblock_values, take_pages
from lancecodec.miniblock import Chunks
from lancecodec.miniblock_values import FixedValues
from lancecodec.take_pages import PageTaker

__all__ = ["DictionaryValues", "indices_taker"]


class DictionaryValues(ChunkValues):
    """Indices into a dictionary, returned as such or resolved."""

    def __init__(
        self, encoding: Encoding, chunks: Chunks, value_type: pa.DataType, dictionary: pa.Array, where: str
    ) -> None:
        kind, self._bits = encoding.chunk_codec(where)
        self._values = FixedValues(chunks, kind, self._bits)
        if self._bits not in (8, 16, 32, 64):
            raise CorruptFileError(f"{where}: dictionary indices of {self._bits} bits")
        if isinstance(value_type, pa.DictionaryType) and value_type.index_type.bit_width != self._bits:
            raise CorruptFileError(f"{where}: dictionary indices of {self._bits} bits do not fit the type {value_type}")
        self._type = value_type
        self._dictionary = dictionary

    def scan(self, start: int, stop: int, validity: pa.Buffer | None = None) -> pa.Array:
        """See `ChunkValues.scan`."""
        indices = allocate((stop - start) * self._bits // 8)
        self._values.scan(start, stop, indices)
        return self._resolve(indices, stop - start, validity)

    def scan_encoded(self, start: int, stop: int, validity: pa.Buffer | None = None) -> pa.Array:
        """See `ChunkValues.scan_encoded`."""
        length, entries = stop - start, len(self._dictionary)
        if pa.types.is_nested(self._type) or pa.types.is_dictionary(self._type) or entries > length:
            return self.scan(start, stop, validity)
        indices = allocate(length * self._bits // 8)
        self._values.scan(start, stop, indices)
        miniblock_values.check_indices(indices, self._bits, length, entries, validity)
        kind = pa.dictionary(pa.type_for_alias(f"uint{self._bits}"), self._type)
        return dictionary_array(kind, indices, length, self._dictionary)

    def take(self, items: NDArray[np.int64], validity: pa.Buffer | None = None) -> pa.Array:
        """See `ChunkValues.take`."""
        indices = allocate(len(items) * self._bits // 8)
        self._values.take(items, indices)
        return self._resolve(indices, len(items), validity)

    @cached_property
    def _strings(self) -> BinaryDictionary:
        return BinaryDictionary(self._dictionary)

    def _resolve(self, indices: pa.Buffer, length: int, validity: pa.Buffer | None) -> pa.Array:
        dictionary = self._dictionary
        if isinstance(self._type, pa.DictionaryType):
            # Stored indices are unsigned, those of Arrow may be signed.
            most = 1 << (self._bits - pa.types.is_signed_integer(self._type.index_type))
            miniblock_values.check_indices(indices, self._bits, length, min(len(dictionary), most), validity)
            return dictionary_array(self._type, indices, length, dictionary)
        if is_binary_like(self._type):
            return self._strings.resolve(indices, self._bits, length, validity)
        if pa.types.is_fixed_size_list(self._type):
            miniblock_values.check_indices(indices, self._bits, length, len(dictionary), validity)
            kind = pa.type_for_alias(f"uint{self._bits}")
            return dictionary.take(pa.Array.from_buffers(kind, length, [None, indices]))
        return resolve_fixed(dictionary, indices, self._bits, length, validity)


def indices_taker(
    encoding: Encoding,
    chunks: Chunks,
    shape: TakeShape,
    dictionary: pa.Array,
    levels: TakenLevels,
    required: bool,
    where: str,
) -> PageTaker | None:
    """Open random access that returns the entries to which indices point; see `Encoding.take_chunks`."""
    kind, bits = encoding.chunk_codec(where)
    if bits not in (8, 16, 32, 64) or shape.dimensions or shape.width == 0:
        return None
    count = len(dictionary)
    if shape.width > 0:
        values = dictionary.buffers()[1]
        entries = b"" if values is None else values.slice(dictionary.offset * shape.width, count * shape.width)
        return take_pages.fixed_chunks(
            chunks,
            shape.width,
            kind,
            bits,
            definition=levels[0],
            entries=entries,
            count=count,
            lists=levels[1],
            required=required,
        )
    wide = is_wide(dictionary.type)
    _, offsets, data = dictionary.buffers()
    size = 8 if wide else 4
    ends = bytes(size) if offsets is None else offsets.slice(dictionary.offset * size, (count + 1) * size)
    return take_pages.fixed_chunks(
        chunks,
        shape.width,
        kind,
        bits,
        definition=levels[0],
        entries=b"" if data is None else data,
        offsets=ends,
        wide=wide,
        count=count,
        lists=levels[1],
        required=required,
    )
