"""The interface of columns of a file that are read together."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["PlainColumns"]


class PlainColumns(Protocol):
    """Columns of a file. Those of simple form are read together, others and damaged ones are left to their readers."""

    def read(self, start: int, stop: int) -> list[pa.Array | None]:
        """Return the rows ``[start, stop)`` of each column as one array, None for columns left out."""

    def take(self, rows: NDArray[np.int64]) -> list[pa.Array | None]:
        """Return the values of each column at ascending rows as one array, None for columns left out."""
