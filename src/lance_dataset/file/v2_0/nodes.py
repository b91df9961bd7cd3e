"""The array encoding tree of a 2.0 page as frozen values, parsed and checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from google.protobuf.message import DecodeError

from lance_dataset._proto import encodings_pb2
from lance_dataset.errors import CorruptFileError, UnsupportedError

__all__ = [
    "PAGE_ENCODING",
    "Binary",
    "BufferRef",
    "Dictionary",
    "FixedSizeList",
    "Flat",
    "List",
    "Node",
    "Nullable",
    "SimpleStruct",
    "parse_page_encoding",
    "plain_flat",
]

#: Protobuf name of the page encoding message of 2.0 files.
PAGE_ENCODING = "lance.encodings.ArrayEncoding"

_MAX_DEPTH = 64
_SCHEMES = frozenset({"", "none", "zstd", "lz4"})


@dataclass(frozen=True)
class BufferRef:
    """A page buffer (or, if `column` is set, a column buffer) by index."""

    index: int
    column: bool = False


@dataclass(frozen=True)
class Flat:
    """Fixed-width values side by side: `bits` is 1 or a multiple of 8; `scheme` compresses the buffer as a whole."""

    bits: int
    buffer: BufferRef
    scheme: str = ""


@dataclass(frozen=True)
class Nullable:
    """Values with validity; `values` is None when all are null, `validity` None when none is."""

    values: Node | None
    validity: Flat | None = None


@dataclass(frozen=True)
class FixedSizeList:
    """`dimension` items per value, row major."""

    dimension: int
    items: Node


@dataclass(frozen=True)
class Binary:
    """Value ends (u64, a null has `adjustment` added) and the bytes of all values."""

    ends: Flat
    data: Flat
    adjustment: int


@dataclass(frozen=True)
class Dictionary:
    """Indices into `size` items."""

    indices: Node
    items: Node
    size: int


@dataclass(frozen=True)
class List:
    """List ends, relative to the page; the items are the next column."""

    ends: Flat
    adjustment: int
    num_items: int


@dataclass(frozen=True)
class SimpleStruct:
    """The header of a struct column: no data."""


Node: TypeAlias = Flat | Nullable | FixedSizeList | Binary | Dictionary | List | SimpleStruct


@lru_cache(maxsize=8192)
def parse_page_encoding(encoding: bytes) -> Node:
    """Parse a serialized `ArrayEncoding`; equal pages share one tree.

    Raises
    ------
    CorruptFileError
        The message is broken or describes something impossible. The caller adds where.
    UnsupportedError
        An encoding this release does not read.
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
        raise UnsupportedError(f"page encoding {kind!r} cannot be read by this release")
    return parser(getattr(message, kind), depth + 1)


def _parse_flat(message: encodings_pb2.Flat, depth: int) -> Flat:
    bits, scheme = message.bits_per_value, message.compression.scheme
    if bits != 1 and (bits % 8 or bits > 2**40):
        raise CorruptFileError(f"flat encoding with {bits} bits per value")
    if scheme not in _SCHEMES:
        raise UnsupportedError(f"compression scheme {scheme!r} is unknown")
    if message.buffer.buffer_type == encodings_pb2.Buffer.file:
        raise UnsupportedError("page buffers in global buffers are not supported; no release writes them")
    column = message.buffer.buffer_type == encodings_pb2.Buffer.column
    return Flat(bits, BufferRef(message.buffer.buffer_index, column), "" if scheme == "none" else scheme)


def _parse_nullable(message: encodings_pb2.Nullable, depth: int) -> Nullable:
    kind = message.WhichOneof("nullability")
    if kind == "no_nulls":
        return Nullable(_parse(message.no_nulls.values, depth))
    if kind == "some_nulls":
        validity = _parse(message.some_nulls.validity, depth)
        if not isinstance(validity, Flat) or validity.bits != 1:
            raise CorruptFileError("validity is not a bitmap")
        return Nullable(_parse(message.some_nulls.values, depth), validity)
    if kind == "all_nulls":
        return Nullable(None)
    raise CorruptFileError("nullable encoding without a kind")


def _parse_fixed_size_list(message: encodings_pb2.FixedSizeList, depth: int) -> FixedSizeList:
    return FixedSizeList(message.dimension, _parse(message.items, depth))


def _parse_binary(message: encodings_pb2.Binary, depth: int) -> Binary:
    ends = _required_flat(_parse(message.indices, depth), 64, "binary indices")
    data = _required_flat(_parse(message.bytes, depth), 8, "binary bytes")
    return Binary(ends, data, message.null_adjustment)


def _parse_dictionary(message: encodings_pb2.Dictionary, depth: int) -> Dictionary:
    return Dictionary(_parse(message.indices, depth), _parse(message.items, depth), message.num_dictionary_items)


def _parse_list(message: encodings_pb2.List, depth: int) -> List:
    ends = _required_flat(_parse(message.offsets, depth), 64, "list offsets")
    return List(ends, message.null_offset_adjustment, message.num_items)


def _required_flat(node: Node, bits: int, what: str) -> Flat:
    flat = plain_flat(node)
    if flat is None or flat.bits != bits:
        raise CorruptFileError(f"{what} are not {bits}-bit values without nulls")
    return flat


def plain_flat(node: Node | None) -> Flat | None:
    """The flat encoding under wrappers that say "no nulls"; None if it is anything else."""
    while isinstance(node, Nullable) and node.validity is None:
        node = node.values
    return node if isinstance(node, Flat) else None


_PARSERS: dict[str, Callable[[Any, int], Node]] = {
    "flat": _parse_flat,
    "nullable": _parse_nullable,
    "fixed_size_list": _parse_fixed_size_list,
    "binary": _parse_binary,
    "dictionary": _parse_dictionary,
    "list": _parse_list,
    "struct": lambda message, depth: SimpleStruct(),
}
