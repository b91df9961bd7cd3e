"""Compressive encodings of 2.1 to 2.3 pages as frozen values: parsed and checked once, and written back as messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from lance_dataset._proto import encodings21_pb2 as pb
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lancecodec.general import Scheme

__all__ = [
    "ByteStreamSplit",
    "Constant",
    "Delta",
    "Dictionary",
    "Encoding",
    "FixedSizeList",
    "Flat",
    "Fsst",
    "General",
    "InlineBitpacking",
    "OutOfLineBitpacking",
    "PackedField",
    "PackedStruct",
    "Range",
    "Rle",
    "Variable",
    "VariablePackedStruct",
    "parse_encoding",
    "parse_optional",
    "to_message",
]

_MAX_DEPTH = 32
_MAX_BITS = 2**40
_WORD_BITS = (8, 16, 32, 64)
_SCHEMES: dict[int, Scheme] = {1: "lz4", 2: "zstd"}
_SCHEME_NUMBERS = {name: number for number, name in _SCHEMES.items()}


@dataclass(frozen=True)
class Flat:
    """Values of `bits` bits side by side."""

    bits: int


@dataclass(frozen=True)
class Variable:
    """Values of any length; `offsets` says how their ends are stored (flat 32 or 64 before 2.3)."""

    offsets: Encoding

    @property
    def wide(self) -> bool:
        """Whether the stored offsets have 64 bits."""
        return isinstance(self.offsets, Flat) and self.offsets.bits == 64


@dataclass(frozen=True)
class Constant:
    """The same value throughout; None stands for null."""

    value: bytes | None


@dataclass(frozen=True)
class OutOfLineBitpacking:
    """Blocks of 1,024 values of `bits` bits packed to `width`."""

    bits: int
    width: int


@dataclass(frozen=True)
class InlineBitpacking:
    """Blocks of 1,024 values of `bits` bits, each preceded by its packed width."""

    bits: int


@dataclass(frozen=True)
class Fsst:
    """Strings as codes of a symbol table."""

    symbol_table: bytes
    values: Variable


@dataclass(frozen=True)
class Dictionary:
    """2.3: indices into `size` items."""

    indices: Encoding
    items: Encoding
    size: int


@dataclass(frozen=True)
class Rle:
    """Runs: values and how often each repeats."""

    values: Encoding
    lengths: Encoding


@dataclass(frozen=True)
class ByteStreamSplit:
    """Byte j of every value together."""

    bits: int


@dataclass(frozen=True)
class General:
    """`values`, with a buffer compressed by `scheme` ("lz4" or "zstd")."""

    scheme: Scheme
    values: Encoding
    level: int | None = None


@dataclass(frozen=True)
class FixedSizeList:
    """One dimension of a fixed-size list of primitives; `has_validity` speaks of its items."""

    dimension: int
    has_validity: bool
    values: Encoding


@dataclass(frozen=True)
class PackedStruct:
    """Rows of children of fixed widths, in bits."""

    bits: tuple[int, ...]


@dataclass(frozen=True)
class PackedField:
    """A child of a `VariablePackedStruct`: `bits` wide, or behind a length of `length_bits` bits."""

    value: Encoding
    bits: int | None = None
    length_bits: int | None = None


@dataclass(frozen=True)
class VariablePackedStruct:
    """Rows of children of any width."""

    fields: tuple[PackedField, ...]


@dataclass(frozen=True)
class Range:
    """2.3: ``start + i * step``."""

    bits: int
    start: int
    step: int


@dataclass(frozen=True)
class Delta:
    """2.3: `base`, then sums of the deltas."""

    bits: int
    base: int
    deltas: Encoding


Encoding: TypeAlias = (
    Flat
    | Variable
    | Constant
    | OutOfLineBitpacking
    | InlineBitpacking
    | Fsst
    | Dictionary
    | Rle
    | ByteStreamSplit
    | General
    | FixedSizeList
    | PackedStruct
    | VariablePackedStruct
    | Range
    | Delta
)


# -- from messages -----------------------------------------------------------------------------------------------


def parse_optional(parent: Any, name: str) -> Encoding | None:
    """The encoding in a field of a message; None where it is absent."""
    return parse_encoding(getattr(parent, name)) if parent.HasField(name) else None


def parse_encoding(message: Any, depth: int = 0) -> Encoding:
    """Check a `CompressiveEncoding` of either package and return it as a value.

    Raises
    ------
    CorruptFileError
        It describes something impossible. The caller adds where.
    UnsupportedError
        An encoding or scheme this release does not know.
    """
    if depth > _MAX_DEPTH:
        raise CorruptFileError(f"an encoding is nested more than {_MAX_DEPTH} levels deep")
    kind = message.WhichOneof("compression")
    if kind is None:
        raise CorruptFileError("an encoding is missing, or of a kind this file version does not have")
    return _PARSERS[kind](getattr(message, kind), depth + 1)


def _child(message: Any, name: str, depth: int) -> Encoding:
    if not message.HasField(name):
        raise CorruptFileError(f"encoding {message.DESCRIPTOR.name} lacks its {name}")
    return parse_encoding(getattr(message, name), depth)


def _flat_child(message: Any, name: str, depth: int) -> Flat:
    child = _child(message, name, depth)
    if not isinstance(child, Flat):
        raise CorruptFileError(f"{name} of encoding {message.DESCRIPTOR.name} is {type(child).__name__}, not flat")
    return child


def _no_buffer_compression(message: Any, name: str) -> None:
    if message.HasField(name):
        raise UnsupportedError(f"encoding {message.DESCRIPTOR.name} with compressed {name}; no release writes it")


def _parse_flat(message: Any, depth: int) -> Flat:
    _no_buffer_compression(message, "data")
    if not 0 < message.bits_per_value <= _MAX_BITS:
        raise CorruptFileError(f"flat encoding with {message.bits_per_value} bits per value")
    return _flat(message.bits_per_value)


@lru_cache(maxsize=256)
def _flat(bits: int) -> Flat:
    """The same object for all pages: thousands are open at a time."""
    return Flat(bits)


@lru_cache(maxsize=16)
def _variable(offsets: Flat) -> Variable:
    return Variable(offsets)


def _parse_variable(message: Any, depth: int) -> Variable:
    _no_buffer_compression(message, "values")
    offsets = _child(message, "offsets", depth)
    if isinstance(offsets, Flat) and offsets.bits not in (32, 64):
        raise CorruptFileError(f"variable encoding with offsets of {offsets.bits} bits")
    return _variable(offsets) if isinstance(offsets, Flat) else Variable(offsets)


def _parse_constant(message: Any, depth: int) -> Constant:
    return Constant(message.value if message.HasField("value") else None)


def _word_bits(message: Any) -> int:
    bits: int = message.uncompressed_bits_per_value
    if bits not in _WORD_BITS:
        raise CorruptFileError(f"encoding {message.DESCRIPTOR.name} of values of {bits} bits")
    return bits


def _parse_out_of_line(message: Any, depth: int) -> OutOfLineBitpacking:
    bits, flat = _word_bits(message), message.values.flat
    width = flat.bits_per_value  # 0 is a width here, which flat values cannot have
    if message.values.WhichOneof("compression") != "flat" or width > bits:
        raise CorruptFileError(f"bit packing of {bits}-bit values with width {width}")
    return OutOfLineBitpacking(bits, width)


def _parse_inline(message: Any, depth: int) -> InlineBitpacking:
    _no_buffer_compression(message, "values")
    return InlineBitpacking(_word_bits(message))


def _parse_fsst(message: Any, depth: int) -> Fsst:
    values = _child(message, "values", depth)
    if not isinstance(values, Variable):
        raise CorruptFileError(f"FSST over {type(values).__name__} values")
    return Fsst(message.symbol_table, values)


def _parse_dictionary(message: Any, depth: int) -> Dictionary:
    return Dictionary(_child(message, "indices", depth), _child(message, "items", depth), message.num_dictionary_items)


def _parse_rle(message: Any, depth: int) -> Rle:
    return Rle(_child(message, "values", depth), _child(message, "run_lengths", depth))


def _parse_split(message: Any, depth: int) -> ByteStreamSplit:
    bits = _flat_child(message, "values", depth).bits
    if bits not in (32, 64):
        raise CorruptFileError(f"byte-stream split of values of {bits} bits")
    return ByteStreamSplit(bits)


def _parse_general(message: Any, depth: int) -> General:
    number = message.compression.scheme
    if number not in _SCHEMES:
        raise UnsupportedError(f"compression scheme {number} is unknown")
    level = message.compression.level if message.compression.HasField("level") else None
    return General(_SCHEMES[number], _child(message, "values", depth), level)


def _parse_fixed_size_list(message: Any, depth: int) -> FixedSizeList:
    if not 0 < message.items_per_value < 2**31:
        raise CorruptFileError(f"fixed-size list of {message.items_per_value} items")
    return FixedSizeList(message.items_per_value, message.has_validity, _child(message, "values", depth))


def _parse_packed(message: Any, depth: int) -> PackedStruct:
    bits = tuple(message.bits_per_value)
    flat = _flat_child(message, "values", depth)
    if not bits or any(width == 0 or width % 8 for width in bits) or sum(bits) != flat.bits:
        raise CorruptFileError(f"packed struct of {bits} bits in rows of {flat.bits} bits")
    return PackedStruct(bits)


def _parse_variable_packed(message: Any, depth: int) -> VariablePackedStruct:
    if not message.fields:
        raise CorruptFileError("packed struct without children")
    return VariablePackedStruct(tuple(_parse_packed_field(field, depth) for field in message.fields))


def _parse_packed_field(message: Any, depth: int) -> PackedField:
    value, layout = _child(message, "value", depth), message.WhichOneof("layout")
    if layout == "bits_per_value":
        if message.bits_per_value % 8 or message.bits_per_value > _MAX_BITS:
            raise CorruptFileError(f"packed struct with a child of {message.bits_per_value} bits")
        return PackedField(value, bits=message.bits_per_value)
    if layout != "bits_per_length" or message.bits_per_length not in (32, 64):
        raise CorruptFileError("packed struct with a child that has neither a width nor a length of 32 or 64 bits")
    return PackedField(value, length_bits=message.bits_per_length)


def _parse_range(message: Any, depth: int) -> Range:
    return Range(_sequence_bits(message), message.start, message.step)


def _parse_delta(message: Any, depth: int) -> Delta:
    return Delta(_sequence_bits(message), message.base, _child(message, "deltas", depth))


def _sequence_bits(message: Any) -> int:
    bits: int = message.uncompressed_bits_per_value
    if bits not in (32, 64):
        raise CorruptFileError(f"encoding {message.DESCRIPTOR.name} of values of {bits} bits")
    return bits


_PARSERS: dict[str, Callable[[Any, int], Encoding]] = {
    "flat": _parse_flat,
    "variable": _parse_variable,
    "constant": _parse_constant,
    "out_of_line_bitpacking": _parse_out_of_line,
    "inline_bitpacking": _parse_inline,
    "fsst": _parse_fsst,
    "dictionary": _parse_dictionary,
    "rle": _parse_rle,
    "byte_stream_split": _parse_split,
    "general": _parse_general,
    "fixed_size_list": _parse_fixed_size_list,
    "packed_struct": _parse_packed,
    "variable_packed_struct": _parse_variable_packed,
    "range": _parse_range,
    "delta": _parse_delta,
}


# -- to messages -------------------------------------------------------------------------------------------------


def to_message(encoding: Encoding) -> pb.CompressiveEncoding:
    """The encoding as a message of 2.1 and 2.2.

    Raises
    ------
    UnsupportedError
        An encoding only 2.3 has.
    """
    writer = _WRITERS.get(type(encoding))
    if writer is None:
        raise UnsupportedError(f"encoding {type(encoding).__name__} exists in file version 2.3 only")
    return writer(encoding)


def _flat_message(bits: int) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))


def _constant_message(encoding: Constant) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(constant=pb.Constant(value=encoding.value))


def _general_message(encoding: General) -> pb.CompressiveEncoding:
    compression = pb.BufferCompression(scheme=_SCHEME_NUMBERS[encoding.scheme], level=encoding.level)
    return pb.CompressiveEncoding(general=pb.General(compression=compression, values=to_message(encoding.values)))


def _packed_message(encoding: PackedStruct) -> pb.CompressiveEncoding:
    packed = pb.PackedStruct(bits_per_value=encoding.bits, values=_flat_message(sum(encoding.bits)))
    return pb.CompressiveEncoding(packed_struct=packed)


def _variable_packed_message(encoding: VariablePackedStruct) -> pb.CompressiveEncoding:
    fields = [
        pb.VariablePackedStruct.FieldEncoding(
            value=to_message(field.value), bits_per_value=field.bits, bits_per_length=field.length_bits
        )
        for field in encoding.fields
    ]
    return pb.CompressiveEncoding(variable_packed_struct=pb.VariablePackedStruct(fields=fields))


_WRITERS: dict[type, Callable[[Any], pb.CompressiveEncoding]] = {
    Flat: lambda e: _flat_message(e.bits),
    Variable: lambda e: pb.CompressiveEncoding(variable=pb.Variable(offsets=to_message(e.offsets))),
    Constant: _constant_message,
    OutOfLineBitpacking: lambda e: pb.CompressiveEncoding(
        out_of_line_bitpacking=pb.OutOfLineBitpacking(uncompressed_bits_per_value=e.bits, values=_flat_message(e.width))
    ),
    InlineBitpacking: lambda e: pb.CompressiveEncoding(
        inline_bitpacking=pb.InlineBitpacking(uncompressed_bits_per_value=e.bits)
    ),
    Fsst: lambda e: pb.CompressiveEncoding(fsst=pb.Fsst(symbol_table=e.symbol_table, values=to_message(e.values))),
    Rle: lambda e: pb.CompressiveEncoding(rle=pb.Rle(values=to_message(e.values), run_lengths=to_message(e.lengths))),
    ByteStreamSplit: lambda e: pb.CompressiveEncoding(
        byte_stream_split=pb.ByteStreamSplit(values=_flat_message(e.bits))
    ),
    General: _general_message,
    FixedSizeList: lambda e: pb.CompressiveEncoding(
        fixed_size_list=pb.FixedSizeList(
            items_per_value=e.dimension, has_validity=e.has_validity, values=to_message(e.values)
        )
    ),
    PackedStruct: _packed_message,
    VariablePackedStruct: _variable_packed_message,
}
