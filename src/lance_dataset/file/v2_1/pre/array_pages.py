"""Files marked as version 2.1 with the columns and pages of 2.0, as pylance 0.16 to 0.18 wrote them.

They differ from 2.0 files only in the choices of their writers: bit packing, and FSST for strings.
"""

from __future__ import annotations

from collections.abc import Callable

from lance_dataset.file.container import FileMetadata
from lance_dataset.file.v2_0.nodes import PAGE_ENCODING
from lance_dataset.types.schema import Field

__all__ = ["field_has_array_pages", "file_has_array_pages"]

_VERSION = "2.1"


def _has_array_pages(metadata: FileMetadata, index: int) -> bool | None:
    """Return True if the pages of a column are 2.0 pages, None if the column has no pages."""
    pages = metadata.column(index).pages
    return pages[0].type_name == PAGE_ENCODING if pages else None


def field_has_array_pages(field: Field, locate: Callable[[Field], tuple[FileMetadata, int] | None]) -> bool:
    """Return whether the first column with pages, among those of a field and its descendants, has 2.0 pages."""
    for node in field.walk():
        found = locate(node)
        known = _has_array_pages(*found) if found is not None and found[0].version == _VERSION else None
        if known is not None:
            return known
    return False


def file_has_array_pages(metadata: FileMetadata) -> bool:
    """Return whether the first column of a file that has pages has 2.0 pages."""
    if metadata.version != _VERSION:
        return False
    found = (_has_array_pages(metadata, index) for index in range(metadata.num_columns))
    return next((known for known in found if known is not None), False)
