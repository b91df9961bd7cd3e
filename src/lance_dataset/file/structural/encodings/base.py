"""Interface of an encoding: its message, its values in each kind of page, and its text in a report.

An encoding overrides the methods it supports. A method that is not overridden says that the format does not have the
encoding there. The interface for the writer is in `request`.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.sizes import size_text
from lance_dataset.file.structural.arrays import empty_array, fixed_array, value_bits
from lance_dataset.file.take_shape import TakeShape
from lance_dataset.late_dataclass import dataclass
from lance_dataset.limits import check_memory
from lancecodec import take_pages
from lancecodec.bitpacking import BLOCK_VALUES
from lancecodec.miniblock import Chunks
from lancecodec.miniblock_values import FixedValues
from lancecodec.take_pages import PageTaker

__all__ = [
    "MAX_BITS",
    "MAX_BLOCK_BYTES",
    "ChunkValues",
    "Encoding",
    "FixedChunkValues",
    "ParsePart",
    "StoredValues",
    "TakenLevels",
    "check_no_compression",
    "range_text",
    "word_bits",
]

#: Maximum bits of a fixed-width value.
MAX_BITS = 2**40
#: Decompressed bytes that a dictionary or a level stream may have beyond what its stored size allows.
MAX_BLOCK_BYTES = 1 << 31
#: Bytes that packing to 0 bits may yield from an empty buffer, and the most bytes per stored byte (runs of 255).
_FREE_BYTES = 16 << 20
_MAX_EXPANSION = 256
#: Most bytes per stored byte of integers in 2.3, beyond the free bytes: what the narrowest bit packing yields.
_MAX_INTEGER_EXPANSION = 64
_WORD_BITS = (8, 16, 32, 64)
#: Most bytes of padding behind values.
_PADDING = 64

#: Parses the encoding in a required field of a message.
ParsePart: TypeAlias = "Callable[[Any, str], Encoding]"
#: Codec of the definition levels, in the numbering of the kernels, and a description of the lists that rows are.
TakenLevels: TypeAlias = "tuple[tuple[int, int] | None, take_pages.Lists | None]"


class ChunkValues(abc.ABC):
    """Values of a page; the requested chunks must be loaded."""

    @abc.abstractmethod
    def scan(self, start: int, stop: int, validity: pa.Buffer | None = None) -> pa.Array:
        """Return values ``[start, stop)`` without nulls.

        `validity` marks nulls where that matters: a null may have a dictionary index that does not exist.
        """

    def scan_encoded(self, start: int, stop: int, validity: pa.Buffer | None = None) -> pa.Array:
        """Return the same values as `scan`, as a dictionary array if there is a dictionary of plain values."""
        return self.scan(start, stop, validity)

    @abc.abstractmethod
    def take(self, items: NDArray[np.int64], validity: pa.Buffer | None = None) -> pa.Array:
        """Return the values at `items`, in that order; `validity` as for `scan`."""


class FixedChunkValues(ChunkValues):
    """Numbers, booleans and other fixed-width values."""

    def __init__(self, values: FixedValues, bits: int, value_type: pa.DataType) -> None:
        self._values = values
        self._bits = bits
        self._type = value_type

    def scan(self, start: int, stop: int, validity: pa.Buffer | None = None) -> pa.Array:
        """See `ChunkValues.scan`."""
        out = allocate(((stop - start) * self._bits + 7) // 8)
        self._values.scan(start, stop, out)
        return fixed_array(self._type, stop - start, out)

    def take(self, items: NDArray[np.int64], validity: pa.Buffer | None = None) -> pa.Array:
        """See `ChunkValues.take`."""
        out = allocate((len(items) * self._bits + 7) // 8)
        self._values.take(items, out)
        return fixed_array(self._type, len(items), out)


@dataclass(frozen=True)
class StoredValues:
    """Stored values of a page.

    Attributes
    ----------
    count
        Number of values.
    size
        Bytes of the values, or of the indices.
    plain
        Bytes of the values without compression, None if unknown.
    widths
        Least and largest width of bit-packed chunks.
    runs
        Number of stored runs of run-length encoding.
    """

    count: int
    size: int
    plain: int | None
    widths: tuple[int, int] | None = None
    runs: int | None = None

    def sizes(self, name: str = "plain") -> str:
        """Return a text with the stored size and the plain size, which is called `name`."""
        if self.plain is None:
            return size_text(self.size)
        return f"{size_text(self.size)} instead of {size_text(self.plain)} {name}"


def range_text(widths: tuple[int, int]) -> str:
    """Return a text with two numbers, or with one if they are equal."""
    return str(widths[0]) if widths[0] == widths[1] else f"{widths[0]} to {widths[1]}"


class Encoding:
    """An encoding of values; subclasses are frozen dataclasses with the content of its message.

    Methods raise CorruptFileError if the encoding does not fit the type or contradicts the bytes, or CodecError if a
    kernel finds that. They raise UnsupportedError for combinations that the format does not have or that this release
    does not read. `where` is the file, column and page for their messages.

    Attributes
    ----------
    message_field
        Name of its field in the message `CompressiveEncoding`.
    is_text
        True if values in chunks and items are strings or binaries.
    is_simple_part
        2.3: true if it can be a part of other encoded integers.
    """

    message_field: ClassVar[str]
    is_text: ClassVar[bool] = False
    is_simple_part: ClassVar[bool] = False

    # -- message -------------------------------------------------------------------------------------------------

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> Encoding:
        """Check the message of the encoding, of the package of either version, and return it as a value."""
        raise NotImplementedError

    def to_message(self, pb: Any) -> Any:
        """Build the `CompressiveEncoding`; `pb` has the messages of a file version."""
        raise UnsupportedError(f"encoding {type(self).__name__} exists in file version 2.3 only")

    # -- wrapped encodings ---------------------------------------------------------------------------------------

    @property
    def inner(self) -> Encoding:
        """The encoding below general compression, otherwise the encoding itself."""
        return self

    def decompress(self, data: pa.Buffer, max_size: int) -> pa.Buffer:
        """Return a buffer without general compression."""
        return data

    def decompressed_size(self, data: bytes) -> int | None:
        """Return the bytes that `decompress` will allocate, None if only decompression can tell."""
        return len(data)

    def decompress_first(self, data: bytes, size: int) -> bytes:
        """Return the first bytes of a buffer without general compression."""
        return data[:size]

    @property
    def flat_bits(self) -> int | None:
        """Bits of a value if values are stored without compression, otherwise None."""
        return None

    @property
    def plain_item_bits(self) -> int | None:
        """Bits of a value if values are whole bytes side by side, so that one buffer without chunks is enough."""
        return None

    # -- chunks of a mini-block page -----------------------------------------------------------------------------

    @property
    def num_buffers(self) -> int:
        """Number of value buffers of a chunk."""
        return 1

    @property
    def least_bits(self) -> Sequence[float]:
        """Minimum bits of a value in each value buffer of a chunk, as far as the encoding tells."""
        return ()

    def most_chunk_bytes(self, count: int, where: str) -> int | None:
        """Return the maximum bytes of the first value buffer of a chunk of `count` values, None if values decide."""
        return self.padded_bytes(count, self.chunk_codec(where)[1])

    @staticmethod
    def padded_bytes(count: int, bits: int) -> int:
        """Return the maximum bytes of `count` values of `bits` bits with any padding."""
        return (count * bits + 7) // 8 + _PADDING

    def open_chunks(self, chunks: Chunks, value_type: pa.DataType, where: str) -> ChunkValues:
        """Open the decoder of the values of some chunks."""
        kind, bits = self.chunk_codec(where)
        if bits != value_bits(value_type):
            raise CorruptFileError(f"{where}: values of {bits} bits do not fit the type {value_type}")
        return FixedChunkValues(FixedValues(chunks, kind, bits), bits, value_type)

    def chunk_codec(self, where: str) -> tuple[int, int]:
        """Return the codec of fixed-width values, in the numbering of the kernels, and their width."""
        raise UnsupportedError(f"{where}: encoding {type(self).__name__} cannot be read in chunks")

    def text_codec(self, where: str) -> tuple[bool, bytes | None]:
        """Return whether the stored offsets of strings have 64 bits, and the symbol table of FSST codes."""
        raise UnsupportedError(f"{where}: encoding {type(self).__name__} has no strings in chunks")

    def take_chunks(
        self,
        chunks: Chunks,
        shape: TakeShape,
        value_type: pa.DataType,
        levels: TakenLevels,
        required: bool,
        where: str,
    ) -> PageTaker | None:
        """Open random access to all chunks of a page, None if only `LeafPage.take` supports it.

        Parameters
        ----------
        shape
            Shape of values of `value_type`.
        levels
            Codec of the definition levels, and a description of the lists that rows are, if any.
        required
            True if a null is corruption.
        """
        items = self.flattened(value_type, where)
        if items is None:
            return None
        kind, bits = items.chunk_codec(where)
        return take_pages.fixed_chunks(
            chunks, shape.width, kind, bits, definition=levels[0], lists=levels[1], required=required
        )

    def flattened(self, value_type: pa.DataType, where: str) -> Encoding | None:
        """Return the encoding of lists of flat items as wide flat values, None if values are not such lists."""
        return None if pa.types.is_fixed_size_list(value_type) else self

    @property
    def level_codec(self) -> tuple[int, int] | None:
        """Codec of 16-bit levels in chunks, in the numbering of the kernels, and packed width; None if it has none."""
        return None

    # -- items of a full-zip page --------------------------------------------------------------------------------

    @property
    def item_width(self) -> int | None:
        """Bytes of an item; None for items of variable length."""
        return None

    @property
    def item_symbols(self) -> bytes | None:
        """FSST symbol table for unzipping, None if there is none."""
        return None

    def fixed_items(self, value_type: pa.DataType, values: pa.Buffer, length: int, where: str) -> pa.Array:
        """Return packed fixed-width values as an array."""
        raise UnsupportedError(f"{where}: encoding {type(self).__name__} cannot be read in full-zip pages")

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
        """Return values of variable length as an array; codes of `item_symbols` are already decoded.

        Parameters
        ----------
        offsets, wide, data
            Values as stored, with empty nulls; for strings and binaries `wide` is that of the type.
        validity
            Bitmap of the valid values; None if all are valid.
        """
        if not is_binary_like(value_type):
            raise CorruptFileError(f"{where}: values of any length do not fit the type {value_type}")
        raise UnsupportedError(f"{where}: encoding {type(self).__name__} cannot be read in full-zip pages")

    def decode_codes(self, offsets: pa.Buffer, wide: bool, data: pa.Buffer, length: int) -> tuple[pa.Buffer, pa.Buffer]:
        """Decode strings in packed struct rows, which unzipping does not decode; return their offsets and bytes."""
        return offsets, data

    # -- blocks: dictionaries, and levels of constant pages ------------------------------------------------------

    @property
    def block_bits(self) -> int | None:
        """Width of the values of a block in bits, None if the encoding does not tell it."""
        return getattr(self, "bits", None)

    def decode_block(self, buffer: pa.Buffer, count: int, bits: int, out: pa.Buffer, where: str) -> None:
        """Decode a whole buffer of values of `bits` bits."""
        raise UnsupportedError(f"{where}: a block with encoding {self} cannot be read by this release")

    def block(self, buffer: pa.Buffer, count: int, bits: int, where: str) -> pa.Buffer:
        """Return the values of `bits` bits that a whole buffer holds."""
        if self.block_bits != bits:
            raise CorruptFileError(f"{where}: a block of {self} does not hold values of {bits} bits")
        bytes_needed = (count * bits + 7) // 8
        if bytes_needed > _FREE_BYTES + _MAX_EXPANSION * buffer.size:
            raise CorruptFileError(f"{where}: {buffer.size} bytes claim to hold {count} values of {bits} bits")
        check_memory(bytes_needed, buffer.size, f"{where}: a block of {count} values of {bits} bits")
        out = allocate(bytes_needed)
        self.decode_block(buffer, count, bits, out, where)
        return out

    def entries(self, buffer: pa.Buffer, size: int, value_type: pa.DataType, where: str) -> pa.Array:
        """Return the entries of a page dictionary."""
        if size == 0:
            return empty_array(value_type)
        bits = value_bits(value_type)
        if bits == 0 or (bits % 8 and bits != 1):
            raise CorruptFileError(f"{where}: a dictionary of fixed-width values does not fit the type {value_type}")
        if size > MAX_BLOCK_BYTES * 8 // bits:
            raise CorruptFileError(f"{where}: claims a dictionary of {size} entries")
        return fixed_array(value_type, size, self.block(buffer, size, bits, where))

    def taken_entries(self, buffer: pa.Buffer, size: int, bits: int, most_bytes: int) -> pa.Buffer | bytes:
        """Return the entries of a page dictionary in the form that `take_pages.indexed_chunks` takes.

        Parameters
        ----------
        buffer, size
            As for `entries`; there are entries.
        bits
            Width of an entry in bits, 0 for strings and binaries.
        most_bytes
            Maximum bytes of a result that is not `buffer` itself.

        Raises
        ------
        CodecError, CorruptFileError, MemoryLimitError, UnsupportedError
            The entries need another form or more bytes, or are damaged; `entries` then decides.
        """
        if bits == 0 or size * bits > 8 * most_bytes:
            raise CorruptFileError(f"{size} entries of {bits} bits")
        return self.block(buffer, size, bits, "")

    def entries_codec(self, bits: int) -> int | None:
        """Return the codec of the entries of a page dictionary, numbered as in `chunk_codec`.

        None if kernels do not support entries of so many bits in this encoding.
        """
        return None

    def planar_entries(self, buffer: pa.Buffer, size: int, value_type: pa.DataType, where: str) -> pa.Array:
        """Return the entries of a page dictionary of 2.3, which may be integers in any encoding or fixed-size lists."""
        return fixed_array(value_type, size, self.integers(buffer, size, value_bits(value_type)))

    # -- chunks of 2.3, rewritten into those of 2.2 --------------------------------------------------------------

    @property
    def plain_chunks(self) -> Encoding:
        """Encoding of the values in rewritten chunks of 2.2; the encoding itself if chunks need no rewriting."""
        return self

    @property
    def stored_buffers(self) -> int:
        """Number of value buffers in a chunk before it is rewritten."""
        return self.num_buffers

    def most_stored_bytes(self, count: int) -> int | None:
        """Return the maximum bytes of the first stored buffer of a chunk to be rewritten, None if values decide."""
        return self.padded_bytes(2 * (count + BLOCK_VALUES), max(_WORD_BITS))

    def plain_chunk(self, buffers: list[pa.Buffer], count: int) -> pa.Buffer | bytes:
        """Return the values of a chunk, encoded as in `plain_chunks`."""
        raise UnsupportedError(f"chunks with encoding {type(self).__name__} cannot be rewritten")

    # -- integers of 2.3: offsets, positions, counts and the parts of runs ---------------------------------------

    @property
    def has_payload(self) -> bool:
        """True if integers have a buffer; otherwise the descriptor defines them completely."""
        return True

    @property
    def integer_bits(self) -> int:
        """Width of the decoded integers in bits; not 8, 16, 32 or 64 if the encoding does not yield integers."""
        return getattr(self, "bits", 0)

    def checked_integer_bits(self) -> int:
        """Return the width of the decoded integers, raise CorruptFileError if the encoding does not yield integers."""
        bits = self.integer_bits
        if bits not in _WORD_BITS:
            raise CorruptFileError(f"{type(self).__name__} encoding of integers of {bits} bits")
        return int(bits)

    def integers(self, payload: pa.Buffer | None, count: int, bits: int) -> pa.Buffer:
        """Decode unsigned integers.

        Parameters
        ----------
        payload
            Buffer of the integers; None if and only if the encoding has none.
        count, bits
            Number of integers, and their width in bits: 8, 16, 32 or 64.
        """
        self.check_integers(payload, bits)
        self.check_size(count * bits // 8, 0 if payload is None else payload.size)
        out = allocate(count * bits // 8)
        self.decode_integers(payload, count, bits, out)
        return out

    def check_integers(self, payload: pa.Buffer | None, bits: int) -> None:
        """Raise CorruptFileError unless a payload exists exactly if the encoding has one, and the width is right."""
        if (payload is not None) != self.has_payload:
            raise CorruptFileError(f"{type(self).__name__} encoding with too many or too few buffers")
        if self.checked_integer_bits() != bits:
            raise CorruptFileError(f"{self} does not hold integers of {bits} bits")

    @staticmethod
    def check_size(size: int, stored: int) -> None:
        """Raise CorruptFileError if `stored` bytes cannot hold so many integers, as some encodings have no bytes."""
        if size > _FREE_BYTES + _MAX_INTEGER_EXPANSION * stored:
            raise CorruptFileError(f"{stored} bytes claim to hold {size} bytes of integers")
        check_memory(size, stored, f"{size} bytes of integers in {stored} bytes")

    def decode_integers(self, payload: pa.Buffer | None, count: int, bits: int, out: pa.Buffer) -> None:
        """Decode integers that `check_integers` has checked into a buffer of their size."""
        raise UnsupportedError(f"encoding {type(self).__name__} of integers cannot be read by this release")

    def check_part(self) -> None:
        """Raise UnsupportedError if the encoding has parts itself and so cannot be a part of other integers."""
        if not self.inner.is_simple_part:
            raise UnsupportedError(f"{type(self).__name__} encoding as a part of other integers")

    def part(self, payload: pa.Buffer) -> pa.Buffer | None:
        """Return the payload of a part of a frame, None if the encoding has no payload; it must then be empty."""
        if self.has_payload:
            return payload
        if payload.size:
            raise CorruptFileError(f"{payload.size} bytes of a {type(self).__name__} encoding, which has none")
        return None

    def stored_count(self, payload: pa.Buffer | None) -> int | None:
        """Return the number of integers if the payload alone tells it, otherwise None."""
        return None

    def count_summing_to(self, payload: pa.Buffer | None, total: int) -> int | None:
        """Return the number of leading integers with a sum, for run lengths; None if the encoding does not tell it."""
        return None

    def simplified(self, length: int) -> Encoding:
        """Return the constant or range equal to `length` 64-bit integers, without decoding, otherwise the encoding."""
        return self

    def progression(self, length: int) -> tuple[int, int] | None:
        """Return start and step of equidistant 64-bit integers, None unless the description alone tells them."""
        return None

    def runs(self, payload: pa.Buffer | None, length: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | None:
        """Return values and lengths of runs of 64-bit integers, None if runs are not stored."""
        return None

    # -- text in a report ----------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """Text of the encoding, from the outside in, such as ``fsst(variable 32)``."""
        raise NotImplementedError

    @property
    def is_plain(self) -> bool:
        """True if values are stored without compression."""
        return False

    def reason(self, stored: StoredValues) -> str:
        """Return a sentence with the reason for the encoding."""
        return stored.sizes()

    def bit_widths(self, sizes: NDArray[np.int64]) -> tuple[int, int] | None:
        """Return the minimum and maximum packed width, given the bytes of the value buffers by chunk and buffer."""
        return None

    def run_count(self, sizes: NDArray[np.int64]) -> int | None:
        """Return the number of stored runs, given the bytes of the value buffers by chunk and buffer."""
        return None


def check_no_compression(message: Any, name: str) -> None:
    """Raise UnsupportedError if a message has general compression of its own."""
    if message.HasField(name):
        raise UnsupportedError(f"encoding {message.DESCRIPTOR.name} with compressed {name}; no release writes it")


def word_bits(message: Any, known: Sequence[int] = _WORD_BITS) -> int:
    """Return the uncompressed width in a message, which must be one of `known`."""
    bits: int = message.uncompressed_bits_per_value
    if bits not in known:
        raise CorruptFileError(f"encoding {message.DESCRIPTOR.name} of values of {bits} bits")
    return bits
