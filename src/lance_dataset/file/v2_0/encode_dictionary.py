"""Encoding of dictionary-typed columns to 2.0 pages, each with a dictionary of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset._proto import encodings_pb2 as pb
from lance_dataset.errors import SchemaError
from lance_dataset.file.buffers import concat_arrays
from lance_dataset.file.column import EncodedPage
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.v2_0.encode_binary import encode_binary
from lance_dataset.file.v2_0.encode_fixed import encode_fixed
from lance_dataset.file.v2_0.messages import flat, no_nulls

__all__ = ["encode_dictionary"]


def encode_dictionary(
    column: int, arrays: Sequence[pa.Array], arrow_type: pa.DictionaryType, path: str
) -> Iterator[EncodedPage]:
    """Encode a dictionary-typed column: the dictionary, with a null item if there are nulls, and plain indices."""
    array = _join_dictionaries(arrays, arrow_type, path)
    values = array.dictionary_decode() if array.dictionary.null_count else None
    if values is not None:  # a null inside the dictionary is a null value
        array = values.dictionary_encode()
    room = 2 ** _index_bits(arrow_type.index_type) - bool(array.null_count)
    items, indices = _compact(array, room)
    if len(items) > room:
        # With the null item, there are more distinct values than the index type can represent. Shorter pages help.
        middle = len(array) // 2
        yield from encode_dictionary(column, [array.slice(0, middle)], arrow_type, path)
        yield from encode_dictionary(column, [array.slice(middle)], arrow_type, path)
        return
    if array.null_count:
        items = pa.concat_arrays([items, pa.nulls(1, items.type)])
        indices = pc.fill_null(indices, len(items) - 1)
    indices = indices.cast(arrow_type.index_type)
    width = arrow_type.index_type.bit_width // 8
    buffers = [[indices.buffers()[1].slice(indices.offset * width, len(indices) * width)]]
    if is_binary_like(items.type):
        items_encoding = encode_binary([items], len(items), buffers)
    else:
        items_encoding = encode_fixed([items], len(items), buffers)
    dictionary = pb.Dictionary(
        indices=no_nulls(flat(8 * width, 0)), items=items_encoding, num_dictionary_items=len(items)
    )
    yield EncodedPage(column, len(array), pb.ArrayEncoding(dictionary=dictionary), buffers)


def _join_dictionaries(arrays: Sequence[pa.Array], arrow_type: pa.DictionaryType, path: str) -> pa.DictionaryArray:
    """Return one array over the union of the dictionaries, whatever its number of items."""
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
    # The union may not fit the index type.
    wide = [pa.DictionaryArray.from_arrays(array.indices.cast(pa.int64()), array.dictionary) for array in arrays]
    return concat_arrays(wide, pa.dictionary(pa.int64(), arrow_type.value_type))


def _index_bits(index_type: pa.DataType) -> int:
    """Return the number of bits of an index, without its sign."""
    return index_type.bit_width - pa.types.is_signed_integer(index_type)


def _compact(array: pa.DictionaryArray, room: int) -> tuple[pa.Array, pa.Array]:
    """Return items and int64 indices; unused items are dropped if they are the majority or exceed the room."""
    indices = array.indices.cast(pa.int64())
    used = pc.unique(indices.drop_null())
    if 2 * len(used) >= len(array.dictionary) and len(array.dictionary) <= room:
        return array.dictionary, indices
    renumber = np.zeros(len(array.dictionary), np.int64)
    renumber[np.asarray(used)] = np.arange(len(used))
    return array.dictionary.take(used), pa.array(renumber).take(indices)
