"""Facts about a page that need its decoded values: nulls, plain size, and the size other encodings would need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.file.explain.facts import plain_size
from lance_dataset.file.explain.report import Alternative
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.structural.arrays import value_bits
from lance_dataset.file.structural.nesting import Branch
from lancecodec import fsst, statistics

__all__ = ["Measured", "leaf_array", "measure"]

_WORDS = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}


@dataclass(frozen=True)
class Measured:
    """Decoded values of a page.

    Attributes
    ----------
    nulls
        Null values.
    plain_bytes
        Bytes of the values without compression.
    alternatives
        Bytes that other encodings would take, the smallest first. Estimates: levels and chunks are not
        counted, and FSST is tried on a sample.
    note
        An additional remark.
    """

    nulls: int
    plain_bytes: int | None
    alternatives: tuple[Alternative, ...]
    note: str = ""


def leaf_array(array: pa.Array, branch: Branch) -> pa.Array:
    """Return the values of the leaf of a nested array with one leaf."""
    for nest in branch.above:
        array = array.field(0) if nest.kind == "struct" else array.values
    return array


def measure(pieces: Sequence[pa.Array]) -> Measured:
    """Measure the values of a page. If they are in several arrays, measure only sizes and nulls."""
    if len(pieces) != 1:
        found = [measure([piece]) for piece in pieces]
        plains = [one.plain_bytes for one in found]
        total = None if None in plains else sum(size for size in plains if size is not None)
        return Measured(sum(one.nulls for one in found), total, ())
    array = pieces[0]
    nulls = array.null_count
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    plain: int | None
    sizes: dict[str, int] = {}
    if is_binary_like(array.type):
        plain, sizes = _strings(array)
    elif value_bits(array.type) >= 8 and len(array):
        plain, sizes = plain_size(array.type, len(array)), _words(array, value_bits(array.type))
    else:
        plain = plain_size(array.type, len(array)) if not _has_strings(array.type) else array.nbytes
    if plain is not None:
        sizes["plain"] = plain
    ordered = sorted(sizes.items(), key=lambda item: item[1])
    return Measured(nulls, plain, tuple(Alternative(name, size) for name, size in ordered))


def _has_strings(arrow_type: pa.DataType) -> bool:
    """Return whether a packed struct has fields of variable length."""
    return pa.types.is_struct(arrow_type) and plain_size(arrow_type, 1) is None


def _as_bytes(array: pa.Array, bits: int) -> pa.Array:
    """Return the bits of the values as integers, so that NaNs and zeros of either sign compare like other values."""
    kind = _WORDS.get(bits, pa.binary(bits // 8))
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], -1, array.offset)


def _words(array: pa.Array, bits: int) -> dict[str, int]:
    width = bits // 8
    values = _as_bytes(array, bits)
    validity, data = values.buffers()
    data = data.slice(values.offset * width, len(values) * width)
    sizes = {}
    if bits in _WORDS:
        found = statistics.fixed(data, width, "u", validity, values.offset)
        if found.inline_size is not None and found.rle_size is not None:
            sizes = {"bit packing": found.inline_size, "rle": found.rle_size}
    distinct = pc.count_distinct(values).as_py()
    sizes["dictionary"] = _index_bytes(distinct, len(array)) + distinct * width
    return sizes


def _strings(array: pa.Array) -> tuple[int, dict[str, int]]:
    wide = is_wide(array.type)
    width = 8 if wide else 4
    total = pc.sum(pc.binary_length(array)).as_py() or 0
    plain = total + (len(array) + 1) * width
    sizes: dict[str, int] = {}
    if total == 0:
        return plain, sizes
    entries = array.unique().drop_null()
    entry_bytes = (pc.sum(pc.binary_length(entries)).as_py() or 0) + (len(entries) + 1) * width
    sizes["dictionary"] = _index_bytes(len(entries), len(array)) + entry_bytes
    _, offsets, data = array.buffers()
    table = bytearray(fsst.TABLE_SIZE)
    sampled, coded = fsst.build(data, offsets.slice(array.offset * width), wide, len(array), table)
    if sampled:
        sizes["fsst"] = int(plain - total * (1 - coded / sampled)) + fsst.TABLE_SIZE
    return plain, sizes


def _index_bytes(entries: int, values: int) -> int:
    """Return the bytes of bit-packed indices."""
    return (max(entries - 1, 0).bit_length() * values + 7) // 8
