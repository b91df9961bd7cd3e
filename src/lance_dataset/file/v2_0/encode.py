"""From Arrow arrays to the pages of a 2.0 file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset._proto import encodings_pb2 as pb
from lance_dataset.errors import SchemaError, UnsupportedError
from lance_dataset.file.buffers import aligned, allocate, bit_width, bitmap_at_zero, concat_arrays
from lance_dataset.file.column import ColumnEncoder, EncodedPage
from lance_dataset.file.kinds import is_binary_like, is_text, is_wide
from lance_dataset.file.options import is_packed
from lance_dataset.schema import Field, Schema
from lance_dataset.types import NESTED_TYPES
from lancecodec import offsets as offset_codec
from lancecodec import utf8

__all__ = ["StructuredEncoder", "check_schema"]

#: As the reference: strings become a dictionary from this many values on, below this many distinct ones.
_DICTIONARY_THRESHOLD = 100
_SAMPLE = 1024


def check_schema(schema: Schema) -> None:
    """Refuse what 2.0 cannot hold.

    Raises
    ------
    UnsupportedError
        Naming the column and the version that can hold it.
    """
    for top in schema.fields:
        for node in top.walk():
            path = top.name if node is top else f"{top.name} (field {node.name})"
            if node.logical_type == "map":
                raise UnsupportedError(f"column {path!r}: file version 2.0 has no maps; 2.2 is the first that has")
            if node.logical_type.startswith("fixed_size_list:struct:"):
                raise UnsupportedError(
                    f"column {path!r}: file version 2.0 has no fixed-size lists of structs; 2.2 is the first that has"
                )
            if pa.types.is_fixed_size_list(node.storage_type):
                _check_fixed_list(node.storage_type, path)
            if "lance-encoding:blob" in node.metadata:
                raise UnsupportedError(f"column {path!r}: blob columns cannot be written by this release")
            if is_packed(node):
                raise UnsupportedError(f"column {path!r}: packed structs cannot be written by this release")


def _check_fixed_list(arrow_type: pa.DataType, path: str) -> None:
    item = arrow_type.value_type
    if is_binary_like(item) or pa.types.is_null(item):
        raise UnsupportedError(f"column {path!r}: no file version holds fixed-size lists of {item}; use a list")
    if pa.types.is_fixed_size_list(item):
        _check_fixed_list(item, path)


class StructuredEncoder(ColumnEncoder):
    """Pages of a top-level field and of all below it.

    Parameters
    ----------
    field
        The field.
    first_column
        Column index of the field; those below it follow depth first.
    """

    def __init__(self, field: Field, first_column: int) -> None:
        self._field = field
        self._first = first_column
        self._header_rows: dict[int, int] = {}

    def encode(self, arrays: Sequence[pa.Array]) -> Iterator[EncodedPage]:
        """See `ColumnEncoder.encode`."""
        return encode_column(self._field, self._field.name, self._first, arrays, self._header_rows)

    def finish(self) -> Iterator[EncodedPage]:
        """The headers of structs."""
        for index, node in enumerate(self._field.walk(), start=self._first):
            if node.logical_type == "struct":
                yield struct_header(index, self._header_rows.get(index, 0))


def struct_header(column: int, length: int) -> EncodedPage:
    """The one page of a struct's own column."""
    return EncodedPage(column, length, pb.ArrayEncoding(struct=pb.SimpleStruct()))


def encode_column(
    node: Field, path: str, first_column: int, arrays: Sequence[pa.Array], header_rows: dict[int, int]
) -> Iterator[EncodedPage]:
    """Encode a span of rows of a field and of all below it, children before the parent's page.

    Parameters
    ----------
    node
        The field.
    path
        Its path, for error messages.
    first_column
        Column index of the field; those below it follow depth first.
    arrays
        Non-empty arrays of the storage type that together are the span.
    header_rows
        Rows so far per struct column; updated. Struct headers are written once, at the end of the file.

    Raises
    ------
    UnsupportedError
        A null struct, which 2.0 cannot hold.
    SchemaError
        A null in a field that is not nullable.
    """
    if not node.nullable and any(array.null_count for array in arrays):
        raise SchemaError(f"column {path!r} is declared not nullable, but its data holds nulls")
    if node.logical_type == "struct":
        yield from _encode_struct(node, path, first_column, arrays, header_rows)
    elif node.logical_type in NESTED_TYPES:
        yield from _encode_list(node, path, first_column, concat_arrays(list(arrays), node.storage_type), header_rows)
    elif pa.types.is_dictionary(node.storage_type):
        yield from _encode_dictionary(first_column, arrays, node.storage_type, path)
    elif is_binary_like(node.storage_type):
        yield _encode_binary_like(first_column, arrays, node.storage_type)
    else:
        yield _encode_fixed_column(first_column, arrays)


