"""Values as full-zip pages deliver them (packed, or as offsets and bytes) to Arrow arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import aligned, allocate, octets
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.v2_1.compressive import (
    Constant,
    Encoding,
    FixedSizeList,
    Flat,
    Fsst,
    General,
    PackedStruct,
    Variable,
    VariablePackedStruct,
)
from lance_dataset.file.v2_1.read.arrays import (
    FixedSizeListShape,
    binary_array,
    fixed_array,
    packed_array,
    value_bits,
)
from lancecodec import OffsetOverflowError, flat, fsst, general, packed
from lancecodec.fixed_size_list import Shape
from lancecodec.general import Scheme

__all__ = ["fixed_values", "fixed_width", "symbol_table", "variable_values"]

#: Most that the values of one read may hold decompressed: what 64-bit offsets would allow is no bound.
_MAX_BYTES = 1 << 34


def fixed_width(encoding: Encoding) -> int | None:
    """Bytes of a value; None for values of any length."""
    if isinstance(encoding, Flat):
        return (encoding.bits + 7) // 8 if encoding.bits % 8 == 0 else None
    if isinstance(encoding, PackedStruct):
        return sum(encoding.bits) // 8
    if isinstance(encoding, Constant):
        return 0
    if isinstance(encoding, FixedSizeList):
        dimensions, has_validity, inner = _dimensions(encoding)
        bits = inner.bits if isinstance(inner, Flat) else 0
        return Shape(dimensions, has_validity, bits).row_bytes
    return None


def _dimensions(encoding: FixedSizeList) -> tuple[list[int], list[bool], Encoding]:
    dimensions, has_validity = [], []
    inner: Encoding = encoding
    while isinstance(inner, FixedSizeList):
        dimensions.append(inner.dimension)
        has_validity.append(inner.has_validity)
        inner = inner.values
    return dimensions, has_validity, inner


def fixed_values(encoding: Encoding, value_type: pa.DataType, values: pa.Buffer, length: int, where: str) -> pa.Array:
    """Values of one width, packed.

    Raises
    ------
    CorruptFileError
        The encoding does not fit the type.
    UnsupportedError
        The format does not have it in full-zip pages.
    """
    if isinstance(encoding, FixedSizeList):
        return _list_values(encoding, value_type, values, length, where)
    if isinstance(encoding, PackedStruct):
        widths = [bits // 8 for bits in encoding.bits]
        if not pa.types.is_struct(value_type) or [value_bits(child.type) // 8 for child in value_type] != widths:
            raise CorruptFileError(f"{where}: rows of {encoding.bits} bits do not fit the type {value_type}")
        return packed_array(value_type, widths, values, length)
    if not isinstance(encoding, Flat):
        raise UnsupportedError(f"{where}: encoding {type(encoding).__name__} cannot be read in full-zip pages")
    if encoding.bits == 8 and pa.types.is_boolean(value_type):
        bits = allocate((length + 7) // 8)
        flat.booleans_from_bytes(values.slice(0, length), bits)
        return fixed_array(value_type, length, bits)
    if encoding.bits != value_bits(value_type):
        raise CorruptFileError(f"{where}: values of {encoding.bits} bits do not fit the type {value_type}")
    return fixed_array(value_type, length, aligned(values, encoding.bits // 8))


def _list_values(
    encoding: FixedSizeList, value_type: pa.DataType, rows: pa.Buffer, length: int, where: str
) -> pa.Array:
    dimensions, has_validity, inner = _dimensions(encoding)
    lists = FixedSizeListShape(value_type, dimensions, has_validity, where)
    total = length * lists.counts[-1]
    if isinstance(inner, Constant) and inner.value is None:
        bits = 0
    elif isinstance(inner, Flat) and inner.bits == value_bits(lists.item_type):
        bits = inner.bits
    else:
        raise CorruptFileError(f"{where}: items {inner} do not fit the type {value_type}")
    if bits and not any(has_validity):
        return lists.assemble(
            length, [None] * len(dimensions), fixed_array(lists.item_type, total, _aligned(rows, bits))
        )
    bitmaps = [
        allocate((length * count + 7) // 8) if stored else None
        for count, stored in zip(lists.counts, has_validity, strict=True)
    ]
    values = allocate((total * bits + 7) // 8) if bits else None
    Shape(dimensions, has_validity, bits).unpack_rows(rows, length, bitmaps, values)
    if values is None:
        return lists.assemble(length, [*bitmaps[:-1], None], pa.nulls(total, lists.item_type))
    return lists.assemble(length, bitmaps, fixed_array(lists.item_type, total, values))


def _aligned(values: pa.Buffer, bits: int) -> pa.Buffer:
    return aligned(values, bits // 8) if bits % 8 == 0 else values


# -- values of any length ----------------------------------------------------------------------------------------


def symbol_table(encoding: Encoding) -> bytes | None:
    """The FSST table that unzipping decodes with, if there is one."""
    return encoding.symbol_table if isinstance(encoding, Fsst) else None


def variable_values(
    encoding: Encoding,
    value_type: pa.DataType,
    offsets: pa.Buffer,
    wide: bool,
    data: pa.Buffer,
    length: int,
    validity: pa.Buffer | None,
    where: str,
) -> pa.Array:
    """Values of any length, FSST codes decoded already.

    Parameters
    ----------
    offsets, wide, data
        The values as stored, nulls empty; for strings and binaries `wide` is that of the type.
    validity
        Which are valid; None if all are.
    """
    if isinstance(encoding, VariablePackedStruct):
        return _struct_values(encoding, value_type, offsets, wide, data, length, validity, where)
    if not is_binary_like(value_type):
        raise CorruptFileError(f"{where}: values of any length do not fit the type {value_type}")
    if isinstance(encoding, General):
        if not isinstance(encoding.values, Variable):
            raise UnsupportedError(f"{where}: compressed {type(encoding.values).__name__} values in a full-zip page")
        offsets, data = _decompress(encoding.scheme, offsets, wide, data, length, validity)
    elif not isinstance(encoding, Variable | Fsst):
        raise UnsupportedError(f"{where}: encoding {type(encoding).__name__} cannot be read in full-zip pages")
    return binary_array(value_type, length, offsets, data)


def _decompress(
    scheme: Scheme, offsets: pa.Buffer, wide: bool, data: pa.Buffer, length: int, validity: pa.Buffer | None
) -> tuple[pa.Buffer, pa.Buffer]:
    kind = np.int64 if wide else np.int32
    ends = np.frombuffer(offsets, kind, length + 1)[1:].astype(np.int64)
    plain_ends = np.empty(length, np.int64)
    total = general.decompressed_ends(scheme, data, ends.data, plain_ends.data, _MAX_BYTES, 0, validity)
    if not wide and total > np.iinfo(np.int32).max:
        raise OffsetOverflowError("the decompressed values have more than 2**31 - 1 bytes")
    out = allocate(total)
    general.decompress_units(scheme, data, ends.data, plain_ends.data, out)
    return pa.py_buffer(np.concatenate([[0], plain_ends]).astype(kind)), out


def _struct_values(
    encoding: VariablePackedStruct,
    value_type: pa.DataType,
    offsets: pa.Buffer,
    wide: bool,
    data: pa.Buffer,
    length: int,
    validity: pa.Buffer | None,
    where: str,
) -> pa.Array:
    if not pa.types.is_struct(value_type) or value_type.num_fields != len(encoding.fields):
        raise CorruptFileError(f"{where}: rows of {len(encoding.fields)} fields do not fit the type {value_type}")
    shapes: list[tuple[bool, int]] = []
    outputs: list[pa.Buffer | tuple[pa.Buffer, bool]] = []
    for child, stored in zip(value_type, encoding.fields, strict=True):
        if stored.bits is not None:
            if fixed_width(stored.value) != stored.bits // 8:
                raise CorruptFileError(f"{where}: field {child.name!r} of {stored.bits} bits is {stored.value}")
            # Refuses a width that is not the type's before there is memory for it.
            fixed_values(stored.value, child.type, pa.py_buffer(b""), 0, f"{where}, field {child.name!r}")
            shapes.append((False, stored.bits // 8))
            outputs.append(allocate(length * stored.bits // 8))
        else:
            shapes.append((True, (stored.length_bits or 0) // 8))
            outputs.append((allocate((length + 1) * (8 if _child_wide(child.type) else 4)), _child_wide(child.type)))
    sizes = packed.split_rows(offsets, wide, data, length, shapes, outputs, validity)
    texts = [allocate(size) if variable else None for (variable, _), size in zip(shapes, sizes, strict=True)]
    packed.split_bytes(offsets, wide, data, length, shapes, texts, validity)
    children = [
        _struct_child(stored.value, child.type, output, text, length, validity, f"{where}, field {child.name!r}")
        for child, stored, output, text in zip(value_type, encoding.fields, outputs, texts, strict=True)
    ]
    return pa.Array.from_buffers(value_type, length, [None], 0, 0, children)


def _child_wide(child_type: pa.DataType) -> bool:
    """Offsets of a child are split with the width of its type; nested rows have 64 bits."""
    return is_wide(child_type) or not is_binary_like(child_type)


def _struct_child(
    encoding: Encoding,
    child_type: pa.DataType,
    output: pa.Buffer | tuple[pa.Buffer, bool],
    text: pa.Buffer | None,
    length: int,
    validity: pa.Buffer | None,
    where: str,
) -> pa.Array:
    if not isinstance(output, tuple):
        return fixed_values(encoding, child_type, output, length, where)
    offsets, wide = output
    data: pa.Buffer = text
    if isinstance(encoding, Fsst):
        offsets, data = _decode_fsst(encoding, offsets, wide, data, length)
    return variable_values(encoding, child_type, offsets, wide, data, length, validity, where)


def _decode_fsst(
    encoding: Fsst, offsets: pa.Buffer, wide: bool, data: pa.Buffer, length: int
) -> tuple[pa.Buffer, pa.Buffer]:
    table, width = fsst.SymbolTable(encoding.symbol_table), 8 if wide else 4
    out_offsets, out = allocate((length + 1) * width), allocate(table.decoded_size(data))
    ends = octets(out_offsets)
    ends[:width] = bytes(width)
    table.decode(data, offsets.slice(width), wide, 0, length, 0, wide, ends[width:], out)
    return out_offsets, out
