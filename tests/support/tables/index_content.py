"""Content of the index files of a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import lance_dataset
from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.io.local import LocalStore
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import coverage, parse_indices

__all__ = ["IndexContent", "index_content", "index_entries"]


@dataclass(frozen=True)
class FileContent:
    """A decoded Lance file: its version, the metadata of its schema, its rows, and the global buffers that it names."""

    version: str
    metadata: dict[str, str]
    rows: pa.RecordBatch
    buffers: dict[str, bytes]


@dataclass(frozen=True)
class IndexContent:
    """Index: its entry in the manifest, without its id and the sizes of its files, and the files."""

    version: int | None
    read_version: int
    details: object
    coverage: frozenset[int] | None
    files: dict[str, FileContent]


def index_entries(path: Path | str) -> list[IndexMetadata]:
    """Return the indices that the newest version of a table lists."""
    section = lance_dataset.dataset(path).snapshot.manifest.index_section
    return [IndexMetadata.from_proto(each, str(path)) for each in parse_indices(section)]


def index_content(path: Path | str) -> list[tuple[str, IndexContent]]:
    """Return the indices of the newest version of a table with their names, in the order of the manifest.

    This also checks the sizes of the files.
    """
    found = []
    for entry in index_entries(path):
        folder = f"{Path(path).absolute()}/_indices/{entry.uuid}"
        for file in entry.files:
            assert (Path(folder) / file.path).stat().st_size == file.size_bytes
        opened = IndexFolder(LocalStore(), folder)
        if entry.files:
            assert opened.names() == sorted(file.path for file in entry.files)
        files = {name: _content(opened.open(name)) for name in opened.names()}
        content = IndexContent(entry.index_version, entry.dataset_version, entry.details, coverage(entry), files)
        found.append((entry.name, content))
    return found


def _content(table: IndexTable) -> FileContent:
    named = {}
    for key in table.metadata:
        if key.endswith("buffer") or key in ("lance:label_list_nulls", "null_bitmap"):
            content = table.global_buffer(key)
            assert content is not None
            named[key] = content
    rows = table.read()
    rows.validate(full=True)
    return FileContent(table.version, table.metadata, rows, named)