def _encode_struct(
    node: Field, path: str, column: int, arrays: Sequence[pa.Array], header_rows: dict[int, int]
) -> Iterator[EncodedPage]:
    for array in arrays:
        if array.null_count:
            raise UnsupportedError(
                f"column {path!r}: holds {array.null_count} null structs, which file version 2.0 cannot store; "
                "2.1 is the first version that can"
            )
    header_rows[column] = header_rows.get(column, 0) + sum(len(array) for array in arrays)
    below = column + 1
    for number, child in enumerate(node.children):
        # field() keeps the offset of a sliced struct out; flatten() would copy validity, and there is none.
        values = [array.field(number) for array in arrays]
        yield from encode_column(child, f"{path}.{child.name}", below, values, header_rows)
        below += sum(1 for _ in child.walk())


def _encode_list(
    node: Field, path: str, column: int, array: pa.Array, header_rows: dict[int, int]
) -> Iterator[EncodedPage]:
    array = _without_hidden_items(array)
    length, wide = len(array), is_wide(array.type)
    validity, offsets = array.buffers()[:2]
    entry = 8 if wide else 4
    offsets = aligned(offsets.slice(array.offset * entry, (length + 1) * entry), entry)
    view = np.frombuffer(offsets, np.int64 if wide else np.int32)
    first, num_items = int(view[0]), int(view[-1] - view[0])
    adjustment = num_items + 1
    ends = _encode_ends(offsets, wide, length, validity if array.null_count else None, array.offset, 0, adjustment)
    if num_items:
        items = array.values.slice(first, num_items)
        child = node.children[0]
        yield from encode_column(child, f"{path}.{child.name}", column + 1, [items], header_rows)
    encoding = pb.ArrayEncoding(
        list=pb.List(offsets=_no_nulls(_flat(64, 0)), null_offset_adjustment=adjustment, num_items=num_items)
    )
    yield EncodedPage(column, length, encoding, [[ends]])


def _without_hidden_items(array: pa.Array) -> pa.Array:
    """The same lists, null ones without items under them."""
    if array.null_count == 0:
        return array
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    visible = pc.sum(lengths).as_py() or 0
    offsets = array.offsets
    if offsets[-1].as_py() - offsets[0].as_py() == visible:
        return array
    wide = is_wide(array.type)
    compact = np.zeros(len(array) + 1, np.int64 if wide else np.int32)
    np.cumsum(np.asarray(lengths), out=compact[1:])
    validity = bitmap_at_zero(array.buffers()[0], array.offset, len(array))
    return pa.Array.from_buffers(array.type, len(array), [validity, pa.py_buffer(compact)], children=[array.flatten()])


def _encode_ends(
    offsets: pa.Buffer, wide: bool, length: int, validity: pa.Buffer | None, bit: int, base: int, adjustment: int
) -> pa.Buffer:
    out = allocate(8 * length)
    bits = None if validity is None else validity
    offset_codec.encode(offsets, wide, length, bits, bit, base, adjustment, out)
    return out


# -- leaves ------------------------------------------------------------------------------------------------------


def _encode_fixed_column(column: int, arrays: Sequence[pa.Array]) -> EncodedPage:
    length = sum(len(array) for array in arrays)
    buffers: list[list[pa.Buffer]] = []
    encoding = _encode_fixed(arrays, length, buffers)
    return EncodedPage(column, length, encoding, buffers)


def _encode_fixed(arrays: Sequence[pa.Array], length: int, buffers: list[list[pa.Buffer]]) -> pb.ArrayEncoding:
    """Nullable around flat values or fixed-size lists; appends to `buffers` validity first, then values."""
    nulls = sum(array.null_count for array in arrays)
    arrow_type = arrays[0].type
    if nulls == length:
        return pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))
    validity = None
    if nulls:
        buffers.append([_joined_validity(arrays)])
        validity = _flat(1, len(buffers) - 1)
    if pa.types.is_fixed_size_list(arrow_type):
        values = _encode_fixed_lists(arrays, arrow_type, buffers)
    else:
        buffers.append(_value_parts(arrays, arrow_type))
        values = _flat(bit_width(arrow_type), len(buffers) - 1)
    if validity is None:
        return _no_nulls(values)
    some = pb.Nullable.SomeNull(validity=validity, values=values)
    return pb.ArrayEncoding(nullable=pb.Nullable(some_nulls=some))


