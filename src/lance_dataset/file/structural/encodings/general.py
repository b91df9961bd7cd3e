"""General compression (LZ4, Zstandard) of the output of another encoding: chunks, dictionary entries, single values."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.options import EncodingOptions
from lance_dataset.file.structural.arrays import binary_array
from lance_dataset.file.structural.encodings.base import Encoding, ParsePart, StoredValues
from lance_dataset.file.structural.encodings.byte_stream_split import ByteStreamSplit
from lance_dataset.file.structural.encodings.request import EncodedChunks, EncodedItems, Request, in_units
from lance_dataset.file.structural.encodings.rle import Rle
from lance_dataset.file.structural.encodings.values import Bytes, Strings
from lance_dataset.file.structural.encodings.variable import Variable
from lance_dataset.late_dataclass import dataclass
from lance_dataset.limits import check_memory, memory_allowance
from lancecodec import OffsetOverflowError, bitpacking, general
from lancecodec.general import Scheme

__all__ = ["General", "compress_items", "compressed", "compressed_entries", "smallest_compressed"]

_SCHEMES: dict[int, Scheme] = {1: "lz4", 2: "zstd"}
_SCHEME_NUMBERS = {name: number for number, name in _SCHEMES.items()}
#: Maximum decompressed bytes of the values of one read, as 64-bit offsets would allow anything.
_MAX_ITEM_BYTES = 1 << 34
#: Pages with fewer bytes are not compressed, as in the reference.
_LEAST_BYTES = 4096
_SAMPLE_BYTES = 1 << 20
#: Maximum size of compressed items as a share of their plain size.
_GENERAL_SHARE = 0.97
#: Maximum bytes of blocks whose content is kept, and of the content.
_SHORT_BLOCK = 1 << 10
_SHORT_CONTENT = 4 << 10


@dataclass(frozen=True)
class General(Encoding):
    """`values` with a buffer compressed by `scheme` ("lz4" or "zstd")."""

    scheme: Scheme
    values: Encoding
    level: int | None = None

    message_field = "general"

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> General:
        """See `Encoding.parse`."""
        number = message.compression.scheme
        if number not in _SCHEMES:
            raise UnsupportedError(f"compression scheme {number} is unknown")
        level = message.compression.level if message.compression.HasField("level") else None
        return cls(_SCHEMES[number], part(message, "values"), level)

    def to_message(self, pb: Any) -> Any:
        """See `Encoding.to_message`."""
        compression = pb.BufferCompression(scheme=_SCHEME_NUMBERS[self.scheme], level=self.level)
        return pb.CompressiveEncoding(general=pb.General(compression=compression, values=self.values.to_message(pb)))

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def inner(self) -> Encoding:
        """See `Encoding.inner`."""
        return self.values

    def decompress(self, data: pa.Buffer, max_size: int) -> pa.Buffer:
        """See `Encoding.decompress`."""
        # a copy, because the libraries do not expect that a mapped file changes while they read it
        return pa.py_buffer(general.decompress(self.scheme, bytes(data), max_size=max_size))

    def decompressed_size(self, data: bytes) -> int | None:
        """See `Encoding.decompressed_size`."""
        return general.decompressed_size(self.scheme, data)

    def decompress_first(self, data: bytes, size: int) -> bytes:
        """See `Encoding.decompress_first`."""
        return general.decompress_first(self.scheme, data, size)

    def variable_items(
        self,
        value_type: pa.DataType,
        offsets: pa.Buffer,
        wide: bool,
        data: pa.Buffer,
        length: int,
        validity: pa.Buffer | None,
        where: str,
    ) -> pa.Array:
        """See `Encoding.variable_items`."""
        if not is_binary_like(value_type):
            raise CorruptFileError(f"{where}: values of any length do not fit the type {value_type}")
        if not isinstance(self.values, Variable):
            raise UnsupportedError(f"{where}: compressed {type(self.values).__name__} values in a full-zip page")
        offsets, data = _decompress_items(self.scheme, offsets, wide, data, length, validity)
        return binary_array(value_type, length, offsets, data)

    def entries(self, buffer: pa.Buffer, size: int, value_type: pa.DataType, where: str) -> pa.Array:
        """See `Encoding.entries`."""
        return self.values.entries(self._decompressed_block(buffer, where), size, value_type, where)

    def taken_entries(self, buffer: pa.Buffer, size: int, bits: int, most_bytes: int) -> pa.Buffer | bytes:
        """See `Encoding.taken_entries`."""
        stored = buffer.to_pybytes()
        short = len(stored) <= _SHORT_BLOCK and most_bytes >= _SHORT_CONTENT
        block = _short_block(self.scheme, stored) if short else None
        if block is None:
            block = general.decompress(self.scheme, stored, max_size=most_bytes)
        return self.values.taken_entries(pa.py_buffer(block), size, bits, most_bytes)

    def planar_entries(self, buffer: pa.Buffer, size: int, value_type: pa.DataType, where: str) -> pa.Array:
        """See `Encoding.planar_entries`."""
        return self.values.planar_entries(self._decompressed_block(buffer, where), size, value_type, where)

    def _decompressed_block(self, buffer: pa.Buffer, where: str) -> pa.Buffer:
        """Return the block of a dictionary, raise MemoryLimitError if it is too large."""
        data = buffer.to_pybytes()
        size = self.decompressed_size(data)
        if size is not None:
            check_memory(2 * size, len(data), f"{where}: its dictionary")  # decompressed, and decoded
        return self.decompress(pa.py_buffer(data), memory_allowance(len(data)) if size is None else size)

    @property
    def integer_bits(self) -> int:
        """See `Encoding.integer_bits`."""
        return self.values.integer_bits

    def integers(self, payload: pa.Buffer | None, count: int, bits: int) -> pa.Buffer:
        """See `Encoding.integers`."""
        self.check_integers(payload, bits)
        inner = self.values
        if not (isinstance(inner, Rle) or (inner.is_simple_part and inner.has_payload)):
            raise UnsupportedError(f"compressed {type(inner).__name__} encoding of integers")
        # Inner encodings are never larger than the integers themselves, except for block padding and run lengths.
        limit = 2 * count * bits // 8 + bitpacking.BLOCK_VALUES * bits // 8 + 16
        return inner.integers(self.decompress(payload, limit), count, bits)

    # -- report --------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        level = "" if self.level is None else f" {self.level}"
        return f"{self.scheme}{level}({self.values.text})"

    def reason(self, stored: StoredValues) -> str:
        """See `Encoding.reason`."""
        what = " after byte-stream split" if isinstance(self.values, ByteStreamSplit) else ""
        return f"{self.scheme} makes it smaller{what}: {stored.sizes()}"

    def run_count(self, sizes: NDArray[np.int64]) -> int | None:
        """See `Encoding.run_count`."""
        return self.values.run_count(sizes)


@lru_cache(maxsize=1024)
def _short_block(scheme: Scheme, stored: bytes) -> bytes | None:
    """Return the content of a block, None if it is not short. Many pages and fragments have the same few entries."""
    size = general.decompressed_size(scheme, stored)
    if size is None or size > _SHORT_CONTENT:
        return None
    return general.decompress(scheme, stored, max_size=size)


def _decompress_items(
    scheme: Scheme, offsets: pa.Buffer, wide: bool, data: pa.Buffer, length: int, validity: pa.Buffer | None
) -> tuple[pa.Buffer, pa.Buffer]:
    kind = np.int64 if wide else np.int32
    ends = np.frombuffer(offsets, kind, length + 1)[1:].astype(np.int64)
    plain_ends = np.empty(length, np.int64)
    total = general.decompressed_ends(scheme, data, ends.data, plain_ends.data, _MAX_ITEM_BYTES, 0, validity)
    if not wide and total > np.iinfo(np.int32).max:
        raise OffsetOverflowError("the decompressed values have more than 2**31 - 1 bytes")
    out = allocate(total)
    general.decompress_units(scheme, data, ends.data, plain_ends.data, out)
    return pa.py_buffer(np.concatenate([[0], plain_ends]).astype(kind)), out


# -- writing -----------------------------------------------------------------------------------------------------


def compressed(encoded: EncodedChunks, request: Request) -> EncodedChunks:
    """Return the chunks with their first buffer compressed if that was requested and pays, otherwise unchanged."""
    options = request.options
    if options.compression not in ("lz4", "zstd") or isinstance(encoded.encoding, General):  # once is enough
        return encoded
    data, ends = encoded.buffers[0]
    if memoryview(data).nbytes < _LEAST_BYTES:
        return encoded
    scheme: Scheme = "lz4" if options.compression == "lz4" else "zstd"
    new_ends = np.empty(len(ends), np.int64)
    stops = np.ascontiguousarray(ends, np.int64).data
    units = general.compress_units(scheme, options.compression_level, data, stops, new_ends.data)
    wrapped = replace(
        encoded,
        encoding=General(scheme, encoded.encoding, options.compression_level),
        buffers=[(units, new_ends), *encoded.buffers[1:]],
        full=0,
        reason=f"{encoded.reason}, {scheme} compressed",
    )
    return wrapped if request.size(wrapped) < request.size(encoded) and request.fits(wrapped) else encoded


def smallest_compressed(choices: list[EncodedChunks], request: Request) -> EncodedChunks:
    """Return the choice that is smallest when compressed if that was requested."""
    return min((compressed(one, request) for one in choices), key=request.size)


def compress_items(plain: EncodedItems, strings: Strings, options: EncodingOptions) -> EncodedItems:
    """Compress the strings of a full-zip page one by one with Zstandard if a sample shows that it pays.

    The reference does the same, even if LZ4 is requested, which finds little in a single value.
    """
    scheme: Scheme = "zstd"
    level = options.compression_level or 0
    kind = np.dtype(np.int64 if strings.wide else np.int32)
    bounds = np.frombuffer(strings.offsets, kind).astype(np.int64)
    ends = np.empty(strings.count, np.int64)
    sampled = max(1, int(np.searchsorted(bounds, bounds[0] + _SAMPLE_BYTES)))
    if sampled < strings.count:
        stops, places = bounds[1 : sampled + 1].data, ends[:sampled].data
        trial = general.compress_units(scheme, level, strings.data, stops, places, int(bounds[0]))
        if len(trial) > _GENERAL_SHARE * int(bounds[sampled] - bounds[0]):
            return plain
    stops, places = bounds[1:].data, ends.data
    units = general.compress_units(scheme, level, strings.data, stops, places, int(bounds[0]), strings.validity)
    if len(units) > _GENERAL_SHARE * strings.total:
        return plain
    offsets = np.zeros(strings.count + 1, kind)
    offsets[1:] = ends
    reason = f"{scheme} value by value: {in_units(len(units))} instead of {in_units(strings.total)}"
    encoding = General(scheme, plain.encoding, level)
    return replace(plain, encoding=encoding, values=units, offsets=pa.py_buffer(offsets), reason=reason)


def compressed_entries(encoding: Encoding, block: Bytes, request: Request) -> list[tuple[Encoding, Bytes]]:
    """Compress dictionary entries as the metadata says, else in both ways: they are decompressed only once."""
    options = request.options
    if not request.large or options.dictionary_compression == "none":
        return []
    schemes: tuple[Scheme, ...] = ("lz4", "zstd")
    if options.dictionary_compression is not None:
        schemes = ("zstd",) if options.dictionary_compression == "zstd" else ("lz4",)
    level = options.dictionary_compression_level
    return [(General(scheme, encoding, level), general.compress(scheme, level, block)) for scheme in schemes]
