"""Lance data files. The public names read and write single files; the modules below serve tables."""

from __future__ import annotations

from lance_dataset.file.inspect import (
    LanceBufferDescriptor,
    LanceColumnMetadata,
    LanceFileMetadata,
    LanceFileStatistics,
    LancePageMetadata,
)
from lance_dataset.file.standalone import LanceFileReader, LanceFileWriter, ReaderResults, stable_version

__all__ = [
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceFileMetadata",
    "LanceFileReader",
    "LanceFileStatistics",
    "LanceFileWriter",
    "LancePageMetadata",
    "ReaderResults",
    "stable_version",
]
