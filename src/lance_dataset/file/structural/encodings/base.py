"""The face of an encoding: its message, its values in each kind of page, and its words in a report.

An encoding overrides what it has; what is left as it is here says that the format does not have it there. The writer's
side of the face is in `request`.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from lancecodec import take_pages
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

#: Most bits of a value of one width.
MAX_BITS = 2**40
#: Bytes that a dictionary or a level stream may have decompressed, beside what its stored size allows.
MAX_BLOCK_BYTES = 1 << 31
#: What packing to 0 bits may yield out of nothing, and bytes that a stored byte can become otherwise (runs of 255).
_FREE_BYTES = 16 << 20
_MAX_EXPANSION = 256
#: The same of integers in 2.3: beyond the free bytes as many as the narrowest bit packing yields.
_MAX_INTEGER_EXPANSION = 64
_WORD_BITS = (8, 16, 32, 64)

#: Parses the encoding in a field of a message, which must be there.
ParsePart: TypeAlias = "Callable[[Any, str], Encoding]"
#: Codec of the definition levels, as the kernels number it, and how rows are lists.
TakenLevels: TypeAlias = "tuple[tuple[int, int] | None, take_pages.Lists | None]"


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


class FixedChunkValues(ChunkValues):
    """Numbers, booleans, and all else of one width."""

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
    """The values of a page as stored.

    Attributes
    ----------
    count
        Number of values.
    size
        Bytes of the values, or of the indices.
    plain
        Bytes of the values as they are, None if unknown.
    widths
        Least and largest width of bit-packed chunks.
    runs
        Stored runs of run-length encoding.
    """

    count: int
    size: int
    plain: int | None
    widths: tuple[int, int] | None = None
    runs: int | None = None

    def sizes(self, name: str = "plain") -> str:
        """The size, and that of the values as they are, which `name` names."""
        if self.plain is None:
            return size_text(self.size)
        return f"{size_text(self.size)} instead of {size_text(self.plain)} {name}"


def range_text(widths: tuple[int, int]) -> str:
    """Two numbers, or one if they are equal."""
    return str(widths[0]) if widths[0] == widths[1] else f"{widths[0]} to {widths[1]}"


class Encoding:
    """A way to store values; a subclass is a frozen dataclass of what its message says.

    Methods raise CorruptFileError where the encoding does not fit the type or contradicts the bytes, CodecError if a
    kernel finds it, and UnsupportedError for what the format does not have, or this release does not read. `where` is
    file, column and page for their messages.

    Attributes
    ----------
    message_field
        Its field in the message `CompressiveEncoding`.
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
        """Check the encoding's own message, of the package of either version, and return it as a value."""
        raise NotImplementedError

    def to_message(self, pb: Any) -> Any:
        """Build the `CompressiveEncoding`; `pb` has the messages of a file version."""
        raise UnsupportedError(f"encoding {type(self).__name__} exists in file version 2.3 only")

    # -- what it wraps -------------------------------------------------------------------------------------------

    @property
    def inner(self) -> Encoding:
        """The encoding below general compression, else itself."""
        return self

    def decompress(self, data: pa.Buffer, max_size: int) -> pa.Buffer:
        """Undo the general compression of a buffer, if there is any."""
        return data

    @property
    def flat_bits(self) -> int | None:
        """Bits of a value where it is stored as it is."""
        return None

    @property
    def plain_item_bits(self) -> int | None:
        """Bits of a value where values are whole bytes side by side, so that one buffer without chunks will do."""
        return None

    # -- chunks of a mini-block page -----------------------------------------------------------------------------

    @property
    def num_buffers(self) -> int:
        """Value buffers of a chunk."""
        return 1

    @property
    def least_bits(self) -> Sequence[float]:
        """Bits that a value has at least in each value buffer of a chunk, as far as the encoding tells."""
        return ()

    def open_chunks(self, chunks: Chunks, value_type: pa.DataType, where: str) -> ChunkValues:
        """Open the decoder of the values of some chunks."""
        kind, bits = self.chunk_codec(where)
        if bits != value_bits(value_type):
            raise CorruptFileError(f"{where}: values of {bits} bits do not fit the type {value_type}")
        return FixedChunkValues(FixedValues(chunks, kind, bits), bits, value_type)

    def chunk_codec(self, where: str) -> tuple[int, int]:
        """Codec of fixed-width values as the kernels number it, and their width."""
        raise UnsupportedError(f"{where}: encoding {type(self).__name__} cannot be read in chunks")

    def text_codec(self, where: str) -> tuple[bool, bytes | None]:
        """True if the stored offsets of strings have 64 bits, and the symbol table of FSST codes."""
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
        """Open random access to all chunks of a page; None where only `LeafPage.take` has it.

        Parameters
        ----------
        shape
            That of `value_type`.
        levels
            The codec of the definition levels, and how rows are lists, if they are.
        required
            True if nulls are damage.
        """
        items = self.flattened(value_type, where)
        if items is None:
            return None
        kind, bits = items.chunk_codec(where)
        return take_pages.fixed_chunks(
            chunks, shape.width, kind, bits, definition=levels[0], lists=levels[1], required=required
        )

    def flattened(self, value_type: pa.DataType, where: str) -> Encoding | None:
        """The values as one encoding: lists of flat items are wide flat values. None for others."""
        return None if pa.types.is_fixed_size_list(value_type) else self

    @property
    def level_codec(self) -> tuple[int, int] | None:
        """Codec of 16-bit levels in chunks as the kernels number it, and the packed width; None if it has none."""
        return None

    # -- items of a full-zip page --------------------------------------------------------------------------------

    @property
    def item_width(self) -> int | None:
        """Bytes of an item; None for items of any length."""
        return None

    @property
    def item_symbols(self) -> bytes | None:
        """The FSST table that unzipping decodes with, if there is one."""
        return None

    def fixed_items(self, value_type: pa.DataType, values: pa.Buffer, length: int, where: str) -> pa.Array:
        """Values of one width, packed, as an array."""
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
        """Values of any length as an array, codes of `item_symbols` decoded already.

        Parameters
        ----------
        offsets, wide, data
            The values as stored, nulls empty; for strings and binaries `wide` is that of the type.
        validity
            Bitmap of the valid ones; None if all are.
        """
        if not is_binary_like(value_type):
            raise CorruptFileError(f"{where}: values of any length do not fit the type {value_type}")
        raise UnsupportedError(f"{where}: encoding {type(self).__name__} cannot be read in full-zip pages")

    def decode_codes(self, offsets: pa.Buffer, wide: bool, data: pa.Buffer, length: int) -> tuple[pa.Buffer, pa.Buffer]:
        """Offsets and bytes of strings in rows of a packed struct, which unzipping does not decode."""
        return offsets, data

    # -- blocks: dictionaries, and levels of constant pages ------------------------------------------------------

    @property
    def block_bits(self) -> int | None:
        """Width of the values of a block, if it is told."""
        return getattr(self, "bits", None)

    def decode_block(self, buffer: pa.Buffer, count: int, bits: int, out: pa.Buffer, where: str) -> None:
        """Decode a whole buffer of values of `bits` bits."""
        raise UnsupportedError(f"{where}: a block with encoding {self} cannot be read by this release")

    def block(self, buffer: pa.Buffer, count: int, bits: int, where: str) -> pa.Buffer:
        """Values of `bits` bits out of a whole buffer."""
        if self.block_bits != bits:
            raise CorruptFileError(f"{where}: a block of {self} does not hold values of {bits} bits")
        bytes_needed = (count * bits + 7) // 8
        if bytes_needed > _FREE_BYTES + _MAX_EXPANSION * buffer.size:
            raise CorruptFileError(f"{where}: {buffer.size} bytes claim to hold {count} values of {bits} bits")
        out = allocate(bytes_needed)
        self.decode_block(buffer, count, bits, out, where)
        return out

    def entries(self, buffer: pa.Buffer, size: int, value_type: pa.DataType, where: str) -> pa.Array:
        """The entries of a page dictionary."""
        if size == 0:
            return empty_array(value_type)
        bits = value_bits(value_type)
        if bits == 0 or (bits % 8 and bits != 1):
            raise CorruptFileError(f"{where}: a dictionary of fixed-width values does not fit the type {value_type}")
        if size > MAX_BLOCK_BYTES * 8 // bits:
            raise CorruptFileError(f"{where}: claims a dictionary of {size} entries")
        return fixed_array(value_type, size, self.block(buffer, size, bits, where))

    def planar_entries(self, buffer: pa.Buffer, size: int, value_type: pa.DataType, where: str) -> pa.Array:
        """The entries of a page dictionary of 2.3, which may be integers in any encoding, or fixed-size lists."""
        return fixed_array(value_type, size, self.integers(buffer, size, value_bits(value_type)))

    # -- chunks of 2.3, rewritten into those of 2.2 --------------------------------------------------------------

    @property
    def plain_chunks(self) -> Encoding:
        """The encoding of the values in chunks as 2.2 has them; itself where they are so already."""
        return self

    @property
    def stored_buffers(self) -> int:
        """Value buffers that a chunk to be rewritten has."""
        return self.num_buffers

    def plain_chunk(self, buffers: list[pa.Buffer], count: int) -> pa.Buffer | bytes:
        """The values of a chunk in `plain_chunks`."""
        raise UnsupportedError(f"chunks with encoding {type(self).__name__} cannot be rewritten")

    # -- integers of 2.3: offsets, positions, counts and the parts of runs ---------------------------------------

    @property
    def has_payload(self) -> bool:
        """True if integers have a buffer; otherwise the descriptor says it all."""
        return True

    @property
    def integer_bits(self) -> int:
        """Width of the integers that it yields; something else than 8, 16, 32 or 64 if it yields none."""
        return getattr(self, "bits", 0)

    def checked_integer_bits(self) -> int:
        """Width of the integers that it yields; CorruptFileError if it yields none."""
        bits = self.integer_bits
        if bits not in _WORD_BITS:
            raise CorruptFileError(f"{type(self).__name__} encoding of integers of {bits} bits")
        return int(bits)

    def integers(self, payload: pa.Buffer | None, count: int, bits: int) -> pa.Buffer:
        """Decode unsigned integers.

        Parameters
        ----------
        payload
            Their buffer; None exactly if the encoding has none.
        count, bits
            Number of integers, and their width: 8, 16, 32 or 64.
        """
        self.check_integers(payload, bits)
        self.check_size(count * bits // 8, 0 if payload is None else payload.size)
        out = allocate(count * bits // 8)
        self.decode_integers(payload, count, bits, out)
        return out

    def check_integers(self, payload: pa.Buffer | None, bits: int) -> None:
        """Refuse a payload where the encoding has none, the lack of one, and integers of another width."""
        if (payload is not None) != self.has_payload:
            raise CorruptFileError(f"{type(self).__name__} encoding with too many or too few buffers")
        if self.checked_integer_bits() != bits:
            raise CorruptFileError(f"{self} does not hold integers of {bits} bits")

    @staticmethod
    def check_size(size: int, stored: int) -> None:
        """Refuse more integers than so many bytes can hold: encodings without bytes are not bounded by the file."""
        if size > _FREE_BYTES + _MAX_INTEGER_EXPANSION * stored:
            raise CorruptFileError(f"{stored} bytes claim to hold {size} bytes of integers")

    def decode_integers(self, payload: pa.Buffer | None, count: int, bits: int, out: pa.Buffer) -> None:
        """Decode integers, checked by `check_integers`, into a buffer of their size."""
        raise UnsupportedError(f"encoding {type(self).__name__} of integers cannot be read by this release")

    def check_part(self) -> None:
        """Refuse an encoding with parts as a part of other integers, whatever decoding it would cost."""
        if not self.inner.is_simple_part:
            raise UnsupportedError(f"{type(self).__name__} encoding as a part of other integers")

    def part(self, payload: pa.Buffer) -> pa.Buffer | None:
        """The payload in a part of a frame, which is empty if the encoding has none."""
        if self.has_payload:
            return payload
        if payload.size:
            raise CorruptFileError(f"{payload.size} bytes of a {type(self).__name__} encoding, which has none")
        return None

    def stored_count(self, payload: pa.Buffer | None) -> int | None:
        """Number of integers, if the payload alone tells it."""
        return None

    def count_summing_to(self, payload: pa.Buffer | None, total: int) -> int | None:
        """Number of leading integers with a sum, for run lengths; None if it does not tell."""
        return None

    def simplified(self, length: int) -> Encoding:
        """The constant or range that so many 64-bit integers amount to, as these need not be decoded; else itself."""
        return self

    def progression(self, length: int) -> tuple[int, int] | None:
        """Start and step of 64-bit integers at equal distances, so far as the description says so; else None."""
        return None

    def runs(self, payload: pa.Buffer | None, length: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | None:
        """Values and lengths of runs of 64-bit integers; None where runs are not stored."""
        return None

    # -- words in a report ---------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The encoding as text, from the outside in, such as ``fsst(variable 32)``."""
        raise NotImplementedError

    @property
    def is_plain(self) -> bool:
        """True if values are stored as they are."""
        return False

    def reason(self, stored: StoredValues) -> str:
        """The sentence that says why values are stored so."""
        return stored.sizes()

    def bit_widths(self, sizes: NDArray[np.int64]) -> tuple[int, int] | None:
        """Least and largest packed width, given the bytes of the value buffers by chunk and buffer."""
        return None

    def run_count(self, sizes: NDArray[np.int64]) -> int | None:
        """Number of stored runs, given the bytes of the value buffers by chunk and buffer."""
        return None


def check_no_compression(message: Any, name: str) -> None:
    """Refuse a message with general compression of its own."""
    if message.HasField(name):
        raise UnsupportedError(f"encoding {message.DESCRIPTOR.name} with compressed {name}; no release writes it")


def word_bits(message: Any, known: Sequence[int] = _WORD_BITS) -> int:
    """The uncompressed width that a message tells, which must be one of those known."""
    bits: int = message.uncompressed_bits_per_value
    if bits not in known:
        raise CorruptFileError(f"encoding {message.DESCRIPTOR.name} of values of {bits} bits")
    return bits
