"""What is known of the values of a column, range of rows by range of rows, without reading them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["Zones"]


@dataclass(frozen=True)
class Zones:
    """Ranges of rows (zones) of a column, and what a scan of each may return.

    Everything here is a promise about the values that a scan *returns*, and says nothing where nothing is known: a
    null bound, and True, are always right.

    Attributes
    ----------
    starts
        int64[n + 1]: zone i is rows ``[starts[i], starts[i + 1])``; ascending, from 0 on.
    minimum, maximum
        Arrays of n values, of the type of the column: no valid value of zone i other than NaN is below ``minimum[i]``
        or above ``maximum[i]``. They need not be values of the column. Null where unknown. Floats are in the order of
        numbers, so that bounds of either sign of zero allow both zeros.
    may_be_null, may_be_valid, may_be_nan
        bool[n]: whether zone i may have a null, a valid value, a NaN.
    """

    starts: NDArray[np.int64]
    minimum: pa.Array
    maximum: pa.Array
    may_be_null: NDArray[np.bool_]
    may_be_valid: NDArray[np.bool_]
    may_be_nan: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.starts) - 1
