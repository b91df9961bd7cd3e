"""Values of the chunks of a mini-block page as Arrow arrays, one class per shape of value."""

from __future__ import annotations

import abc

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import allocate, octets
from lance_dataset.file.cache import lazy
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.v2_1.compressive import (
    ByteStreamSplit,
    Encoding,
    FixedSizeList,
    Flat,
    Fsst,
    InlineBitpacking,
    PackedStruct,
    Rle,
    Variable,
)
from lance_dataset.file.v2_1.read.arrays import (
    BinaryDictionary,
    FixedSizeListShape,
    binary_array,
    dictionary_array,
    fixed_array,
    packed_array,
    value_bits,
)
from lancecodec import CodecError, OffsetOverflowError, gather, miniblock_values
from lancecodec.miniblock import Chunks
from lancecodec.miniblock_values import FixedValues, VariableValues

__all__ = ["ChunkValues", "count_buffers", "fixed_codec", "open_values", "stored_bits"]

_BLOCK_VALUES = 1024
_LONGEST_RUN = 255
#: Most bytes behind 32-bit offsets.
_MAX_NARROW = 2**31 - 1
#: Up to so many strings a pass for their size costs less than room for the longest that codes may stand for.
_FEW_VALUES = 1 << 15


class ChunkValues(abc.ABC):
    """Values of a page, of which the chunks asked for must be at hand."""

    @abc.abstractmethod
    def scan(self, start: int, stop: int, validity: pa.Buffer | None = None) -> pa.Array:
        """Values ``[start, stop)`` without nulls.

        `validity` says which of them are null, where that matters: a null may have a dictionary index that none has.
        """

    def scan_encoded(self, start: int, stop: int, validity: pa.Buffer | None = None) -> pa.Array:
        """The same, as a dictionary array where there is a dictionary of plain values."""
        return self.scan(start, stop, validity)

    @abc.abstractmethod
    def take(self, items: NDArray[np.int64], validity: pa.Buffer | None = None) -> pa.Array:
        """Values at `items`, in that order; `validity` as for `scan`."""


def count_buffers(encoding: Encoding) -> int:
    """Value buffers of a chunk."""
    if isinstance(encoding, Rle):
        return 2
    count = 1
    while isinstance(encoding, FixedSizeList):
        count += encoding.has_validity
        encoding = encoding.values
    return count


def stored_bits(encoding: Encoding) -> list[float]:
    """Bits that a value has at least in each value buffer of a chunk, as far as its encoding tells."""
    if isinstance(encoding, Flat | ByteStreamSplit):
        return [encoding.bits]
    if isinstance(encoding, PackedStruct):
        return [sum(encoding.bits)]
    if isinstance(encoding, Variable | Fsst):
        return [64 if (encoding.values if isinstance(encoding, Fsst) else encoding).wide else 32]
    if isinstance(encoding, InlineBitpacking):
        return [encoding.bits / _BLOCK_VALUES]  # a header per block
    if isinstance(encoding, Rle) and isinstance(encoding.values, Flat):
        return [encoding.values.bits / _LONGEST_RUN, 8 / _LONGEST_RUN]
    bits: list[float] = []
    count = 1
    while isinstance(encoding, FixedSizeList):
        count *= encoding.dimension
        bits += [count] * encoding.has_validity
        encoding = encoding.values
    return [*bits, count * encoding.bits] if isinstance(encoding, Flat) else bits


