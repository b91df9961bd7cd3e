"""Fragments: `LanceFragment`, their metadata, and functions that write them without a commit."""

from lance_dataset.api.dataset.schema_evolution import normalize_transform
from lance_dataset.api.fragment.fragment import LanceFragment
from lance_dataset.api.fragment.reading import FragmentSession
from lance_dataset.api.fragment.writing import remove_uncommitted, write_fragments
from lance_dataset.changes.columns.udf import BatchUDF
from lance_dataset.read.session import Session
from lance_dataset.records.defaults import DEFAULT_MAX_BYTES_PER_FILE
from lance_dataset.records.fragment import DataFile, DeletionFile, FragmentMetadata, RowDatasetVersionMeta, RowIdMeta
from lance_dataset.records.row_id_sequence import RowIdSequence
from lance_dataset.records.write_progress import FragmentWriteProgress, NoopFragmentWriteProgress

__all__ = [
    "DEFAULT_MAX_BYTES_PER_FILE",
    "BatchUDF",
    "DataFile",
    "DeletionFile",
    "FragmentMetadata",
    "FragmentSession",
    "FragmentWriteProgress",
    "LanceFragment",
    "NoopFragmentWriteProgress",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "RowIdSequence",
    "Session",
    "normalize_transform",
    "remove_uncommitted",
    "write_fragments",
]
