"""Encodings of pages from before 2.1 was stable, translated into stable messages.

The numbers 15 to 18 of an encoding changed their meaning between releases. `early` is true for the meaning in releases
up to 0.25, and false for that in 0.26 to 0.32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from lance_dataset._proto import encodings21_pb2 as pb
from lance_dataset._proto import encodings21_pre_pb2 as pre
from lance_dataset.errors import CorruptFileError, UnsupportedError

__all__ = ["WRITERS", "parse_message", "to_stable"]

#: Writers of such pages, for error messages.
WRITERS = "pylance 0.19 to 0.32, before file version 2.1 was stable"

_MAX_DEPTH = 32
_SYMBOL_TABLE_BYTES = 2312
_SCHEMES = {"lz4": 1, "zstd": 2}

_M = TypeVar("_M", bound=Message)


def parse_message(kind: type[_M], data: bytes) -> _M:
    """Parse a message that was kept as bytes.

    Raises
    ------
    CorruptFileError
        The bytes are not a message of this kind. The caller adds the place.
    """
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise CorruptFileError(f"broken page layout ({kind.DESCRIPTOR.name}: {error})") from error


def to_stable(message: pre.ArrayEncoding, early: bool, depth: int = 0) -> pb.CompressiveEncoding:
    """Return the stable form of an encoding; impossible content is found when that is parsed.

    Raises
    ------
    CorruptFileError
        The message is broken. The caller adds the place.
    UnsupportedError
        The encoding has an unknown byte layout.
    """
    if depth > _MAX_DEPTH:
        raise CorruptFileError(f"an encoding is nested more than {_MAX_DEPTH} levels deep")
    kind = message.WhichOneof("array_encoding")
    if kind is None:
        raise UnsupportedError(f"an encoding is missing, or is not known from {WRITERS}")
    return _TRANSLATORS[kind](getattr(message, kind), early, depth + 1)


def _flat(message: pre.Flat, early: bool, depth: int) -> pb.CompressiveEncoding:
    if message.compression.scheme:
        raise UnsupportedError(f"flat values compressed with {message.compression.scheme!r}; not known from {WRITERS}")
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=message.bits_per_value))


def _fixed_size_list(message: pre.FixedSizeList, early: bool, depth: int) -> pb.CompressiveEncoding:
    items = to_stable(message.items, early, depth)
    if early:
        # Releases up to 0.21 encoded lists as values with the width of all their items.
        bits, dimension = items.flat.bits_per_value, message.dimension
        if items.WhichOneof("compression") != "flat" or not dimension or bits % dimension:
            raise CorruptFileError(f"fixed-size list of {dimension} items in {bits} bits")
        items.flat.bits_per_value = bits // dimension
    values = pb.FixedSizeList(items_per_value=message.dimension, values=items, has_validity=message.has_validity)
    return pb.CompressiveEncoding(fixed_size_list=values)


def _variable(bits: int) -> pb.CompressiveEncoding:
    offsets = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))
    return pb.CompressiveEncoding(variable=pb.Variable(offsets=offsets))


def _fsst(message: pre.Fsst, early: bool, depth: int) -> pb.CompressiveEncoding:
    values = to_stable(message.binary, early, depth)
    return pb.CompressiveEncoding(fsst=pb.Fsst(symbol_table=message.symbol_table, values=values))


def _constant(message: pre.Constant, early: bool, depth: int) -> pb.CompressiveEncoding:
    raise UnsupportedError(f"constant values in a page that {WRITERS}, wrote: their layout is not known")


def _inline(message: pre.InlineBitpacking, early: bool, depth: int) -> pb.CompressiveEncoding:
    packed = pb.InlineBitpacking(uncompressed_bits_per_value=message.uncompressed_bits_per_value)
    return pb.CompressiveEncoding(inline_bitpacking=packed)


def _packed(data: bytes, early: bool, depth: int) -> pb.CompressiveEncoding:
    message = parse_message(pre.PackedStruct, data)
    rows = to_stable(message.flat, early, depth)
    return pb.CompressiveEncoding(packed_struct=pb.PackedStruct(bits_per_value=message.bits_per_value, values=rows))


def _member15(data: bytes, early: bool, depth: int) -> pb.CompressiveEncoding:
    if early:
        return _variable(parse_message(pre.Variable, data).bits_per_offset or 32)
    raise UnsupportedError(f"bit packing out of line in a page that {WRITERS}, wrote: its layout is not known")


def _member16(data: bytes, early: bool, depth: int) -> pb.CompressiveEncoding:
    if not early:
        return _variable(parse_message(pre.Variable, data).bits_per_offset)
    message = parse_message(pre.Fsst, data)
    if len(message.symbol_table) == _SYMBOL_TABLE_BYTES:
        return _fsst(message, early, depth)
    return _packed(data, early, depth)


def _member17(data: bytes, early: bool, depth: int) -> pb.CompressiveEncoding:
    return _variable(32) if early else _packed(data, early, depth)


def _member18(data: bytes, early: bool, depth: int) -> pb.CompressiveEncoding:
    if early:
        return _packed(data, early, depth)
    raise UnsupportedError(f"block encoding in a page that {WRITERS}, wrote: its layout is not known")


def _rle(message: pre.Rle, early: bool, depth: int) -> pb.CompressiveEncoding:
    values = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=message.bits_per_value))
    lengths = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=8))
    return pb.CompressiveEncoding(rle=pb.Rle(values=values, run_lengths=lengths))


def _general(message: pre.General, early: bool, depth: int) -> pb.CompressiveEncoding:
    scheme = _SCHEMES.get(message.compression.scheme)
    if scheme is None:
        raise UnsupportedError(f"compression scheme {message.compression.scheme!r} is unknown")
    values = to_stable(message.inner, early, depth)
    return pb.CompressiveEncoding(general=pb.General(compression=pb.BufferCompression(scheme=scheme), values=values))


_TRANSLATORS: dict[str, Callable[[Any, bool, int], pb.CompressiveEncoding]] = {
    "flat": _flat,
    "fixed_size_list": _fixed_size_list,
    "fsst": _fsst,
    "constant": _constant,
    "inline_bitpacking": _inline,
    "member15": _member15,
    "member16": _member16,
    "member17": _member17,
    "member18": _member18,
    "rle": _rle,
    "general": _general,
}
