"""Posting lists and positions in Arrow arrays, as the rows of an index hold them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.text.posting_rows import LISTED_POSITIONS, POSITION_OFFSETS, POSITIONS
from lancecodec.errors import CodecError
from lancecodec.search.postings import LISTED, Positions

__all__ = ["binaries", "binary_lists", "block_positions", "listed_positions"]


def binaries(values: pa.Array, name: str) -> tuple[NDArray[np.int64], pa.Buffer | bytes]:
    """Return the offsets and the bytes of binaries."""
    if not (pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)) or values.null_count:
        raise CodecError(f"{name} holds nulls or is not binary")
    values = values.cast(pa.large_binary())
    _, offsets, data = values.buffers()
    if not len(values):
        return np.zeros(1, np.int64), b""
    found = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return found, b"" if data is None else data


def _list_offsets(lists: pa.Array, name: str) -> list[int]:
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        raise CodecError(f"{name} is not a list")
    found: list[int] = lists.offsets.to_pylist()
    return found


def binary_lists(lists: pa.Array, name: str) -> list[tuple[NDArray[np.int64], pa.Buffer | bytes]]:
    """Return the offsets and the bytes of the binaries of each list."""
    if lists.null_count:
        raise CodecError(f"{name} holds nulls")
    ends = _list_offsets(lists, name)
    offsets, data = binaries(lists.values, name)
    return [(offsets[low : high + 1], data) for low, high in pairwise(ends)]


def listed_positions(lists: pa.Array) -> Positions:
    """Return positions that are stored as a list of binaries for each document."""
    if lists.null_count or len(lists) != 1:
        raise CodecError(f"{LISTED_POSITIONS} holds nulls")
    documents = lists.flatten()
    if documents.null_count or not pa.types.is_list(documents.type):
        raise CodecError(f"{LISTED_POSITIONS} holds nulls or is not a list of lists")
    owners = documents.offsets.to_numpy().astype(np.int64)
    starts, data = binaries(documents.values.slice(owners[0], owners[-1] - owners[0]), LISTED_POSITIONS)
    return Positions(data, starts.data, (owners - owners[0]).data, LISTED)


def block_positions(values: pa.Array, starts: pa.Array, kind: int) -> Positions:
    """Return positions that are stored in blocks, of one word.

    Parameters
    ----------
    values
        Bytes of all blocks, one binary.
    starts
        Offset of each block, one list.
    kind
        How they are kept.
    """
    offsets, data = binaries(values, POSITIONS)
    if not pa.types.is_list(starts.type) or starts.type.value_type != pa.uint32() or starts.null_count:
        raise CodecError(f"{POSITION_OFFSETS} holds nulls or is not a list of uint32")
    within = starts.flatten()
    if within.null_count:
        raise CodecError(f"{POSITION_OFFSETS} holds nulls")
    begins = within.to_numpy().astype(np.int64) + offsets[0]
    if len(begins) and begins[0] != offsets[0]:
        raise CodecError("the first block of positions is not at the start")
    return Positions(data, np.append(begins, offsets[1]).data, None, kind)
