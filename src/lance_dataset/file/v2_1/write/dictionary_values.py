"""Arrow dictionary arrays on their way into a page: entries that are not used stay behind."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.buffers import bitmap_at_zero
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.v2_1.read.arrays import value_bits
from lance_dataset.file.v2_1.write.choose_dictionary import encode_indices, fixed_entries, string_entries
from lance_dataset.file.v2_1.write.encoded import EncodedChunks, EncodedDictionary
from lance_dataset.file.v2_1.write.leaf_values import Words, fixed_bytes, strings_of
from lance_dataset.file.v2_1.write.request import Request
from lance_dataset.schema import Field
from lancecodec import bitmap

__all__ = ["encode_dictionary_array"]


def encode_dictionary_array(
    values: pa.DictionaryArray, validity: pa.Buffer | None, field: Field, request: Request
) -> EncodedChunks:
    """A page of a dictionary array without null entries.

    Raises
    ------
    UnsupportedError
        Entries of a type that page dictionaries do not hold.
    """
    kind = values.type
    if not is_binary_like(kind.value_type) and value_bits(kind.value_type) == 0:
        raise UnsupportedError(
            f"column {field.name!r}: dictionaries of {kind.value_type} cannot be stored; decode the dictionary first"
        )
    bits = kind.index_type.bit_width
    indices = Words(fixed_bytes(values, bits), bits, len(values), validity)
    entries = values.dictionary
    used = _used(indices, len(entries))
    if len(used) < len(entries):
        indices, entries = _compact(indices, entries, used)
    elif validity is not None:
        indices = Words(_in_range(indices, len(entries)), bits, len(values), validity)
    return encode_indices(indices, _encode_entries(entries, request), request)


def _integers(indices: Words) -> NDArray[np.unsignedinteger]:
    return np.frombuffer(indices.buffer, f"<u{indices.width}", indices.count)


def _used(indices: Words, entries: int) -> NDArray[np.int64]:
    """Positions of the entries that a valid index points to, at least one."""
    found = np.zeros(entries, np.bool_)
    found[_integers(indices) if indices.validity is None else _integers(indices)[_mask(indices)]] = True
    used = np.flatnonzero(found)
    return used if len(used) else np.zeros(min(1, entries), np.int64)


def _mask(indices: Words) -> NDArray[np.bool_]:
    mask = np.empty(indices.count, np.bool_)
    bitmap.unpack(indices.validity or b"", 0, indices.count, mask.view(np.uint8).data)
    return mask


def _compact(indices: Words, entries: pa.Array, used: NDArray[np.int64]) -> tuple[Words, pa.Array]:
    """Indices of the entries used, and only those."""
    renumber = np.zeros(len(entries), f"<u{indices.width}")
    renumber[used] = np.arange(len(used))
    known = np.frombuffer(_in_range(indices, len(entries)), f"<u{indices.width}", indices.count)
    compacted = Words(pa.py_buffer(renumber[known]), indices.bits, indices.count, indices.validity)
    return compacted, entries.take(pa.array(used))


def _in_range(indices: Words, entries: int) -> pa.Buffer:
    """The indices, those of nulls being any that exist."""
    if indices.validity is None:
        return indices.buffer
    integers = _integers(indices)
    return pa.py_buffer(np.where(_mask(indices) & (integers < entries), integers, 0).astype(integers.dtype))


def _encode_entries(entries: pa.Array, request: Request) -> EncodedDictionary:
    if is_binary_like(entries.type):
        strings = strings_of(entries, None)
        return string_entries(strings.offsets, strings.data, strings.wide, strings.count, request)
    bits = value_bits(entries.type)
    if bits == 1:
        flags = bitmap_at_zero(entries.buffers()[1], entries.offset, len(entries))
        return fixed_entries(flags.slice(0, (len(entries) + 7) // 8), 1, len(entries), request, packed=True)
    return fixed_entries(fixed_bytes(entries, bits), bits, len(entries), request, packed=True)