def open_values(
    encoding: Encoding, chunks: Chunks, value_type: pa.DataType, dictionary: pa.Array | None, where: str
) -> ChunkValues:
    """What decodes the values of some chunks.

    Raises
    ------
    CorruptFileError
        The encoding does not fit the type.
    UnsupportedError
        The format does not have it, or this release does not read it, in chunks.
    """
    if dictionary is not None:
        return _DictionaryValues(encoding, chunks, value_type, dictionary, where)
    if isinstance(encoding, FixedSizeList):
        return _ListValues(encoding, chunks, value_type, where)
    if isinstance(encoding, PackedStruct):
        return _PackedValues(encoding, chunks, value_type, where)
    if isinstance(encoding, Variable | Fsst):
        if not is_binary_like(value_type):
            raise CorruptFileError(f"{where}: variable-width values do not fit the type {value_type}")
        return _BinaryValues(encoding, chunks, value_type, where)
    values, bits = _open_fixed(encoding, chunks, where)
    if bits != value_bits(value_type):
        raise CorruptFileError(f"{where}: values of {bits} bits do not fit the type {value_type}")
    return _PlainValues(values, bits, value_type)


def _open_fixed(encoding: Encoding, chunks: Chunks, where: str) -> tuple[FixedValues, int]:
    """Decoder of fixed-width values, and their width."""
    kind, bits = fixed_codec(encoding, where)
    return FixedValues(chunks, kind, bits), bits


def fixed_codec(encoding: Encoding, where: str) -> tuple[int, int]:
    """The codec of fixed-width values as the kernels number it, and their width; raises as `open_values`."""
    if isinstance(encoding, Flat):
        return miniblock_values.FLAT, encoding.bits
    if isinstance(encoding, InlineBitpacking):
        return miniblock_values.INLINE, encoding.bits
    if isinstance(encoding, ByteStreamSplit):
        return miniblock_values.SPLIT, encoding.bits
    if isinstance(encoding, Rle):
        if not isinstance(encoding.values, Flat) or encoding.lengths != Flat(8):
            raise UnsupportedError(f"{where}: run-length encoding with encoded parts exists in file version 2.3 only")
        return miniblock_values.RLE, encoding.values.bits
    raise UnsupportedError(f"{where}: encoding {type(encoding).__name__} cannot be read in chunks")


