"""Variable: values of variable length with offsets."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import allocate, octets, private_copy
from lance_dataset.file.kinds import is_binary_like, is_text, is_wide
from lance_dataset.file.sizes import size_text
from lance_dataset.file.structural.arrays import binary_array, empty_array
from lance_dataset.file.structural.encodings.base import (
    ChunkValues,
    Encoding,
    ParsePart,
    StoredValues,
    TakenLevels,
    check_no_compression,
)
from lance_dataset.file.structural.encodings.flat import Flat
from lance_dataset.file.structural.encodings.request import (
    CHUNK_BYTES,
    Candidate,
    EncodedChunks,
    EncodedItems,
    Request,
    TextEncoding,
    in_units,
)
from lance_dataset.file.structural.encodings.values import Bytes, Strings
from lance_dataset.file.take_shape import TakeShape
from lance_dataset.late_dataclass import dataclass
from lancecodec import OffsetOverflowError, take_pages, variable
from lancecodec.miniblock import Chunks
from lancecodec.miniblock_values import VariableValues
from lancecodec.take_pages import PageTaker

__all__ = [
    "StringEncoding",
    "Variable",
    "encode_entries",
    "offsets_of",
    "plain_candidate",
    "plain_items",
    "plan_chunks",
    "text_chunks",
]

#: Number of values of each chunk, and the byte where it ends.
ChunkPlan: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.int64]]"

#: Maximum bytes with 32-bit offsets.
_MAX_NARROW = 2**31 - 1
#: Up to this many strings, computing their size costs less than room for the longest strings codes may stand for.
_FEW_VALUES = 1 << 15
_MOST_VALUES = 8192


class StringEncoding(TextEncoding):
    """Strings and binaries with offsets, plain or as codes."""

    is_text = True

    def most_chunk_bytes(self, count: int, where: str) -> None:
        """See `Encoding.most_chunk_bytes`."""

    def open_chunks(self, chunks: Chunks, value_type: pa.DataType, where: str) -> ChunkValues:
        """See `Encoding.open_chunks`."""
        if not is_binary_like(value_type):
            raise CorruptFileError(f"{where}: variable-width values do not fit the type {value_type}")
        return _TextValues(VariableValues(chunks, *self.text_codec(where)), value_type)

    def take_chunks(
        self,
        chunks: Chunks,
        shape: TakeShape,
        value_type: pa.DataType,
        levels: TakenLevels,
        required: bool,
        where: str,
    ) -> PageTaker | None:
        """See `Encoding.take_chunks`."""
        if not is_binary_like(value_type):
            return None
        wide, table = self.text_codec(where)
        return take_pages.text_chunks(
            chunks, wide, symbol_table=table, definition=levels[0], lists=levels[1], required=required
        )

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
        return binary_array(value_type, length, offsets, data)


@dataclass(frozen=True)
class Variable(StringEncoding):
    """Values of variable length; `offsets` is the encoding of their ends (flat 32 or 64 before 2.3)."""

    offsets: Encoding

    message_field = "variable"

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> Variable:
        """See `Encoding.parse`."""
        check_no_compression(message, "values")
        offsets = part(message, "offsets")
        if offsets.flat_bits is None:
            return cls(offsets)
        if offsets.flat_bits not in (32, 64):
            raise CorruptFileError(f"variable encoding with offsets of {offsets.flat_bits} bits")
        return offsets_of(offsets.flat_bits == 64)

    def to_message(self, pb: Any) -> Any:
        """See `Encoding.to_message`."""
        return pb.CompressiveEncoding(variable=pb.Variable(offsets=self.offsets.to_message(pb)))

    @property
    def wide(self) -> bool:
        """True if the stored offsets have 64 bits."""
        return self.offsets.flat_bits == 64

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def least_bits(self) -> tuple[float, ...]:
        """See `Encoding.least_bits`."""
        return (64 if self.wide else 32,)

    def text_codec(self, where: str) -> tuple[bool, bytes | None]:
        """See `Encoding.text_codec`."""
        if self.offsets.flat_bits is None:
            raise UnsupportedError(f"{where}: encoded offsets exist in file version 2.3 only")
        return self.wide, None

    def entries(self, buffer: pa.Buffer, size: int, value_type: pa.DataType, where: str) -> pa.Array:
        """See `Encoding.entries`."""
        if size == 0:
            return empty_array(value_type)
        if not is_binary_like(value_type):
            raise CorruptFileError(f"{where}: a dictionary of strings does not fit the type {value_type}")
        wide = is_wide(value_type)
        if size > buffer.size // 4:
            raise CorruptFileError(f"a dictionary of {size} strings in {buffer.size} bytes")
        offsets = allocate((size + 1) * (8 if wide else 4))
        begin, length = variable.decode_block(buffer, size, wide, offsets)
        data = buffer.slice(begin, length)
        return binary_array(value_type, size, offsets, private_copy(data) if is_text(value_type) else data)

    def taken_entries(self, buffer: pa.Buffer, size: int, bits: int, most_bytes: int) -> pa.Buffer | bytes:
        """See `Encoding.taken_entries`."""
        if bits:
            raise CorruptFileError(f"a dictionary of strings for values of {bits} bits")
        return buffer

    def planar_entries(self, buffer: pa.Buffer, size: int, value_type: pa.DataType, where: str) -> pa.Array:
        """See `Encoding.planar_entries`."""
        return self.entries(buffer, size, value_type, where)

    # -- chunks of 2.3 -------------------------------------------------------------------------------------------

    @property
    def plain_chunks(self) -> Encoding:
        """See `Encoding.plain_chunks`."""
        if self.offsets.flat_bits is not None:
            return self
        bits = self.offsets.checked_integer_bits()
        if bits < 32:
            raise CorruptFileError(f"offsets of {bits} bits")
        return Variable(Flat(bits))

    @property
    def stored_buffers(self) -> int:
        """See `Encoding.stored_buffers`."""
        return 1 + self.offsets.has_payload

    def most_stored_bytes(self, count: int) -> int | None:
        """See `Encoding.most_stored_bytes`; without encoded offsets the first buffer has the values."""
        return super().most_stored_bytes(count) if self.offsets.has_payload else None

    def plain_chunk(self, buffers: list[pa.Buffer], count: int) -> pa.Buffer | bytes:
        """See `Encoding.plain_chunk`."""
        bits = self.offsets.checked_integer_bits()
        payload = buffers[0] if self.offsets.has_payload else None
        offsets, data = self.offsets.integers(payload, count + 1, bits), buffers[-1]
        header = allocate((count + 1) * bits // 8)
        variable.decode_generic(offsets, bits == 64, count, data.size, bits == 64, header, header.size)
        return b"".join([header, data, bytes(-(header.size + data.size) % (bits // 8))])

    # -- report --------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        bits = self.offsets.flat_bits
        return f"variable({self.offsets.text})" if bits is None else f"variable {bits}"

    @property
    def is_plain(self) -> bool:
        """See `Encoding.is_plain`."""
        return True

    def reason(self, stored: StoredValues) -> str:
        """See `Encoding.reason`."""
        return f"{stored.count:,} values and their offsets as they are: {size_text(stored.size)}"


@lru_cache(maxsize=2)
def offsets_of(wide: bool) -> Variable:
    """Return the encoding of strings with offsets of 64 or 32 bits; all pages share the object."""
    return Variable(Flat(64 if wide else 32))


class _TextValues(ChunkValues):
    """Strings and binaries, plain or as FSST codes."""

    def __init__(self, values: VariableValues, value_type: pa.DataType) -> None:
        self._values = values
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
        """Decode offsets and bytes without computing the size first; excess room is memory that is hardly touched."""
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
        size = self._values.take_offsets(items, self._wide, offsets)
        if size > self._values.most_bytes and len(items) > 1:
            # values that were requested several times, or that were forged to overlap
            distinct = np.unique(items)
            self._values.take_offsets(distinct, True, allocate((len(distinct) + 1) * 8))
        data = allocate(size)
        self._values.take_bytes(items, data)
        return binary_array(self._type, len(items), offsets, data)


# -- writing -----------------------------------------------------------------------------------------------------


def plain_candidate(strings: Strings, request: Request) -> Candidate:
    """Return the candidate with strings without compression, the baseline for all others."""
    plan = plan_chunks(strings.offsets, strings.wide, strings.count, request)
    size = request.layout_size(plan[0], [plan[1]])
    encoding = offsets_of(strings.wide)
    return Candidate(size, lambda: text_chunks(encoding, strings.offsets, strings.data, strings, plan, "plain"))


def plan_chunks(offsets: Bytes, wide: bool, count: int, request: Request) -> ChunkPlan:
    """Cut strings into chunks; return their numbers of values and end bytes."""
    target = request.options.chunk_bytes
    if target is None:
        # Definition levels come in blocks of 1,024, so fuller chunks have fewer. Larger chunks also compress better.
        roomy = request.nullable or request.options.compression in ("lz4", "zstd")
        target = 2 * CHUNK_BYTES if roomy else CHUNK_BYTES
    elif not request.large:
        target = min(target, 2 * CHUNK_BYTES)
    bound = variable.plan_bound(count)
    counts, ends = np.empty(bound, np.int64), np.empty(bound, np.int64)
    most = min(_MOST_VALUES, 2 * request.max_values)
    used = variable.plan(offsets, wide, count, wide, counts, ends, target, most)
    return counts[:used], ends[:used]


def text_chunks(
    encoding: Encoding,
    offsets: Bytes,
    data: Bytes,
    strings: Strings,
    plan: ChunkPlan,
    reason: str,
) -> EncodedChunks:
    """Encode strings, or their codes, in the chunks of a plan."""
    counts, ends = plan
    out = allocate(int(ends[-1]) if len(ends) else 0)
    variable.encode(offsets, strings.wide, data, strings.count, strings.wide, counts, ends, out)
    return EncodedChunks(encoding, counts, [(out, ends)], 0, None, reason)


def plain_items(strings: Strings) -> EncodedItems:
    """Return strings as items of a full-zip page without compression."""
    return EncodedItems(
        offsets_of(strings.wide),
        None,
        64 if strings.wide else 32,
        strings.data,
        strings.offsets,
        strings.wide,
        f"plain, {in_units(strings.total)}",
    )


def encode_entries(offsets: Bytes, data: Bytes, wide: bool, count: int) -> tuple[Encoding, Bytes]:
    """Encode strings as the entries of a dictionary."""
    total, _ = variable.measure(offsets, wide, count)
    block = allocate(variable.block_bound(count, total, wide))
    return offsets_of(wide), block.slice(0, variable.encode_block(offsets, wide, data, count, wide, block))
