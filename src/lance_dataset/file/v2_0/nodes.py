"""Array encoding tree of a 2.0 page as frozen values, parsed and checked once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

from google.protobuf.message import DecodeError

from lance_dataset._proto import encodings_pb2
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.page_encodings import cached_by_encoding
from lance_dataset.late_dataclass import dataclass
from lancecodec import CodecError
from lancecodec.fsst import SymbolTable

__all__ = [
    "PAGE_ENCODING",
    "Binary",
    "Bitpacked",
    "BitpackedBlocks",
    "BufferRef",
    "Dictionary",
    "Fixed",
    "FixedSizeBinary",
    "FixedSizeList",
    "Flat",
    "Fsst",
    "List",
    "Node",
    "Nullable",
    "PackedStruct",
    "SimpleStruct",
    "buffer_refs",
    "parse_page_encoding",
    "plain_fixed",
    "symbol_table",
    "unwrapped",
]

#: Protobuf name of the page encoding message of 2.0 files.
PAGE_ENCODING = "lance.encodings.ArrayEncoding"

_MAX_DEPTH = 64
_SCHEMES = frozenset({"", "none", "zstd", "lz4"})
_INTEGER_BITS = (8, 16, 32, 64)
_MAX_BITS = 2**40


@dataclass(frozen=True)
class BufferRef:
    """Index of a buffer among those of its `owner`: "page", "column" or "file"."""

    index: int
    owner: str = "page"


@dataclass(frozen=True)
class Flat:
    """Fixed-width values side by side: `bits` is 1 or a multiple of 8; `scheme` compresses the buffer as a whole."""

    bits: int
    buffer: BufferRef
    scheme: str = ""


@dataclass(frozen=True)
class Bitpacked:
    """Values of `bits` bits stored in `width` bits each, consecutively; the highest bit is a sign if `signed`."""

    bits: int
    width: int
    signed: bool
    buffer: BufferRef


@dataclass(frozen=True)
class BitpackedBlocks:
    """Values of `bits` bits stored in `width` bits each, in transposed blocks of 1024."""

    bits: int
    width: int
    buffer: BufferRef


Fixed: TypeAlias = Flat | Bitpacked | BitpackedBlocks


@dataclass(frozen=True)
class Nullable:
    """Values with validity; `values` is None if all are null, `validity` is None if all are valid."""

    values: Node | None
    validity: Fixed | None = None


@dataclass(frozen=True)
class FixedSizeList:
    """`dimension` items per value, row major."""

    dimension: int
    items: Node


@dataclass(frozen=True)
class Binary:
    """Value ends (u64, a null has `adjustment` added) and the bytes of all values.

    `ends` is None for a page without values, and `data` is None if the values have no bytes; some releases encode empty
    data as nulls.
    """

    ends: Fixed | None
    data: Fixed | None
    adjustment: int


@dataclass(frozen=True)
class FixedSizeBinary:
    """Strings or binaries of `width` bytes each, stored as values of that many bytes or of one."""

    data: Fixed
    width: int

    @property
    def per_value(self) -> int:
        """Number of stored values for each string."""
        return 8 * self.width // self.data.bits


@dataclass(frozen=True)
class Fsst:
    """Strings or binaries whose bytes are codes of a symbol table."""

    codes: Node
    table: bytes


@dataclass(frozen=True)
class Dictionary:
    """Indices into `size` items."""

    indices: Node
    items: Node
    size: int


@dataclass(frozen=True)
class List:
    """List ends, relative to the page; the items are in the next column. `ends` is None for a page without lists."""

    ends: Fixed | None
    adjustment: int
    num_items: int


@dataclass(frozen=True)
class SimpleStruct:
    """Header of a struct column; it has no data."""


@dataclass(frozen=True)
class PackedStruct:
    """Rows of a struct side by side; `bits` has the width of each child, or 0 if the page does not state it."""

    bits: tuple[int, ...]
    buffer: BufferRef


Node: TypeAlias = (
    Flat
    | Bitpacked
    | BitpackedBlocks
    | Nullable
    | FixedSizeList
    | Binary
    | FixedSizeBinary
    | Fsst
    | Dictionary
    | List
    | SimpleStruct
    | PackedStruct
)


@cached_by_encoding(encodings_pb2.ArrayEncoding, 8192)
def parse_page_encoding(encoding: bytes) -> Node:
    """Parse a serialized `ArrayEncoding`; equal pages share one tree.

    Raises
    ------
    CorruptFileError
        The message is broken or describes something impossible. The caller adds the location.
    UnsupportedError
        No release wrote the encoding into a page of this kind.
    """
    try:
        message = encodings_pb2.ArrayEncoding.FromString(encoding)
    except DecodeError as error:
        raise CorruptFileError(f"broken page encoding ({error})") from error
    return _parse(message, 0)


def _parse(message: encodings_pb2.ArrayEncoding, depth: int) -> Node:
    kind = message.WhichOneof("array_encoding")
    if depth > _MAX_DEPTH:
        raise CorruptFileError(f"page encoding is nested more than {_MAX_DEPTH} levels deep")
    if kind is None:
        raise CorruptFileError("page encoding is empty or of a kind this format does not have")
    parser = _PARSERS.get(kind)
    if parser is None:
        raise UnsupportedError(f"page encoding {kind!r} cannot be read: no release wrote it into pages of version 2.0")
    return parser(getattr(message, kind), depth + 1)


def _parse_flat(message: encodings_pb2.Flat, depth: int) -> Flat:
    bits, scheme = message.bits_per_value, message.compression.scheme
    if bits == 1:
        return Flat(bits, _buffer(message.buffer))  # bitmaps are never compressed, whatever the message says
    if bits % 8 or bits > _MAX_BITS:
        raise CorruptFileError(f"flat encoding with {bits} bits per value")
    if scheme not in _SCHEMES:
        raise UnsupportedError(f"compression scheme {scheme!r} is unknown")
    return Flat(bits, _buffer(message.buffer), "" if scheme == "none" else scheme)


def _buffer(message: encodings_pb2.Buffer) -> BufferRef:
    owners = {
        encodings_pb2.Buffer.page: "page",
        encodings_pb2.Buffer.column: "column",
        encodings_pb2.Buffer.file: "file",
    }
    owner = owners.get(message.buffer_type)
    if owner is None:
        raise CorruptFileError(f"a buffer has the unknown type {message.buffer_type}")
    return BufferRef(message.buffer_index, owner)


def _parse_bitpacked(message: encodings_pb2.Bitpacked, depth: int) -> Bitpacked:
    bits, width = message.uncompressed_bits_per_value, message.compressed_bits_per_value
    if bits not in _INTEGER_BITS or not 1 <= width <= bits:
        raise CorruptFileError(f"values of {bits} bits packed into {width}")
    return Bitpacked(bits, width, message.signed, _buffer(message.buffer))


def _parse_blocks(message: encodings_pb2.BitpackedForNonNeg, depth: int) -> BitpackedBlocks:
    bits, width = message.uncompressed_bits_per_value, message.compressed_bits_per_value
    if bits not in _INTEGER_BITS or width > bits:
        raise CorruptFileError(f"values of {bits} bits packed into {width}")
    return BitpackedBlocks(bits, width, _buffer(message.buffer))


def _parse_nullable(message: encodings_pb2.Nullable, depth: int) -> Nullable:
    kind = message.WhichOneof("nullability")
    if kind == "no_nulls":
        return Nullable(_parse(message.no_nulls.values, depth))
    if kind == "some_nulls":
        validity = plain_fixed(_parse(message.some_nulls.validity, depth))
        if validity is None or validity.bits != 1:
            raise CorruptFileError("validity is not a bitmap")
        return Nullable(_parse(message.some_nulls.values, depth), validity)
    if kind == "all_nulls":
        return Nullable(None)
    raise CorruptFileError("a nullable encoding has no kind")


def _parse_fixed_size_list(message: encodings_pb2.FixedSizeList, depth: int) -> FixedSizeList:
    return FixedSizeList(message.dimension, _parse(message.items, depth))


def _parse_binary(message: encodings_pb2.Binary, depth: int) -> Binary:
    ends = _required_fixed(_parse(message.indices, depth), 64, "binary indices")
    data = _required_fixed(_parse(message.bytes, depth), 8, "binary bytes")
    return Binary(ends, data, message.null_adjustment)


def _parse_fixed_size_binary(message: encodings_pb2.FixedSizeBinary, depth: int) -> Node:
    width = message.byte_width
    node = _parse(message.bytes, depth)
    data = plain_fixed(node)
    if data is None:
        if unwrapped(node) is None:
            return Nullable(None)
        raise CorruptFileError("bytes of fixed-size binary values are not values without nulls")
    if data.bits not in (8, 8 * width):
        raise CorruptFileError(f"binary values of {width} bytes stored as values of {data.bits} bits")
    if isinstance(data, Flat):  # the same bytes under another name
        data = Flat(8, data.buffer, data.scheme)
    return FixedSizeBinary(data, width)


def _parse_fsst(message: encodings_pb2.Fsst, depth: int) -> Fsst:
    table = bytes(message.symbol_table)
    symbol_table(table)
    return Fsst(_parse(message.binary, depth), table)


@lru_cache(maxsize=256)
def symbol_table(table: bytes) -> SymbolTable:
    """Parse the symbol table of a page.

    Raises
    ------
    CorruptFileError
        The bytes are not a symbol table.
    """
    try:
        return SymbolTable(table)
    except CodecError as error:
        raise CorruptFileError(f"broken FSST symbol table: {error}") from error


def _parse_dictionary(message: encodings_pb2.Dictionary, depth: int) -> Dictionary:
    items = _parse(message.items, depth)
    if isinstance(unwrapped(items), Dictionary):
        raise CorruptFileError("the items of a dictionary are a dictionary themselves")
    return Dictionary(_parse(message.indices, depth), items, message.num_dictionary_items)


def _parse_list(message: encodings_pb2.List, depth: int) -> List:
    ends = _required_fixed(_parse(message.offsets, depth), 64, "list offsets")
    return List(ends, message.null_offset_adjustment, message.num_items)


def _parse_packed_struct(message: encodings_pb2.PackedStruct, depth: int) -> PackedStruct:
    bits = tuple(_row_bits(_parse(child, depth)) for child in message.inner)
    return PackedStruct(bits, _buffer(message.buffer))


def _row_bits(node: Node | None) -> int:
    """Return the width of a child of a packed struct, or 0 if the page does not state it."""
    inner = unwrapped(node)
    if isinstance(inner, FixedSizeList):
        return inner.dimension * _row_bits(inner.items)
    return inner.bits if isinstance(inner, Flat) else 0


def _required_fixed(node: Node, bits: int, what: str) -> Fixed | None:
    """Return fixed-width values without nulls, or None if all values are null."""
    fixed = plain_fixed(node)
    if fixed is None and unwrapped(node) is None:
        return None
    if fixed is None or fixed.bits != bits:
        raise CorruptFileError(f"{what} are not {bits}-bit values without nulls")
    return fixed


def plain_fixed(node: Node | None) -> Fixed | None:
    """Return the fixed-width values under "no nulls" wrappers; None for anything else."""
    while isinstance(node, Nullable) and node.validity is None:
        node = node.values
    return node if isinstance(node, Fixed) else None


def unwrapped(node: Node | None) -> Node | None:
    """Return the node below wrappers for nulls; None if all values are null."""
    while isinstance(node, Nullable):
        node = node.values
    return node


def buffer_refs(node: Node | None) -> Iterator[BufferRef]:
    """Yield the buffers whose size depends on the length of the tree; buffers of dictionary items are left out."""
    if isinstance(node, Nullable):
        yield from buffer_refs(node.validity)
        yield from buffer_refs(node.values)
    elif isinstance(node, (Binary, List)):
        yield from buffer_refs(node.ends)
        yield from buffer_refs(node.data if isinstance(node, Binary) else None)
    elif isinstance(node, FixedSizeList):
        yield from buffer_refs(node.items)
    elif isinstance(node, FixedSizeBinary):
        yield from buffer_refs(node.data)
    elif isinstance(node, Fsst):
        yield from buffer_refs(node.codes)
    elif isinstance(node, Dictionary):
        yield from buffer_refs(node.indices)
    elif node is not None and not isinstance(node, SimpleStruct):
        yield node.buffer


_PARSERS: dict[str, Callable[[Any, int], Node]] = {
    "flat": _parse_flat,
    "bitpacked": _parse_bitpacked,
    "bitpacked_for_non_neg": _parse_blocks,
    "nullable": _parse_nullable,
    "fixed_size_list": _parse_fixed_size_list,
    "binary": _parse_binary,
    "fixed_size_binary": _parse_fixed_size_binary,
    "fsst": _parse_fsst,
    "dictionary": _parse_dictionary,
    "list": _parse_list,
    "struct": lambda message, depth: SimpleStruct(),
    "packed_struct": _parse_packed_struct,
}
