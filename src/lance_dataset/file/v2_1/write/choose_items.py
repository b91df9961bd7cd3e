"""How the values of a full-zip page are encoded, each by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.kinds import is_binary_like, is_text
from lance_dataset.file.options import EncodingOptions, encoding_options
from lance_dataset.file.v2_1.compressive import Flat, Fsst, General, PackedField, Variable, VariablePackedStruct
from lance_dataset.file.v2_1.read.arrays import value_bits
from lance_dataset.file.v2_1.write.choose_binary import fsst_worthwhile, verbatim_table
from lance_dataset.file.v2_1.write.encoded import EncodedItems
from lance_dataset.file.v2_1.write.fsst_table import FsstTables, fsst_codes
from lance_dataset.file.v2_1.write.leaf_values import Strings, fixed_bytes, strings_of
from lance_dataset.file.v2_1.write.list_values import lists_of, zip_lists
from lance_dataset.file.v2_1.write.packed_values import check_children, is_variable_packed
from lance_dataset.file.v2_1.write.request import in_units
from lance_dataset.schema import Field
from lancecodec import bitmap, fsst, general, packed
from lancecodec.general import Scheme

if TYPE_CHECKING:
    from lancecodec.packed import Child

__all__ = ["encode_items"]

#: As the reference: values are compressed one by one from so many bytes on, unasked if one is longer than that.
_GENERAL_LEAST_BYTES = 32768
_SAMPLE_BYTES = 1 << 20
#: Compressed values must have at most this share of their bytes.
_GENERAL_SHARE = 0.97


def encode_items(
    values: pa.Array,
    validity: pa.Buffer | None,
    field: Field,
    options: EncodingOptions,
    version: str,
    tables: FsstTables | None = None,
) -> EncodedItems:
    """Encode the values of a full-zip page.

    Parameters are those of `choose_chunks`.

    Raises
    ------
    UnsupportedError
        A type that full-zip pages of the version do not hold.
    """
    kind = values.type
    if is_binary_like(kind):
        return _encode_strings(strings_of(values, validity), is_text(kind), options, tables or FsstTables())
    if pa.types.is_fixed_size_list(kind):
        return zip_lists(lists_of(values, validity))
    if pa.types.is_struct(kind) and is_variable_packed(kind):
        return _encode_struct(values, validity, field, version)
    if pa.types.is_boolean(kind):
        out = allocate(len(values))
        bitmap.unpack(values.buffers()[1], values.offset, len(values), out)
        return EncodedItems(Flat(8), 1, None, out, None, False, "a byte each")
    bits = value_bits(kind)
    if bits == 0:
        raise UnsupportedError(f"column {field.name!r}: values of type {kind} cannot be stored item by item")
    return EncodedItems(Flat(bits), bits // 8, None, fixed_bytes(values, bits), None, False, f"{bits // 8} bytes each")


# -- strings -----------------------------------------------------------------------------------------------------


def _encode_strings(strings: Strings, text: bool, options: EncodingOptions, tables: FsstTables) -> EncodedItems:
    encoding = Variable(Flat(64 if strings.wide else 32))
    plain = EncodedItems(
        encoding,
        None,
        encoding.offsets.bits if isinstance(encoding.offsets, Flat) else None,
        strings.data,
        strings.offsets,
        strings.wide,
        f"plain, {in_units(strings.total)}",
    )
    asked = options.compression
    if asked == "none" or strings.total == 0:
        return plain
    if strings.total >= _GENERAL_LEAST_BYTES and (asked in ("lz4", "zstd") or strings.longest > _GENERAL_LEAST_BYTES):
        return _compress(plain, strings, options)
    if asked in ("lz4", "zstd"):
        return plain
    return _as_codes(plain, strings, text, asked == "fsst", tables)


def _as_codes(plain: EncodedItems, strings: Strings, text: bool, asked: bool, tables: FsstTables) -> EncodedItems:
    """FSST codes where they pay, or where they were asked for."""
    if not asked and strings.total < 2 * fsst.TABLE_SIZE:
        return plain
    table, ratio = tables.table_for(strings)
    if asked and ratio >= 1:
        table = verbatim_table()
    elif not asked and not fsst_worthwhile(strings, text, ratio):
        return plain
    codes = fsst_codes(strings, table)
    reason = f"FSST codes: {in_units(codes.data.size)} instead of {in_units(strings.total)}"
    encoding = Fsst(table, Variable(Flat(64 if strings.wide else 32)))
    return replace(plain, encoding=encoding, values=codes.data, offsets=codes.offsets, reason=reason)


def _compress(plain: EncodedItems, strings: Strings, options: EncodingOptions) -> EncodedItems:
    """Zstandard value by value, if a sample says that it pays.

    As in the reference, also where LZ4 is asked for, which finds little in a single value.
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


# -- packed structs ----------------------------------------------------------------------------------------------


def _encode_struct(values: pa.StructArray, validity: pa.Buffer | None, field: Field, version: str) -> EncodedItems:
    if version == "2.1":
        raise UnsupportedError(
            f"column {field.name!r}: file version 2.1 packs only fields of a fixed width into a struct; "
            "2.2 is the first that packs others"
        )
    check_children(values, validity, field)
    fields: list[PackedField] = []
    children: list[Child] = []
    for number, child in enumerate(values.type):
        own = next(one for one in field.children if one.name == child.name)
        if pa.types.is_struct(child.type) and not is_variable_packed(child.type):
            raise UnsupportedError(
                f"column {field.name!r}: field {child.name!r}, a packed struct of fixed width, "
                "cannot be part of another packed struct"
            )
        item = encode_items(values.field(number), validity, own, encoding_options(own), version)
        if item.offsets is None:
            width = item.width or 0
            fields.append(PackedField(item.encoding, bits=8 * width))
            children.append((item.values, width))
        else:
            fields.append(PackedField(item.encoding, length_bits=item.offset_bits))
            children.append((item.values, (item.offset_bits or 32) // 8, item.offsets, item.wide))
    return _pack(VariablePackedStruct(tuple(fields)), children, len(values), validity)


def _pack(encoding: VariablePackedStruct, children: list[Child], rows: int, validity: pa.Buffer | None) -> EncodedItems:
    offsets = allocate(8 * (rows + 1))
    packed.row_offsets(children, rows, True, offsets, validity)
    total = int(np.frombuffer(offsets, np.int64)[-1])
    out = allocate(total)
    packed.pack_rows(children, rows, out, validity)
    # Lengths have 32 bits unless the rows together need more, as in the reference.
    bits = 32 if total < 2**32 else 64
    reason = f"rows of {len(children)} fields, {in_units(total)}"
    return EncodedItems(encoding, None, bits, out, offsets, True, reason)
