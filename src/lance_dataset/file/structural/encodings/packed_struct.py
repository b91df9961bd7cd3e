"""Packed structs: rows of children side by side, all of fixed width, or some of variable width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, SchemaError, UnsupportedError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.sizes import size_text
from lance_dataset.file.structural.arrays import packed_array, value_bits
from lance_dataset.file.structural.encodings.base import MAX_BITS, ChunkValues, Encoding, ParsePart, StoredValues
from lance_dataset.file.structural.encodings.flat import flat_chunks, flat_message, parse_flat_part
from lance_dataset.file.structural.encodings.general import compressed
from lance_dataset.file.structural.encodings.request import EncodedChunks, EncodedItems, Request, in_units
from lance_dataset.file.structural.encodings.values import Bytes, fixed_bytes
from lance_dataset.late_dataclass import dataclass
from lance_dataset.types.schema import Field
from lancecodec import bitmap, miniblock_values, packed
from lancecodec.miniblock import Chunks
from lancecodec.miniblock_values import FixedValues

__all__ = [
    "PackedField",
    "PackedStruct",
    "VariablePackedStruct",
    "check_children",
    "encode_packed",
    "is_variable_packed",
    "zip_packed",
]

#: A child to pack: (values, width), or (bytes, width of lengths, offsets, True if the offsets have 64 bits).
_Child: TypeAlias = "tuple[Bytes, int] | tuple[Bytes, int, Bytes, bool]"


@dataclass(frozen=True)
class PackedStruct(Encoding):
    """Rows of children with fixed widths, in bits."""

    bits: tuple[int, ...]

    message_field = "packed_struct"

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> PackedStruct:
        """See `Encoding.parse`."""
        bits = tuple(message.bits_per_value)
        flat = parse_flat_part(message, "values", part)
        if not bits or any(width == 0 or width % 8 for width in bits) or sum(bits) != flat.bits:
            raise CorruptFileError(f"packed struct of {bits} bits in rows of {flat.bits} bits")
        return cls(bits)

    def to_message(self, pb: Any) -> Any:
        """See `Encoding.to_message`."""
        rows = pb.PackedStruct(bits_per_value=self.bits, values=flat_message(pb, sum(self.bits)))
        return pb.CompressiveEncoding(packed_struct=rows)

    @property
    def least_bits(self) -> tuple[float, ...]:
        """See `Encoding.least_bits`."""
        return (sum(self.bits),)

    def most_chunk_bytes(self, count: int, where: str) -> int:
        """See `Encoding.most_chunk_bytes`."""
        return self.padded_bytes(count, sum(self.bits))

    def open_chunks(self, chunks: Chunks, value_type: pa.DataType, where: str) -> ChunkValues:
        """See `Encoding.open_chunks`."""
        return _PackedValues(self._widths(value_type, where), chunks, value_type)

    @property
    def item_width(self) -> int:
        """See `Encoding.item_width`."""
        return sum(self.bits) // 8

    def fixed_items(self, value_type: pa.DataType, values: pa.Buffer, length: int, where: str) -> pa.Array:
        """See `Encoding.fixed_items`."""
        return packed_array(value_type, self._widths(value_type, where), values, length)

    def _widths(self, value_type: pa.DataType, where: str) -> list[int]:
        """Return the checked widths of the children in bytes."""
        widths = [bits // 8 for bits in self.bits]
        if not pa.types.is_struct(value_type) or [value_bits(child.type) // 8 for child in value_type] != widths:
            raise CorruptFileError(f"{where}: rows of {self.bits} bits do not fit the type {value_type}")
        return widths

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        return f"packed struct({', '.join(f'flat {bits}' for bits in self.bits)})"

    @property
    def is_plain(self) -> bool:
        """See `Encoding.is_plain`."""
        return True

    def reason(self, stored: StoredValues) -> str:
        """See `Encoding.reason`."""
        return f"a struct marked as packed: {len(self.bits)} fields row by row, {size_text(stored.size)}"


@dataclass(frozen=True)
class PackedField:
    """Field of a `VariablePackedStruct`: `bits` wide, or preceded by a length of `length_bits` bits."""

    value: Encoding
    bits: int | None = None
    length_bits: int | None = None

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> PackedField:
        """See `Encoding.parse`."""
        value, layout = part(message, "value"), message.WhichOneof("layout")
        if layout == "bits_per_value":
            if message.bits_per_value % 8 or message.bits_per_value > MAX_BITS:
                raise CorruptFileError(f"packed struct with a child of {message.bits_per_value} bits")
            return cls(value, bits=message.bits_per_value)
        if layout != "bits_per_length" or message.bits_per_length not in (32, 64):
            raise CorruptFileError("packed struct with a child that has neither a width nor a length of 32 or 64 bits")
        return cls(value, length_bits=message.bits_per_length)


@dataclass(frozen=True)
class VariablePackedStruct(Encoding):
    """Rows of children with fixed or variable widths."""

    fields: tuple[PackedField, ...]

    message_field = "variable_packed_struct"

    @classmethod
    def parse(cls, message: Any, part: ParsePart) -> VariablePackedStruct:
        """See `Encoding.parse`."""
        if not message.fields:
            raise CorruptFileError("packed struct without children")
        return cls(tuple(PackedField.parse(field, part) for field in message.fields))

    def to_message(self, pb: Any) -> Any:
        """See `Encoding.to_message`."""
        fields = [
            pb.VariablePackedStruct.FieldEncoding(
                value=field.value.to_message(pb), bits_per_value=field.bits, bits_per_length=field.length_bits
            )
            for field in self.fields
        ]
        return pb.CompressiveEncoding(variable_packed_struct=pb.VariablePackedStruct(fields=fields))

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
        if not pa.types.is_struct(value_type) or value_type.num_fields != len(self.fields):
            raise CorruptFileError(f"{where}: rows of {len(self.fields)} fields do not fit the type {value_type}")
        shapes: list[tuple[bool, int]] = []
        outputs: list[pa.Buffer | tuple[pa.Buffer, bool]] = []
        for child, stored in zip(value_type, self.fields, strict=True):
            if stored.bits is not None:
                if stored.value.item_width != stored.bits // 8:
                    raise CorruptFileError(f"{where}: field {child.name!r} of {stored.bits} bits is {stored.value}")
                # Raises before memory is allocated for a width that is not that of the type.
                stored.value.fixed_items(child.type, pa.py_buffer(b""), 0, f"{where}, field {child.name!r}")
                shapes.append((False, stored.bits // 8))
                outputs.append(allocate(length * stored.bits // 8))
            else:
                shapes.append((True, (stored.length_bits or 0) // 8))
                outputs.append(
                    (allocate((length + 1) * (8 if _child_wide(child.type) else 4)), _child_wide(child.type))
                )
        sizes = packed.split_rows(offsets, wide, data, length, shapes, outputs, validity)
        texts = [allocate(size) if variable else None for (variable, _), size in zip(shapes, sizes, strict=True)]
        packed.split_bytes(offsets, wide, data, length, shapes, texts, validity)
        children = [
            _struct_child(stored.value, child.type, output, text, length, validity, f"{where}, field {child.name!r}")
            for child, stored, output, text in zip(value_type, self.fields, outputs, texts, strict=True)
        ]
        return pa.Array.from_buffers(value_type, length, [None], 0, 0, children)

    @property
    def text(self) -> str:
        """See `Encoding.text`."""
        return f"packed struct({', '.join(field.value.text for field in self.fields)})"

    def reason(self, stored: StoredValues) -> str:
        """See `Encoding.reason`."""
        return f"a struct marked as packed: {len(self.fields)} fields row by row, {size_text(stored.size)}"


def _child_wide(child_type: pa.DataType) -> bool:
    """Return whether offsets of a child are split with 64 bits: the width of its type, or a nested row."""
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
        return encoding.fixed_items(child_type, output, length, where)
    offsets, wide = output
    offsets, data = encoding.decode_codes(offsets, wide, text, length)
    return encoding.variable_items(child_type, offsets, wide, data, length, validity, where)


class _PackedValues(ChunkValues):
    """Structs stored by row."""

    def __init__(self, widths: list[int], chunks: Chunks, value_type: pa.DataType) -> None:
        self._rows = FixedValues(chunks, miniblock_values.FLAT, 8 * sum(widths))
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


# -- writing -----------------------------------------------------------------------------------------------------


def is_variable_packed(kind: pa.StructType) -> bool:
    """Return whether rows are described child by child because a child has variable length or is a list."""
    return any(
        is_binary_like(child.type) or pa.types.is_fixed_size_list(child.type) or pa.types.is_struct(child.type)
        for child in kind
    )


def check_children(values: pa.StructArray, validity: pa.Buffer | None, field: Field) -> None:
    """Raise an error if a child cannot be stored in rows.

    Raises
    ------
    SchemaError
        A child is null in a row that is not null.
    UnsupportedError
        A child has a type that is not stored in rows.
    """
    for number, child in enumerate(values.type):
        kind = child.type
        if pa.types.is_boolean(kind) or not (
            value_bits(kind) or is_binary_like(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_struct(kind)
        ):
            raise UnsupportedError(
                f"column {field.name!r}: field {child.name!r} of type {kind} cannot be part of a packed struct; "
                "store the struct unpacked"
            )
        if _has_nulls(values.field(number), validity, len(values)):
            raise SchemaError(
                f"column {field.name!r}: field {child.name!r} holds nulls, which a packed struct cannot express; "
                "store the struct unpacked"
            )


def _has_nulls(child: pa.Array, validity: pa.Buffer | None, count: int) -> bool:
    own = child.buffers()[0]
    if own is None or bitmap.count(own, child.offset, count) == count:
        return False
    if validity is None:
        return True
    rows, values = np.empty(count, np.uint8), np.empty(count, np.uint8)
    bitmap.unpack(validity, 0, count, rows.data)
    bitmap.unpack(own, child.offset, count, values.data)
    return bool((rows > values).any())


def encode_packed(
    values: pa.StructArray, validity: pa.Buffer | None, field: Field, request: Request
) -> EncodedChunks | None:
    """Encode fixed-width rows in chunks; return None if their width varies or two are too wide for a chunk."""
    check_children(values, validity, field)
    if is_variable_packed(values.type):
        return None
    widths = [value_bits(child.type) // 8 for child in values.type]
    row = packed.row_bytes(widths)
    per_chunk = request.flat_values(8 * row)
    if per_chunk == 0:
        return None
    out = allocate(row * len(values))
    columns = [fixed_bytes(values.field(number), 8 * width) for number, width in enumerate(widths)]
    packed.pack(columns, widths, len(values), out)
    flat = flat_chunks(out, 8 * row, len(values), per_chunk)
    rows = EncodedChunks(
        PackedStruct(tuple(8 * width for width in widths)),
        flat.counts,
        flat.buffers,
        per_chunk,
        None,
        f"rows of {len(widths)} fields in {row} bytes",
    )
    return compressed(rows, request)


def zip_packed(
    values: pa.StructArray, validity: pa.Buffer | None, field: Field, encode_child: Callable[..., EncodedItems]
) -> EncodedItems:
    """Encode rows of variable-width children one by one; `encode_child` encodes the values of a field as items.

    Raises
    ------
    SchemaError, UnsupportedError
        As `check_children`, or a child cannot be stored in rows.
    """
    check_children(values, validity, field)
    fields: list[PackedField] = []
    children: list[_Child] = []
    for number, child in enumerate(values.type):
        own = next(one for one in field.children if one.name == child.name)
        if pa.types.is_struct(child.type) and not is_variable_packed(child.type):
            raise UnsupportedError(
                f"column {field.name!r}: field {child.name!r}, a packed struct of fixed width, "
                "cannot be part of another packed struct"
            )
        item = encode_child(values.field(number), validity, own)
        if item.offsets is None:
            width = item.width or 0
            fields.append(PackedField(item.encoding, bits=8 * width))
            children.append((item.values, width))
        else:
            fields.append(PackedField(item.encoding, length_bits=item.offset_bits))
            children.append((item.values, (item.offset_bits or 32) // 8, item.offsets, item.wide))
    return _pack_rows(VariablePackedStruct(tuple(fields)), children, len(values), validity)


def _pack_rows(
    encoding: VariablePackedStruct, children: list[_Child], rows: int, validity: pa.Buffer | None
) -> EncodedItems:
    offsets = allocate(8 * (rows + 1))
    packed.row_offsets(children, rows, True, offsets, validity)
    total = int(np.frombuffer(offsets, np.int64)[-1])
    out = allocate(total)
    packed.pack_rows(children, rows, out, validity)
    # Lengths have 32 bits unless all rows together need more, as in the reference.
    bits = 32 if total < 2**32 else 64
    reason = f"rows of {len(children)} fields, {in_units(total)}"
    return EncodedItems(encoding, None, bits, out, offsets, True, reason)
