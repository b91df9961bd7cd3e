"""Zone maps: the least and the greatest value of each zone."""

from __future__ import annotations

from typing import Final

__all__ = ["MAX", "MIN", "NANS", "NULLS", "ROWS_PER_ZONE", "ZONE_MAP"]

#: Name of the file, which has one row for each zone.
ZONE_MAP: Final = "zonemap.lance"
#: Columns of the least and the greatest value, without nulls and NaNs; null if there are none. If there are NaNs, the
#: greatest value is NaN.
MIN, MAX = "min", "max"
#: Columns of the numbers of nulls and NaNs.
NULLS, NANS = "null_count", "nan_count"
#: Key of the number of rows in a zone.
ROWS_PER_ZONE: Final = "rows_per_zone"
