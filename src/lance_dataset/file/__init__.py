"""Lance data files: the public names read and write single files, the modules serve tables."""

from __future__ import annotations

from lance_dataset.file.explain.report import ColumnEncoding, EncodingReport, PageEncoding, StoredBuffer
from lance_dataset.file.inspect import (
    LanceBufferDescriptor,
    LanceColumnMetadata,
    LanceFileMetadata,
    LanceFileStatistics,
    LancePageMetadata,
)
from lance_dataset.file.session import LanceFileSession, ListResult
from lance_dataset.file.standalone import LanceFileReader, LanceFileWriter, ReaderResults, stable_version
from lance_dataset.file.versions import resolve_version

__all__ = [
    "ColumnEncoding",
    "EncodingReport",
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceFileMetadata",
    "LanceFileReader",
    "LanceFileSession",
    "LanceFileStatistics",
    "LanceFileWriter",
    "LancePageMetadata",
    "ListResult",
    "PageEncoding",
    "ReaderResults",
    "StoredBuffer",
    "resolve_version",
    "stable_version",
]
