"""Vectors of Arrow arrays, passed to kernels without a copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.scan.nearest.search import VectorColumn
from lancecodec.search.distances import COARSE, ELEMENTS, Coarse, Nearest

__all__ = ["Places", "add_array", "add_coarse", "coarse_codes"]


@dataclass(frozen=True, eq=False)
class Places:
    """Rows of an array that are searched.

    Attributes
    ----------
    rows : int64[n]
        Positions in the array; None for all.
    mask : bool[m]
        True for the rows that may be found, of all rows of the array; None for all.
    base
        Address of the first row of the array, if they follow each other.
    addresses : uint64[n]
        Addresses of the rows, if they do not.
    ids : uint64[n]
        Their row ids; None if these are the addresses.
    """

    rows: NDArray[np.int64] | None = None
    base: int = 0
    addresses: NDArray[np.uint64] | None = None
    ids: NDArray[np.uint64] | None = None
    mask: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class _Vectors:
    """Vectors of a fixed-size list array.

    Attributes
    ----------
    values
        Their elements.
    valid, skip
        Validity bits, and the position of the first; None if all are valid.
    """

    values: pa.Buffer
    valid: pa.Buffer | None
    skip: int


def add_array(nearest: Nearest, array: pa.Array, column: VectorColumn, places: Places) -> None:
    """Add rows of an array to the candidates of a search.

    Parameters
    ----------
    nearest
        The search.
    array
        Values of the column.
    column
        The column.
    places
        The rows.
    """
    rows, addresses, ids = (_buffer(each) for each in (places.rows, places.addresses, places.ids))
    if len(array) == 0 or array.null_count == len(array):
        return
    if not column.is_lists:
        found = _vectors(array, column)
        if found is not None and places.mask is not None:
            found = _masked(found, array, places.mask)
        if found is not None:
            nearest.add(found.values, len(array), rows, found.valid, found.skip, addresses, places.base, ids)
        return
    vectors = array.values
    found = _vectors(vectors, column) if len(vectors) else None
    if found is None:
        return
    is_wide = pa.types.is_large_list(array.type)
    offsets = array.buffers()[1].slice(array.offset * (8 if is_wide else 4), (len(array) + 1) * (8 if is_wide else 4))
    valid = array.buffers()[0] if array.null_count else None
    nearest.add_lists(
        *(found.values, len(vectors), found.valid, found.skip, offsets, is_wide),
        *(rows, valid, array.offset, addresses, places.base, ids),
    )


def coarse_codes(array: pa.FixedSizeListArray, column: VectorColumn) -> Coarse | None:
    """Return the coarse codes of an array without nulls; None if they do not shorten searches."""
    element = ELEMENTS.index(column.element)
    found = _vectors(array, column) if len(array) and element in COARSE else None
    if found is None:
        return None
    made = Coarse(found.values, len(array), column.dimension, element)
    return made if made.nbytes else None


def add_coarse(nearest: Nearest, array: pa.FixedSizeListArray, column: VectorColumn, base: int, codes: Coarse) -> None:
    """Add all rows of an array without nulls to the candidates of a search for one vector.

    Parameters
    ----------
    nearest
        The search; not by hamming distances.
    array, column
        See `add_array`.
    base
        Address of the first row.
    codes
        Coarse codes of the array.
    """
    found = _vectors(array, column)
    if found is not None:
        nearest.add_coarse(found.values, codes, base)


def _masked(vectors: _Vectors, array: pa.Array, mask: NDArray[np.bool_]) -> _Vectors:
    """Return vectors of which only those of a mask are valid."""
    if array.null_count:
        mask = mask & array.is_valid().to_numpy(zero_copy_only=False)
    return _Vectors(vectors.values, pa.py_buffer(np.packbits(mask, bitorder="little")), 0)


def _buffer(array: NDArray[Any] | None) -> memoryview | None:
    return None if array is None else np.ascontiguousarray(array).data


def _vectors(array: pa.FixedSizeListArray, column: VectorColumn) -> _Vectors | None:
    """Return the vectors of an array; None if there are no elements, since all vectors are null."""
    elements = array.values
    if isinstance(elements, pa.ExtensionArray):
        elements = elements.storage
    if elements.null_count and not pa.types.is_fixed_size_binary(elements.type):
        elements = pc.fill_null(elements, pa.scalar(0, elements.type))  # as in the reference
    data = elements.buffers()[1]
    if data is None:
        return None
    first = elements.offset + array.offset * column.dimension
    values = data.slice(first * column.width, len(array) * column.dimension * column.width)
    return _Vectors(values, array.buffers()[0] if array.null_count else None, array.offset)
