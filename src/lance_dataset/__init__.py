"""Lance datasets from Python: files, tables, scans, random access."""

from lance_dataset import blob as blob
from lance_dataset import errors, file
from lance_dataset import fragment as fragment
from lance_dataset import log as log
from lance_dataset import schema as schema
from lance_dataset import udf as udf
from lance_dataset import util as util
from lance_dataset._version import __version__

# `dataset` is both a module and a function of this package. The function is imported last, so users see it.
from lance_dataset.dataset import (
    BlobFile,
    CleanupCandidateFile,
    CleanupExplanation,
    CleanupReferencedBranch,
    CleanupStats,
    ColumnOrdering,
    DatasetBasePath,
    DataStatistics,
    FFILanceTableProvider,
    FieldStatistics,
    FragmentMetadata,
    Index,
    IndexFile,
    IOStats,
    LanceDataset,
    LanceFragment,
    LanceOperation,
    LanceScanner,
    MergeInsertBuilder,
    ScannerBuilder,
    ScanStatistics,
    Session,
    Transaction,
    batch_udf,
    dataset,
    write_dataset,
)
from lance_dataset.errors import LanceError
from lance_dataset.fragment import write_fragments
from lance_dataset.log import set_logger

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