def _encode_fixed_lists(
    arrays: Sequence[pa.Array], arrow_type: pa.FixedSizeListType, buffers: list[list[pa.Buffer]]
) -> pb.ArrayEncoding:
    size = arrow_type.list_size
    items = [array.values.slice(array.offset * size, len(array) * size) for array in arrays]
    encoded = _encode_fixed(items, sum(len(item) for item in items), buffers)
    return pb.ArrayEncoding(fixed_size_list=pb.FixedSizeList(dimension=size, items=encoded))


def _joined_validity(arrays: Sequence[pa.Array]) -> pa.Buffer:
    """One bitmap of all arrays, from bit 0 on."""
    joined = concat_arrays([array.is_valid() for array in arrays], pa.bool_())
    return bitmap_at_zero(joined.buffers()[1], joined.offset, len(joined)).slice(0, (len(joined) + 7) // 8)


def _value_parts(arrays: Sequence[pa.Array], arrow_type: pa.DataType) -> list[pa.Buffer]:
    if pa.types.is_boolean(arrow_type):
        joined = concat_arrays(list(arrays), arrow_type)
        bits = bitmap_at_zero(joined.buffers()[1], joined.offset, len(joined))
        return [bits.slice(0, (len(joined) + 7) // 8)]
    width = bit_width(arrow_type) // 8
    return [array.buffers()[1].slice(array.offset * width, len(array) * width) for array in arrays if len(array)]


def _encode_binary_like(column: int, arrays: Sequence[pa.Array], arrow_type: pa.DataType) -> EncodedPage:
    length = sum(len(array) for array in arrays)
    if pa.types.is_string(arrow_type) and length >= _DICTIONARY_THRESHOLD:
        page = _encode_string_dictionary(column, arrays, length)
        if page is not None:
            return page
    buffers: list[list[pa.Buffer]] = []
    encoding = _encode_binary(arrays, length, buffers)
    return EncodedPage(column, length, encoding, buffers)


def _encode_binary(arrays: Sequence[pa.Array], length: int, buffers: list[list[pa.Buffer]]) -> pb.ArrayEncoding:
    arrays = [_without_hidden_bytes(array) for array in arrays]
    wide = is_wide(arrays[0].type)
    entry = 8 if wide else 4
    spans = []
    for array in arrays:
        offsets = aligned(array.buffers()[1].slice(array.offset * entry, (len(array) + 1) * entry), entry)
        view = np.frombuffer(offsets, np.int64 if wide else np.int32)
        spans.append((array, offsets, view))
    total = sum(int(view[-1] - view[0]) for _, _, view in spans)
    ends, data, base = [], [], 0
    for array, offsets, view in spans:
        first, last = int(view[0]), int(view[-1])
        validity = array.buffers()[0] if array.null_count else None
        ends.append(_encode_ends(offsets, wide, len(array), validity, array.offset, base, total + 1))
        base += last - first
        if last > first:
            content = array.buffers()[2].slice(first, last - first)
            if is_text(array.type):
                utf8.validate(content, offsets if first == 0 else pa.py_buffer(view - first), wide)
            data.append(content)
    buffers.extend([ends, data])
    binary = pb.Binary(
        indices=_no_nulls(_flat(64, len(buffers) - 2)),
        bytes=_flat(8, len(buffers) - 1),
        null_adjustment=total + 1 if length else 0,
    )
    return pb.ArrayEncoding(binary=binary)


def _without_hidden_bytes(array: pa.Array) -> pa.Array:
    """The same values, null ones without bytes under them."""
    if array.null_count == 0:
        return array
    lengths = pc.binary_length(array)
    visible = pc.sum(lengths).as_py() or 0
    wide = is_wide(array.type)
    offsets = array.buffers()[1].slice(array.offset * (8 if wide else 4))
    view = np.frombuffer(aligned(offsets, 8 if wide else 4), np.int64 if wide else np.int32, len(array) + 1)
    if int(view[-1]) - int(view[0]) == visible:
        return array
    # Taking every value copies the visible bytes only.
    return array.take(pa.array(np.arange(len(array), dtype=np.int64)))


def _encode_string_dictionary(column: int, arrays: Sequence[pa.Array], length: int) -> EncodedPage | None:
    """u8 indices, 0 for null, k for item k - 1; None when there are too many distinct strings for it to pay."""
    if len(pc.unique(arrays[0].slice(0, _SAMPLE))) > _DICTIONARY_THRESHOLD:
        return None
    encoded = pa.chunked_array(list(arrays)).dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    items = encoded.dictionary
    if not 0 < len(items) < _DICTIONARY_THRESHOLD:
        return None
    indices = pc.fill_null(pc.add(encoded.indices, 1), 0).cast(pa.uint8())
    buffers = [[indices.buffers()[1].slice(indices.offset, length)]]
    items_encoding = _encode_binary([items], len(items), buffers)
    dictionary = pb.Dictionary(indices=_no_nulls(_flat(8, 0)), items=items_encoding, num_dictionary_items=len(items))
    return EncodedPage(column, length, pb.ArrayEncoding(dictionary=dictionary), buffers)


def _encode_dictionary(
    column: int, arrays: Sequence[pa.Array], arrow_type: pa.DictionaryType, path: str
) -> Iterator[EncodedPage]:
    """A dictionary-typed column: the dictionary of the page with a null item if there are nulls, plain indices."""
    array = _join_dictionaries(arrays, arrow_type, path)
    values = array.dictionary_decode() if array.dictionary.null_count else None
    if values is not None:  # a null inside the dictionary is a null value
        array = values.dictionary_encode()
    room = 2 ** _index_bits(arrow_type.index_type) - bool(array.null_count)
    items, indices = _compact(array, room)
    if len(items) > room:
        # More distinct values, with the null item, than the index type tells apart: shorter pages have fewer.
        middle = len(array) // 2
        yield from _encode_dictionary(column, [array.slice(0, middle)], arrow_type, path)
        yield from _encode_dictionary(column, [array.slice(middle)], arrow_type, path)
        return
    if array.null_count:
        items = pa.concat_arrays([items, pa.nulls(1, items.type)])
        indices = pc.fill_null(indices, len(items) - 1)
    indices = indices.cast(arrow_type.index_type)
    width = arrow_type.index_type.bit_width // 8
    buffers = [[indices.buffers()[1].slice(indices.offset * width, len(indices) * width)]]
    if is_binary_like(items.type):
        items_encoding = _encode_binary([items], len(items), buffers)
    else:
        items_encoding = _encode_fixed([items], len(items), buffers)
    dictionary = pb.Dictionary(
        indices=_no_nulls(_flat(8 * width, 0)), items=items_encoding, num_dictionary_items=len(items)
    )
    yield EncodedPage(column, len(array), pb.ArrayEncoding(dictionary=dictionary), buffers)


def _join_dictionaries(arrays: Sequence[pa.Array], arrow_type: pa.DictionaryType, path: str) -> pa.DictionaryArray:
    """One array over the union of the dictionaries, whatever number of items that has."""
    for array in arrays:
        bounds = pc.min_max(array.indices)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        if low is not None and (low < 0 or high >= len(array.dictionary)):
            raise SchemaError(
                f"column {path!r}: dictionary index {low if low < 0 else high} is outside the "
                f"{len(array.dictionary)} items of its dictionary"
            )
    if len(arrays) == 1:
        return arrays[0]
    # The union may need more room than the index type has.
    wide = [pa.DictionaryArray.from_arrays(array.indices.cast(pa.int64()), array.dictionary) for array in arrays]
    return concat_arrays(wide, pa.dictionary(pa.int64(), arrow_type.value_type))


def _index_bits(index_type: pa.DataType) -> int:
    """Bits of an index without its sign."""
    return index_type.bit_width - pa.types.is_signed_integer(index_type)


def _compact(array: pa.DictionaryArray, room: int) -> tuple[pa.Array, pa.Array]:
    """Items and int64 indices; unused items are dropped when they are the greater part or more than there is room."""
    indices = array.indices.cast(pa.int64())
    used = pc.unique(indices.drop_null())
    if 2 * len(used) >= len(array.dictionary) and len(array.dictionary) <= room:
        return array.dictionary, indices
    renumber = np.zeros(len(array.dictionary), np.int64)
    renumber[np.asarray(used)] = np.arange(len(used))
    return array.dictionary.take(used), pa.array(renumber).take(indices)


def _flat(bits: int, buffer: int) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(flat=pb.Flat(bits_per_value=bits, buffer=pb.Buffer(buffer_index=buffer)))


def _no_nulls(values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=values)))
