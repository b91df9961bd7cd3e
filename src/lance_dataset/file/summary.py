"""Summary of a finished data file."""

from __future__ import annotations

from lance_dataset.late_dataclass import dataclass

__all__ = ["DataFileSummary"]


@dataclass(frozen=True)
class DataFileSummary:
    """Description of a finished data file for a manifest.

    Attributes
    ----------
    num_rows
        Number of rows written.
    size
        Size of the file in bytes.
    fields, column_indices
        Field ids and the columns that hold them, in parallel; legacy files have fields only.
    major, minor
        Version pair as manifests record it.
    """

    num_rows: int
    size: int
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    major: int
    minor: int
