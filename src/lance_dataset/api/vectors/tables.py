"""Tables with a column of vectors, from Python and NumPy values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError, UnsupportedError

__all__ = ["vec_to_table"]


def vec_to_table(
    data: Mapping[object, Sequence[float]] | Sequence[Sequence[float]] | NDArray[np.number],
    names: str | Sequence[str] | None = None,
    ndim: int | None = None,
    check_ndim: bool = True,
) -> pa.Table:
    """Return a table with a column of vectors of float32.

    Parameters
    ----------
    data
        Vectors by id, or a list or an array ``[rows, dimension]`` of vectors.
    names
        Names of the columns: one, or ``id`` and ``vector`` for vectors by id.
    ndim
        Dimension of the vectors; None for that of the first one.
    check_ndim
        False if all vectors are known to have the dimension.

    Raises
    ------
    ValueError
        There are no vectors, they have different dimensions, or there is another number of names.
    NotImplementedError
        The data are of another type (an `UnsupportedError`).
    """
    if isinstance(data, Mapping):
        chosen = ["id", "vector"] if names is None else _listed(names)
        columns = [pa.array(list(data.keys())), _vectors(list(data.values()), ndim, check_ndim)]
    elif isinstance(data, list | np.ndarray):
        chosen = ["vector"] if names is None else _listed(names)
        columns = [_vectors(data, ndim, check_ndim)]
    else:
        raise UnsupportedError(f"data must be dict, list, or ndarray, got {type(data)} instead")
    if len(chosen) != len(columns):
        raise InvalidInputError(f"Length of names ({len(chosen)}) does not match length of arrays ({len(columns)})")
    return pa.Table.from_arrays(columns, names=chosen)


def _listed(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _vectors(values: Any, ndim: int | None, check_ndim: bool) -> pa.FixedSizeListArray:
    if not len(values) and ndim is None:
        raise InvalidInputError("there are no vectors to make a table of: give their dimension (ndim)")
    width = len(values[0]) if ndim is None else checked_integer("ndim", ndim, bits=31)
    if check_ndim:
        for each in values:
            if len(each) != width:
                raise InvalidInputError(f"Expected {width} dimensions but got {len(each)} for {each}")
    flat = np.asarray(values, dtype=np.float32).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), width)
