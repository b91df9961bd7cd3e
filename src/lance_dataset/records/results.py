"""Dictionaries that the methods of datasets return."""

from __future__ import annotations

import datetime as dt
from typing import TypedDict

__all__ = ["Branch", "DeleteResult", "ExecuteResult", "Tag", "UpdateResult", "Version", "VersionRef"]


class Version(TypedDict):
    """Version of a dataset.

    Attributes
    ----------
    version
        Version number.
    timestamp
        Time of the commit in local time, without a time zone.
    metadata
        Counts of fragments, files and rows, as text.
    """

    version: int
    timestamp: dt.datetime
    metadata: dict[str, str]


class VersionRef(TypedDict):
    """Number of a version."""

    version: int


class Tag(TypedDict):
    """Tag of a version.

    Attributes
    ----------
    branch, version
        Version that it names; the branch is None for the main branch.
    created_at, updated_at
        Times of its creation and of its last change; None if unknown.
    manifest_size
        Size of the manifest in bytes.
    metadata
        Arbitrary metadata.
    """

    branch: str | None
    version: int
    created_at: dt.datetime | None
    updated_at: dt.datetime | None
    manifest_size: int
    metadata: dict[str, str]


class Branch(TypedDict):
    """Branch of a dataset.

    Attributes
    ----------
    parent_branch, parent_version
        Version that it began with; the branch is None for the main branch.
    branch_identifier
        Versions and ids of the branches that lead to it.
    create_at
        Time of its creation, in seconds since 1970-01-01 UTC.
    manifest_size
        Size of the manifest in bytes.
    metadata
        Arbitrary metadata.
    """

    parent_branch: str | None
    branch_identifier: list[tuple[int, str]]
    parent_version: int
    create_at: int
    manifest_size: int
    metadata: dict[str, str]


class DeleteResult(TypedDict):
    """Number of rows that `LanceDataset.delete` deleted."""

    num_deleted_rows: int


class UpdateResult(TypedDict):
    """Number of rows that `LanceDataset.update` updated."""

    num_rows_updated: int


class ExecuteResult(TypedDict):
    """Numbers of rows that a merge inserted, updated and deleted."""

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int
