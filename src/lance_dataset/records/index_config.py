"""`IndexConfig`: kind and parameters of an index that is to be built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["IndexConfig"]


@dataclass
class IndexConfig:
    """Kind and parameters of a scalar index, for `create_scalar_index`.

    Parameters
    ----------
    index_type
        Name of the kind in any case: ``btree``, ``bitmap``, ``labellist`` and others.
    parameters
        Parameters of the kind, such as ``{"zone_size": 4096}`` for ``btree``. Others are ignored.
    """

    index_type: str
    parameters: dict[str, Any]
