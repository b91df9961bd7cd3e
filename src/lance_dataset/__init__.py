"""Lance datasets from Python: files, tables, scans, random access."""

from lance_dataset import errors, file
from lance_dataset._version import __version__
from lance_dataset.blob import BlobFile
from lance_dataset.dataset import LanceDataset, dataset
from lance_dataset.errors import LanceError
from lance_dataset.fragment import FragmentMetadata, LanceFragment, write_fragments
from lance_dataset.index_record import Index, IndexFile
from lance_dataset.maintenance import CleanupCandidateFile, CleanupExplanation, CleanupReferencedBranch, CleanupStats
from lance_dataset.operations import LanceOperation, Transaction
from lance_dataset.scanner import ColumnOrdering, LanceScanner, ScannerBuilder
from lance_dataset.session import Session
from lance_dataset.settings import DatasetBasePath
from lance_dataset.statistics import DataStatistics, FieldStatistics
from lance_dataset.write import write_dataset

__all__ = [
    "BlobFile",
    "CleanupCandidateFile",
    "CleanupExplanation",
    "CleanupReferencedBranch",
    "CleanupStats",
    "ColumnOrdering",
    "DataStatistics",
    "DatasetBasePath",
    "FieldStatistics",
    "FragmentMetadata",
    "Index",
    "IndexFile",
    "LanceDataset",
    "LanceError",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "ScannerBuilder",
    "Session",
    "Transaction",
    "__version__",
    "dataset",
    "errors",
    "file",
    "write_dataset",
    "write_fragments",
]
