"""Encoding of fixed-width values, and fixed-size lists of them, to 2.0 pages."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_dataset._proto import encodings_pb2 as pb
from lance_dataset.file.buffers import bit_width, bitmap_at_zero, concat_arrays
from lance_dataset.file.column import EncodedPage
from lance_dataset.file.v2_0.messages import all_nulls, flat, no_nulls

__all__ = ["encode_fixed", "encode_fixed_column"]


def encode_fixed_column(column: int, arrays: Sequence[pa.Array]) -> EncodedPage:
    """Encode a page of fixed-width values, the concatenation of `arrays`."""
    length = sum(len(array) for array in arrays)
    buffers: list[list[pa.Buffer]] = []
    encoding = encode_fixed(arrays, length, buffers)
    return EncodedPage(column, length, encoding, buffers)


def encode_fixed(arrays: Sequence[pa.Array], length: int, buffers: list[list[pa.Buffer]]) -> pb.ArrayEncoding:
    """Return a nullable encoding of flat values or fixed-size lists; append validity, then values to `buffers`."""
    nulls = sum(array.null_count for array in arrays)
    arrow_type = arrays[0].type
    if nulls == length:
        return all_nulls()
    validity = None
    if nulls:
        buffers.append([_joined_validity(arrays)])
        validity = flat(1, len(buffers) - 1)
    if pa.types.is_fixed_size_list(arrow_type):
        values = _encode_fixed_lists(arrays, arrow_type, buffers)
    else:
        buffers.append(_value_parts(arrays, arrow_type))
        values = flat(bit_width(arrow_type), len(buffers) - 1)
    if validity is None:
        return no_nulls(values)
    some = pb.Nullable.SomeNull(validity=validity, values=values)
    return pb.ArrayEncoding(nullable=pb.Nullable(some_nulls=some))


def _encode_fixed_lists(
    arrays: Sequence[pa.Array], arrow_type: pa.FixedSizeListType, buffers: list[list[pa.Buffer]]
) -> pb.ArrayEncoding:
    size = arrow_type.list_size
    items = [array.values.slice(array.offset * size, len(array) * size) for array in arrays]
    encoded = encode_fixed(items, sum(len(item) for item in items), buffers)
    return pb.ArrayEncoding(fixed_size_list=pb.FixedSizeList(dimension=size, items=encoded))


def _joined_validity(arrays: Sequence[pa.Array]) -> pa.Buffer:
    """Return one bitmap of all arrays, from bit 0 on."""
    joined = concat_arrays([array.is_valid() for array in arrays], pa.bool_())
    return bitmap_at_zero(joined.buffers()[1], joined.offset, len(joined)).slice(0, (len(joined) + 7) // 8)


def _value_parts(arrays: Sequence[pa.Array], arrow_type: pa.DataType) -> list[pa.Buffer]:
    if pa.types.is_boolean(arrow_type):
        joined = concat_arrays(list(arrays), arrow_type)
        bits = bitmap_at_zero(joined.buffers()[1], joined.offset, len(joined))
        return [bits.slice(0, (len(joined) + 7) // 8)]
    width = bit_width(arrow_type) // 8
    return [array.buffers()[1].slice(array.offset * width, len(array) * width) for array in arrays if len(array)]
