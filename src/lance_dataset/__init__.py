"""Lance datasets from Python: files, tables, scans, random access."""

from lance_dataset import errors, file
from lance_dataset._version import __version__
from lance_dataset.blob import BlobFile
from lance_dataset.dataset import LanceDataset
from lance_dataset.errors import LanceError
from lance_dataset.fragment import FragmentMetadata, LanceFragment, write_fragments
from lance_dataset.index_record import Index, IndexFile
from lance_dataset.io.statistics import IOStats
from lance_dataset.log import set_logger
from lance_dataset.maintenance import CleanupCandidateFile, CleanupExplanation, CleanupReferencedBranch, CleanupStats
from lance_dataset.merge_insert import MergeInsertBuilder
from lance_dataset.opening import dataset
from lance_dataset.operations import LanceOperation, Transaction
from lance_dataset.scanner import ColumnOrdering, LanceScanner, ScannerBuilder, ScanStatistics
from lance_dataset.session import Session
from lance_dataset.settings import DatasetBasePath
from lance_dataset.sql import FFILanceTableProvider
from lance_dataset.statistics import DataStatistics, FieldStatistics
from lance_dataset.udf import batch_udf
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
    "FFILanceTableProvider",
    "FieldStatistics",
    "FragmentMetadata",
    "IOStats",
    "Index",
    "IndexFile",
    "LanceDataset",
    "LanceError",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "MergeInsertBuilder",
    "ScanStatistics",
    "ScannerBuilder",
    "Session",
    "Transaction",
    "__version__",
    "batch_udf",
    "dataset",
    "errors",
    "file",
    "set_logger",
    "write_dataset",
    "write_fragments",
]
