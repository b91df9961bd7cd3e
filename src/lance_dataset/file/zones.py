"""Statistics of the values of a column for ranges of rows, known without reading them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.late_dataclass import dataclass

__all__ = ["Zones"]


@dataclass(frozen=True)
class Zones:
    """Ranges of rows (zones) of a column, with bounds of the values that a scan of each may return.

    All statements are guarantees about the values that a scan *returns*. A null bound, and True, mean that nothing is
    known; they are always correct.

    Attributes
    ----------
    starts
        int64[n + 1]: zone i is rows ``[starts[i], starts[i + 1])``; ascending from 0.
    minimum, maximum
        Arrays of n values, of the type of the column. No valid value of zone i other than NaN is below ``minimum[i]``
        or above ``maximum[i]``. They need not be values of the column, and are null where unknown. Floats are ordered
        as numbers, so that bounds of either sign of zero allow both zeros.
    may_be_null, may_be_valid, may_be_nan
        bool[n]: True if zone i may have a null, a valid value, a NaN.
    """

    starts: NDArray[np.int64]
    minimum: pa.Array
    maximum: pa.Array
    may_be_null: NDArray[np.bool_]
    may_be_valid: NDArray[np.bool_]
    may_be_nan: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.starts) - 1
