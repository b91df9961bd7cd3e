"""What is recorded of a finished data file."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DataFileSummary"]


@dataclass(frozen=True)
class DataFileSummary:
    """What a manifest records of a finished data file.

    Attributes
    ----------
    num_rows
        Rows written.
    size
        Size of the file in bytes.
    fields, column_indices
        Field ids and the columns that hold them, in parallel; legacy files have no columns, only fields.
    major, minor
        Version pair as manifests spell it.
    """

    num_rows: int
    size: int
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    major: int
    minor: int
