"""Public descriptions of the indices of a version."""

from __future__ import annotations

import datetime as dt
from dataclasses import field
from enum import Enum
from typing import Any, TypedDict

from lance_dataset.late_dataclass import dataclass

__all__ = [
    "IndexDescription",
    "IndexFileVersion",
    "IndexInformation",
    "IndexSegmentDescription",
    "SupportedDistributedIndices",
]


class IndexFileVersion(str, Enum):
    """Formats of the files of vector indices, as statistics name them."""

    LEGACY = "Legacy"
    V3 = "V3"


class SupportedDistributedIndices(str, Enum):
    """Kinds of indices that could once be built by several workers as one."""

    BTREE = "BTREE"
    INVERTED = "INVERTED"
    IVF_FLAT = "IVF_FLAT"
    IVF_PQ = "IVF_PQ"
    IVF_SQ = "IVF_SQ"
    VECTOR = "VECTOR"


class IndexInformation(TypedDict):
    """One segment of an index, as `LanceDataset.list_indices` lists it.

    Attributes
    ----------
    name
        Name of the index.
    type
        Its type, such as ``BTree`` or ``IVF_PQ``; ``Unknown`` if an old release did not record it.
    uuid
        Id of the segment.
    fields
        Names of its columns.
    version
        Version that it was built from.
    fragment_ids
        Ids of the fragments that it covers.
    base_id
        Base path of its files; None for the dataset itself.
    """

    name: str
    type: str
    uuid: str
    fields: list[str]
    version: int
    fragment_ids: set[int]
    base_id: int | None


@dataclass(frozen=True)
class IndexSegmentDescription:
    """One segment of an index.

    Attributes
    ----------
    uuid
        Its id.
    dataset_version_at_last_update
        Version that it was built from.
    fragment_ids
        Ids of the fragments that it covers.
    index_version
        Version of its format.
    created_at
        Time of its creation, in UTC; None if it is not recorded.
    size_bytes
        Size of its files; None if it is not recorded.
    base_id
        Base path of its files; None for the dataset itself.
    covering_fields
        Ids of fields that are stored in it, but not indexed.
    """

    uuid: str
    dataset_version_at_last_update: int
    fragment_ids: set[int]
    index_version: int
    created_at: dt.datetime | None
    size_bytes: int | None
    base_id: int | None = None
    covering_fields: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class IndexDescription:
    """An index with all of its segments.

    Attributes
    ----------
    name
        Its name.
    index_type
        Its type, such as ``BTree`` or ``IVF_PQ``; ``Unknown`` if an old release did not record it.
    type_url
        URL of the message of its details; empty if there are none.
    num_rows_indexed
        Number of live rows of the fragments that it covers.
    fields, field_names
        Ids and names of its columns.
    segments
        Its segments.
    details
        Parameters that the manifest records, empty for most types.
    total_size_bytes
        Size of all of its files; None if it is not recorded.
    """

    name: str
    index_type: str
    type_url: str
    num_rows_indexed: int
    fields: list[int]
    field_names: list[str]
    segments: list[IndexSegmentDescription]
    details: dict[str, Any]
    total_size_bytes: int | None
