"""Projections of scans, which are kept with the reader of a version."""

from __future__ import annotations

from lance_dataset.read.projection import Projection, project
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.options import Columns

__all__ = ["scan_projection"]

#: Projections of scans that a reader keeps.
_KEPT_PROJECTIONS = 64


def scan_projection(reader: TableReader, columns: Columns, with_row_id: bool, with_row_address: bool) -> Projection:
    """Return the projection of a scan. Those of names are kept, because takes know a projection by its columns."""
    schema = reader.scanned_schema
    if not isinstance(columns, list):
        return project(schema, columns, with_row_id=with_row_id, with_row_address=with_row_address)
    key = tuple(columns), with_row_id, with_row_address
    known = reader.scan_projections.get(key)
    if known is None:
        known = project(schema, columns, with_row_id=with_row_id, with_row_address=with_row_address)
        if len(reader.scan_projections) >= _KEPT_PROJECTIONS:
            reader.scan_projections.clear()
        reader.scan_projections[key] = known
    return known
