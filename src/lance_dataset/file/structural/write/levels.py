"""Levels of a page: their values, and the buffers in which the page stores them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.encodings.bitpacking import OutOfLineBitpacking
from lance_dataset.file.structural.encodings.flat import Flat
from lance_dataset.file.structural.encodings.request import steps
from lance_dataset.file.structural.encodings.rle import Rle
from lance_dataset.file.structural.layout import Layer
from lance_dataset.file.structural.nesting import Branch
from lance_dataset.late_dataclass import dataclass
from lancecodec import bitpacking, level_builder, rle
from lancecodec import levels as level_codec

__all__ = ["LevelStream", "PageLevels", "encode_levels", "page_levels"]

_BITS = 16
_BLOCK = 1024
_LEVEL_BYTES = 2
_RLE_HEADER_BYTES = 8
_RLE_ENTRY_BYTES = 3


@dataclass(frozen=True)
class PageLevels:
    """Levels of a page, with the attributes of `level_builder.Levels`.

    Attributes
    ----------
    layers
        Layers, inner-most first.
    repetition, definition
        16-bit levels, one per item; None if the page has no such stream.
    num_items
        Entries of the streams; number of values if there are no streams.
    num_visible_items
        Items that own a value of the leaf, valid or null.
    max_repetition
        Number of list layers.
    max_definition
        Highest definition level of the layers.
    max_visible_definition
        Items with a higher definition level own no value.
    """

    layers: tuple[Layer, ...]
    repetition: bytes | None
    definition: bytes | None
    num_items: int
    num_visible_items: int
    max_repetition: int
    max_definition: int
    max_visible_definition: int

    @property
    def has_streams(self) -> bool:
        """True if there are levels to store."""
        return self.repetition is not None or self.definition is not None


def page_levels(levels: level_builder.Levels, branch: Branch) -> PageLevels:
    """Return the levels that `level_builder.build` found, with some layers declared nullable in every page.

    The reference (14.0.2 and before) reads wrong values, or fails, if one batch comes from pages that differ in the
    nullability of a struct above a list or of a fixed-size list of structs, or whose list below a nullable struct uses
    no level.
    """
    page = PageLevels(
        tuple(Layer(kind) for kind in levels.kinds),
        levels.repetition,
        levels.definition,
        levels.num_items,
        levels.num_visible_items,
        levels.max_repetition,
        levels.max_definition,
        levels.max_visible_definition,
    )
    return _declare(page, _uniform_layers(page.layers, branch))


def _uniform_layers(layers: tuple[Layer, ...], branch: Branch) -> tuple[Layer, ...]:
    """Return the layers of a page in a form that all pages of the column can have.

    Structs above lists and fixed-size lists of structs, and the structs inside them, are nullable if the schema allows
    it. Lists below such structs use a level.
    """
    nests = list(reversed(branch.above))
    first = next((depth for depth, nest in enumerate(nests) if nest.kind != "struct"), len(nests))
    if first < len(nests) and nests[first].kind == "fixed_size_list":
        first = 0
    items = [depth for depth in range(first, len(nests)) if nests[depth].kind != "list" and nests[depth].field.nullable]
    if not items:
        return layers
    uniform = list(layers)
    for depth in range(items[-1] + 1):
        position = depth + 1  # after the leaf
        if depth in items:
            uniform[position] = Layer.NULLABLE_ITEM
        elif layers[position] is Layer.ALL_VALID_LIST:
            uniform[position] = Layer.EMPTYABLE_LIST
    return tuple(uniform)


def _declare(page: PageLevels, layers: tuple[Layer, ...]) -> PageLevels:
    """Return the same items with levels for everything that the layers now allow, even if it does not occur."""
    if layers == page.layers:
        return page
    numbers = [0]
    below = visible = 0
    in_list = False
    for old, new in zip(page.layers, layers, strict=True):
        numbers.extend(below + number for number in range(1, old.levels + 1))
        in_list = in_list or new.is_list
        below += new.levels
        visible += 0 if in_list else new.levels
    if page.definition is None:
        definition = bytes(2 * page.num_items)
    else:
        definition = np.array(numbers, np.uint16)[np.frombuffer(page.definition, np.uint16)].tobytes()
    return replace(page, layers=layers, definition=definition, max_definition=below, max_visible_definition=visible)


# -- as buffers ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LevelStream:
    """Encoded levels.

    Attributes
    ----------
    encoding
        Encoding of each slice of the stream.
    data
        The encoded slices, concatenated.
    ends
        End byte of each slice.
    """

    encoding: Encoding
    data: memoryview | bytes
    ends: NDArray[np.int64]


def encode_levels(stream: bytes, ends: NDArray[np.int64], runs: bool) -> LevelStream:
    """Encode a stream slice by slice in the smallest way.

    Packing with a width in each block (`InlineBitpacking`) is never smaller than packing with one width.

    Parameters
    ----------
    stream
        16-bit levels.
    ends
        End level of each slice.
    runs
        True if run-length encoding is allowed, which is from 2.2 on.
    """
    counts = steps(ends)
    width = level_codec.max_level(stream).bit_length()
    packed = _packed_sizes(counts, width)
    plain_size, packed_size = len(stream), int(packed.sum())
    if runs and _run_bound(stream, len(counts)) < min(plain_size, packed_size):
        return _run_lengths(stream, ends)
    if packed_size < plain_size:
        return _packed(stream, ends, packed, width)
    return LevelStream(Flat(_BITS), stream, ends * _LEVEL_BYTES)


def _packed_sizes(counts: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Return the bytes of each slice packed out of line: whole blocks, and the shorter of a packed and a plain tail."""
    block = _BLOCK * width // 8
    full, tail = np.divmod(counts, _BLOCK)
    return full * block + np.where(tail > 0, np.minimum(tail * _LEVEL_BYTES, block), 0)


def _run_bound(stream: bytes, slices: int) -> int:
    """Return an upper bound of the bytes of slice-wise run-length encoding; a cut adds at most one entry."""
    _, entries = rle.count(stream, _BITS, 0)
    return (entries + slices - 1) * _RLE_ENTRY_BYTES + slices * _RLE_HEADER_BYTES


def _packed(stream: bytes, ends: NDArray[np.int64], sizes: NDArray[np.int64], width: int) -> LevelStream:
    out_ends = np.cumsum(sizes)
    out = memoryview(bytearray(int(out_ends[-1])))
    if not np.any(ends[:-1] % _BLOCK):  # slices of whole blocks can be packed together
        bitpacking.out_of_line_encode(stream, _BITS, width, out)
    else:
        source, first, begin = memoryview(stream), 0, 0
        for level, end in zip((ends * _LEVEL_BYTES).tolist(), out_ends.tolist(), strict=True):
            bitpacking.out_of_line_encode(source[first:level], _BITS, width, out[begin:end])
            first, begin = level, end
    return LevelStream(OutOfLineBitpacking(_BITS, width), out, out_ends)


def _run_lengths(stream: bytes, ends: NDArray[np.int64]) -> LevelStream:
    source, first, begin = memoryview(stream), 0, 0
    out = memoryview(bytearray(_run_bound(stream, len(ends))))
    out_ends = np.empty(len(ends), np.int64)
    for number, level in enumerate((ends * _LEVEL_BYTES).tolist()):
        begin += rle.encode_block(source[first:level], _BITS, out[begin:])
        out_ends[number], first = begin, level
    return LevelStream(Rle(Flat(_BITS), Flat(8)), out[:begin], out_ends)
