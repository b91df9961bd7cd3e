"""Statistics of a dataset: counts from its manifest, sizes from the metadata of its files."""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np

from lance_dataset.arguments import checked_integer
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.legacy import LegacyFile
from lance_dataset.late_dataclass import dataclass
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.fragment_list import FragmentList
from lance_dataset.types.schema import Schema

__all__ = ["DataStatistics", "DatasetStats", "FieldStatistics", "LanceStats"]


class DatasetStats(TypedDict):
    """Counts of a dataset.

    Attributes
    ----------
    num_deleted_rows
        Number of rows that are deleted but still in files.
    num_fragments
        Number of fragments.
    num_small_files
        Number of fragments with few rows.
    """

    num_deleted_rows: int
    num_fragments: int
    num_small_files: int


@dataclass
class FieldStatistics:
    """Statistics of a field of the dataset.

    Attributes
    ----------
    id
        Field id.
    bytes_on_disk
        Number of bytes of its pages in all files, without those of its children.
    """

    id: int
    bytes_on_disk: int


@dataclass
class DataStatistics:
    """Statistics of the data.

    Attributes
    ----------
    fields
        Statistics of all fields, parents before children.
    """

    fields: list[FieldStatistics]


class LanceStats:
    """Statistics of a dataset. Get it with `LanceDataset.stats`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def index_stats(self, index_name: str) -> dict[str, Any]:
        """Return the statistics of an index.

        Parameters
        ----------
        index_name
            Name of the index.

        Returns
        -------
        dict
            index_type, name, num_indices and num_segments (the same number), indices and segments (the same list, with
            a dict for each segment whose keys depend on the kind), num_indexed_fragments, num_indexed_rows,
            num_unindexed_fragments, num_unindexed_rows, num_indexed_rows_per_delta (one number for each segment),
            updated_at_timestamp_ms.

        Raises
        ------
        KeyError
            There is no index of this name.
        UnsupportedError
            The index is the log of a MemWAL.
        CorruptFileError, MissingFileError
            A file of the index cannot be read.
        """
        from lance_dataset.index.statistics import index_statistics

        return index_statistics(self._snapshot, index_name)

    def dataset_stats(self, max_rows_per_group: int = 1024) -> DatasetStats:
        """Count deleted rows, fragments and small fragments.

        Parameters
        ----------
        max_rows_per_group
            A fragment is small if it has fewer rows than this, deleted ones included.
        """
        few_rows = checked_integer("max_rows_per_group", max_rows_per_group)
        manifest, reader = self._snapshot.manifest, self._snapshot.reader
        numbers = FragmentList.of(manifest.fragments, manifest.path).columns
        physical, deleted = numbers.physical_rows, numbers.num_deleted_rows
        if not numbers.is_complete.all():  # releases before 0.8 did not record the counts
            physical = np.array([each.physical_rows for each in reader.fragments], np.int64)
            deleted = np.array([len(each.deletions) for each in reader.fragments], np.int64)
        return {
            "num_deleted_rows": int(deleted.sum()),
            "num_fragments": len(physical),
            "num_small_files": int((physical < few_rows).sum()),
        }

    def data_stats(self) -> DataStatistics:
        """Compute the sizes of the fields from the metadata of every file.

        Raises
        ------
        CorruptFileError, MissingFileError
            A file cannot be read.
        """
        schema = self._snapshot.manifest.schema
        sizes = {node.id: 0 for node in schema.walk()}
        for fragment in self._snapshot.reader.fragments:
            for node_id in sizes:
                found = fragment.stored(node_id)
                if found is not None and isinstance(found[0], FileMetadata):
                    pages = found[0].column(found[1]).pages
                    sizes[node_id] += sum(size for page in pages for _, size in page.buffers)
            _add_legacy(sizes, schema, fragment)
        return DataStatistics([FieldStatistics(node_id, size) for node_id, size in sizes.items()])


def _add_legacy(sizes: dict[int, int], schema: Schema, fragment: FragmentReader) -> None:
    """Add the page sizes of 0.1 files, which have to be read from the pages themselves."""
    from lance_dataset.file.explain.columns import explain_columns, stored_columns

    def legacy(field_id: int) -> tuple[LegacyFile, int] | None:
        found = fragment.stored(field_id)
        return (found[0], found[1]) if found is not None and isinstance(found[0], LegacyFile) else None

    ids = {path: field_id for field_id, path in schema.paths_by_id()}
    for page in explain_columns(stored_columns(schema, legacy)):
        sizes[ids[page.column]] += sum(buffer.size for buffer in page.buffers)