class _PlainValues(ChunkValues):
    """Numbers, booleans, and all else of one width."""

    def __init__(self, values: FixedValues, bits: int, value_type: pa.DataType) -> None:
        self._values = values
        self._bits = bits
        self._type = value_type

    def scan(self, start: int, stop: int, validity: pa.Buffer | None = None) -> pa.Array:
        out = allocate(((stop - start) * self._bits + 7) // 8)
        self._values.scan(start, stop, out)
        return fixed_array(self._type, stop - start, out)

    def take(self, items: NDArray[np.int64], validity: pa.Buffer | None = None) -> pa.Array:
        out = allocate((len(items) * self._bits + 7) // 8)
        self._values.take(items, out)
        return fixed_array(self._type, len(items), out)


class _BinaryValues(ChunkValues):
    """Strings and binaries, plain or as FSST codes."""

    def __init__(self, encoding: Variable | Fsst, chunks: Chunks, value_type: pa.DataType, where: str) -> None:
        table = encoding.symbol_table if isinstance(encoding, Fsst) else None
        stored = encoding.values if isinstance(encoding, Fsst) else encoding
        if not isinstance(stored.offsets, Flat):
            raise UnsupportedError(f"{where}: encoded offsets exist in file version 2.3 only")
        self._values = VariableValues(chunks, stored.wide, table)
        self._type = value_type
        self._wide = is_wide(value_type)

    def scan(self, start: int, stop: int, validity: pa.Buffer | None = None) -> pa.Array:
        offsets = allocate((stop - start + 1) * (8 if self._wide else 4))
        if stop - start < _FEW_VALUES:
            data = allocate(self._values.size(start, stop))
            self._values.scan(start, stop, self._wide, offsets, data, exact=True)
        else:
            data = self._scan_once(start, stop, offsets)
        return binary_array(self._type, stop - start, offsets, data)

    def _scan_once(self, start: int, stop: int, offsets: pa.Buffer) -> pa.Buffer:
        """Offsets and bytes without a pass for the size: what is too much in the end is memory hardly ever touched."""
        room = self._values.estimate(start, stop)
        data = pa.allocate_buffer(room if self._wide else min(room, _MAX_NARROW), resizable=True)
        done, size = self._values.scan(start, stop, self._wide, offsets, data)
        if done < stop:
            rest = self._values.size(done, stop)
            if not self._wide and size + rest > _MAX_NARROW:
                raise OffsetOverflowError("the values have more than 2**31 - 1 bytes")
            data.resize(size + rest)
            places = octets(offsets)[(done - start) * (8 if self._wide else 4) :]
            self._values.scan(done, stop, self._wide, places, octets(data)[size:], size, exact=True)
            size += rest
        return data.slice(0, size)

    def take(self, items: NDArray[np.int64], validity: pa.Buffer | None = None) -> pa.Array:
        offsets = allocate((len(items) + 1) * (8 if self._wide else 4))
        data = allocate(self._values.take_offsets(items, self._wide, offsets))
        self._values.take_bytes(items, data)
        return binary_array(self._type, len(items), offsets, data)


class _DictionaryValues(ChunkValues):
    """Indices into a dictionary, as such or resolved."""

    def __init__(
        self, encoding: Encoding, chunks: Chunks, value_type: pa.DataType, dictionary: pa.Array, where: str
    ) -> None:
        self._values, self._bits = _open_fixed(encoding, chunks, where)
        if self._bits not in (8, 16, 32, 64):
            raise CorruptFileError(f"{where}: dictionary indices of {self._bits} bits")
        if isinstance(value_type, pa.DictionaryType) and value_type.index_type.bit_width != self._bits:
            raise CorruptFileError(f"{where}: dictionary indices of {self._bits} bits do not fit the type {value_type}")
        self._type = value_type
        self._dictionary = dictionary

    def scan(self, start: int, stop: int, validity: pa.Buffer | None = None) -> pa.Array:
        indices = allocate((stop - start) * self._bits // 8)
        self._values.scan(start, stop, indices)
        return self._resolve(indices, stop - start, validity)

    def scan_encoded(self, start: int, stop: int, validity: pa.Buffer | None = None) -> pa.Array:
        length, entries = stop - start, len(self._dictionary)
        if pa.types.is_nested(self._type) or pa.types.is_dictionary(self._type) or entries > length:
            return self.scan(start, stop, validity)
        indices = allocate(length * self._bits // 8)
        self._values.scan(start, stop, indices)
        miniblock_values.check_indices(indices, self._bits, length, entries, validity)
        kind = pa.dictionary(pa.type_for_alias(f"uint{self._bits}"), self._type)
        return dictionary_array(kind, indices, length, self._dictionary)

    def take(self, items: NDArray[np.int64], validity: pa.Buffer | None = None) -> pa.Array:
        indices = allocate(len(items) * self._bits // 8)
        self._values.take(items, indices)
        return self._resolve(indices, len(items), validity)

    @lazy
    def _strings(self) -> BinaryDictionary:
        return BinaryDictionary(self._dictionary)

    def _resolve(self, indices: pa.Buffer, length: int, validity: pa.Buffer | None) -> pa.Array:
        dictionary = self._dictionary
        if isinstance(self._type, pa.DictionaryType):
            # Stored indices have no sign, those of Arrow may have one.
            most = 1 << (self._bits - pa.types.is_signed_integer(self._type.index_type))
            miniblock_values.check_indices(indices, self._bits, length, min(len(dictionary), most), validity)
            return dictionary_array(self._type, indices, length, dictionary)
        if is_binary_like(self._type):
            return self._strings.resolve(indices, self._bits, length, validity)
        if pa.types.is_fixed_size_list(self._type):
            miniblock_values.check_indices(indices, self._bits, length, len(dictionary), validity)
            kind = pa.type_for_alias(f"uint{self._bits}")
            return dictionary.take(pa.Array.from_buffers(kind, length, [None, indices]))
        return _gather_fixed(dictionary, indices, self._bits, length, validity)


def _gather_fixed(
    dictionary: pa.Array, indices: pa.Buffer, index_bits: int, length: int, validity: pa.Buffer | None
) -> pa.Array:
    width = value_bits(dictionary.type) // 8
    if width == 0:
        raise CodecError(f"a dictionary of {dictionary.type} values")
    out = allocate(length * width)
    values = dictionary.buffers()[1].slice(dictionary.offset * width, len(dictionary) * width)
    gather.fixed(values, width, indices, index_bits // 8, out, validity)
    return fixed_array(dictionary.type, length, out)


class _ListValues(ChunkValues):
    """Fixed-size lists of fixed-width items."""

    def __init__(self, encoding: FixedSizeList, chunks: Chunks, value_type: pa.DataType, where: str) -> None:
        dimensions, has_validity = [], []
        inner: Encoding = encoding
        while isinstance(inner, FixedSizeList):
            dimensions.append(inner.dimension)
            has_validity.append(inner.has_validity)
            inner = inner.values
        self._shape = shape = FixedSizeListShape(value_type, dimensions, has_validity, where)
        if not isinstance(inner, Flat) or inner.bits != value_bits(shape.item_type):
            raise CorruptFileError(f"{where}: items {inner} do not fit the type {value_type}")
        self._bits = inner.bits
        self._bitmaps: list[FixedValues | None] = []
        buffer = 0
        for count, stored in zip(shape.counts, has_validity, strict=True):
            self._bitmaps.append(FixedValues(chunks, miniblock_values.FLAT, count, buffer) if stored else None)
            buffer += stored
        self._values = FixedValues(chunks, miniblock_values.FLAT, shape.counts[-1] * inner.bits, buffer)

    def scan(self, start: int, stop: int, validity: pa.Buffer | None = None) -> pa.Array:
        length = stop - start
        outputs = self._allocate(length)
        for values, out in zip([*self._bitmaps, self._values], outputs, strict=True):
            if values is not None and out is not None:
                values.scan(start, stop, out)
        return self._assemble(length, outputs)

    def take(self, items: NDArray[np.int64], validity: pa.Buffer | None = None) -> pa.Array:
        outputs = self._allocate(len(items))
        for values, out in zip([*self._bitmaps, self._values], outputs, strict=True):
            if values is not None and out is not None:
                values.take(items, out)
        return self._assemble(len(items), outputs)

    def _allocate(self, length: int) -> list[pa.Buffer | None]:
        """A bitmap per dimension that has one, and the values."""
        counts = self._shape.counts
        bitmaps = [
            None if values is None else allocate((length * count + 7) // 8)
            for values, count in zip(self._bitmaps, counts, strict=True)
        ]
        return [*bitmaps, allocate((length * counts[-1] * self._bits + 7) // 8)]

    def _assemble(self, length: int, outputs: list[pa.Buffer | None]) -> pa.Array:
        items = fixed_array(self._shape.item_type, length * self._shape.counts[-1], outputs[-1])
        return self._shape.assemble(length, outputs[:-1], items)


class _PackedValues(ChunkValues):
    """Structs stored row by row."""

    def __init__(self, encoding: PackedStruct, chunks: Chunks, value_type: pa.DataType, where: str) -> None:
        widths = [bits // 8 for bits in encoding.bits]
        if not pa.types.is_struct(value_type) or [value_bits(child.type) // 8 for child in value_type] != widths:
            raise CorruptFileError(f"{where}: rows of {encoding.bits} bits do not fit the type {value_type}")
        self._rows = FixedValues(chunks, miniblock_values.FLAT, sum(encoding.bits))
        self._widths = widths
        self._type = value_type

    def scan(self, start: int, stop: int, validity: pa.Buffer | None = None) -> pa.Array:
        rows = allocate((stop - start) * sum(self._widths))
        self._rows.scan(start, stop, rows)
        return packed_array(self._type, self._widths, rows, stop - start)

    def take(self, items: NDArray[np.int64], validity: pa.Buffer | None = None) -> pa.Array:
        rows = allocate(len(items) * sum(self._widths))
        self._rows.take(items, rows)
        return packed_array(self._type, self._widths, rows, len(items))
