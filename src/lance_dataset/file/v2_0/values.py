"""Fixed-width values of a 2.0 page in any packing: reading of ranges, and of values at some positions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate, private_copy
from lance_dataset.file.v2_0.nodes import Bitpacked, BitpackedBlocks, Fixed, Flat
from lance_dataset.file.v2_0.page import Page
from lance_dataset.limits import check_memory
from lancecodec import bitpacking, bitstream, flat

__all__ = [
    "MAX_UNBACKED_BYTES",
    "discard_values",
    "num_stored",
    "read_private_values",
    "read_values",
    "take_values",
]

#: Limit on values without bytes in the file (nulls, or packed into 0 bits), whose number cannot be checked against a
#: size. Writers cut pages far below this.
MAX_UNBACKED_BYTES = 1 << 30

_DISCARD_BYTES = 1 << 20
_BLOCK_BYTES_PER_BIT = bitpacking.BLOCK_VALUES // 8


def read_values(page: Page, node: Fixed, start: int, stop: int, total: int) -> pa.Buffer:
    """Read values ``[start, stop)`` of a node, `node.bits` bits each; for bitmaps, `start` must be a multiple of 8.

    Parameters
    ----------
    total
        Number of values in the whole node; a compressed buffer must hold exactly this many.

    Raises
    ------
    CodecError, CorruptFileError
        The page does not have these values.
    """
    if isinstance(node, Flat):
        return page.read_flat(node, start, stop, total)
    if node.width == 0:
        return _zeros(page, (stop - start) * (node.bits // 8))
    base = start - start % (8 if isinstance(node, Bitpacked) else bitpacking.BLOCK_VALUES)
    first, last = _byte_range(node, start, stop)
    data = page.read_part(node.buffer, first, last, stop)
    out = allocate((stop - start) * (node.bits // 8))  # the bytes for all values are known to exist
    if isinstance(node, Bitpacked):
        bitstream.decode(data, node.bits, node.width, node.signed, start - base, stop - base, out)
    else:
        bitpacking.unpack(data, node.bits, node.width, start - base, stop - base, out)
    discard_values(page, node, start, stop)
    return out


def read_private_values(page: Page, node: Fixed, start: int, stop: int, total: int) -> pa.Buffer:
    """Read values as `read_values` does, in memory that nobody else can change; see `private_copy`."""
    values = read_values(page, node, start, stop, total)
    if not isinstance(node, Flat) or node.scheme or page.source.mapped is None:
        return values
    copy = private_copy(values)
    discard_values(page, node, start, stop)
    return copy


def take_values(page: Page, node: Fixed, rows: NDArray[np.int64], total: int) -> pa.Buffer:
    """Take values at some positions of a node in a mapped file; parameters and errors are those of `read_values`."""
    bits = node.bits
    if not isinstance(node, Flat) and node.width == 0:
        return _zeros(page, len(rows) * (bits // 8))
    out = allocate((len(rows) * bits + 7) // 8)
    if bits == 0 or len(rows) == 0:
        return out
    if isinstance(node, Flat):
        if node.scheme:
            stored = page.locate(node.buffer)[1]
            check_memory((total * bits + 7) // 8, stored, f"{page.where}: its compressed values")
        values = page.view_flat(node, total)
        if bits == 1:
            flat.take_bits(values, total, 1, rows, out)
        else:
            flat.take(values, total, bits, rows, out)
        return out
    data = page.view_part(node.buffer, _byte_range(node, 0, total)[1], total)
    if isinstance(node, Bitpacked):
        bitstream.select(data, bits, node.width, node.signed, rows, out)
    else:
        bitpacking.select(data, bits, node.width, rows, out)
    return out


def num_stored(page: Page, node: Fixed) -> int:
    """Return the number of values that fit the buffer of an uncompressed node."""
    size = page.locate(node.buffer)[1]
    if isinstance(node, BitpackedBlocks):
        return size // (_BLOCK_BYTES_PER_BIT * node.width) * bitpacking.BLOCK_VALUES if node.width else 0
    return size * 8 // (node.bits if isinstance(node, Flat) else node.width)


def discard_values(page: Page, node: Fixed, start: int, stop: int) -> None:
    """Release a range that was decoded into something else, if it is large enough to matter."""
    if isinstance(node, Flat) and node.scheme:
        return
    first, last = _byte_range(node, start, stop)
    if last - first >= _DISCARD_BYTES:
        page.source.discard(page.locate(node.buffer)[0] + first, last - first)


def _byte_range(node: Fixed, start: int, stop: int) -> tuple[int, int]:
    """Return the range of bytes of the buffer that hold some values."""
    if isinstance(node, BitpackedBlocks):
        block = _BLOCK_BYTES_PER_BIT * node.width
        return start // bitpacking.BLOCK_VALUES * block, -(-stop // bitpacking.BLOCK_VALUES) * block
    width = node.bits if isinstance(node, Flat) else node.width
    return start // 8 * width if isinstance(node, Bitpacked) else start * width // 8, (stop * width + 7) // 8


def _zeros(page: Page, size: int) -> pa.Buffer:
    if size > MAX_UNBACKED_BYTES:
        raise CorruptFileError(f"{page.where}: claims {size} bytes of zeros, more than a page can hold")
    return pa.py_buffer(bytes(size))
