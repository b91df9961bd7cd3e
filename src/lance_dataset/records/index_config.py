"""Kind and parameters of an index that is to be built."""

from __future__ import annotations

from enum import Enum
from typing import Any

from lance_dataset.late_dataclass import dataclass

__all__ = ["DocumentGranularity", "IndexConfig"]


class DocumentGranularity(str, Enum):
    """Documents of a full-text index of lists: whole rows, or the elements of lists."""

    ROW = "row"
    LIST_ELEMENT = "list_element"


@dataclass
class IndexConfig:
    """Kind and parameters of a scalar index, for `create_scalar_index`.

    Parameters
    ----------
    index_type
        Name of the kind in any case: ``btree``, ``bitmap``, ``labellist`` and others.
    parameters
        Parameters of the kind, such as ``{"zone_size": 4096}`` for ``btree``, ``{"rows_per_zone": 8192}`` for
        ``zonemap``, or ``{"number_of_items": 8192, "probability": 0.00057}`` for ``bloomfilter``. Others are ignored.
    """

    index_type: str
    parameters: dict[str, Any]
