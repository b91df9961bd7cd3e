"""Datasets: `LanceDataset`, functions to open and write one, and related classes."""

from lance_dataset._version import __version__
from lance_dataset.api.blob import DEFAULT_BLOB_BUFFER_SIZE, BlobFile
from lance_dataset.api.branches import Branches
from lance_dataset.api.compaction import Compaction, CompactionMetrics
from lance_dataset.api.dataset.dataset import BulkCommitResult, LanceDataset, write_dataset
from lance_dataset.api.dataset.schema_evolution import normalize_transform
from lance_dataset.api.delta import DatasetDelta
from lance_dataset.api.fragment.fragment import LanceFragment
from lance_dataset.api.maintenance import MaintenanceRunner
from lance_dataset.api.merge_insert import MergeInsertBuilder
from lance_dataset.api.opening import dataset
from lance_dataset.api.optimize import DatasetOptimizer
from lance_dataset.api.scanner.builder import ScannerBuilder
from lance_dataset.api.scanner.scanner import LanceScanner
from lance_dataset.api.scanner.statistics import ScanStatistics
from lance_dataset.api.sql import FFILanceTableProvider, SqlQuery, SqlQueryBuilder
from lance_dataset.api.statistics import DatasetStats, DataStatistics, FieldStatistics, LanceStats
from lance_dataset.api.tags import Tags
from lance_dataset.api.times import td_to_micros
from lance_dataset.api.vectors.partitions import VectorIndexReader
from lance_dataset.api.version_history import VersionEntry, VersionHistory
from lance_dataset.changes.columns.udf import BatchUDF, BatchUDFCheckpoint, batch_udf
from lance_dataset.errors import CommitConflictError
from lance_dataset.io.guarded import CommitLock
from lance_dataset.io.statistics import IOStats
from lance_dataset.log import LOGGER
from lance_dataset.read.session import Session
from lance_dataset.records.cleanup import (
    CleanupCandidateFile,
    CleanupExplanation,
    CleanupReferencedBranch,
    CleanupStats,
)
from lance_dataset.records.fragment import DataFile, FragmentMetadata
from lance_dataset.records.index import Index, IndexFile, IndexSegment
from lance_dataset.records.index_config import DocumentGranularity, IndexConfig
from lance_dataset.records.index_description import IndexInformation, SupportedDistributedIndices
from lance_dataset.records.maintenance import MaintenanceReport, MaintenanceStep
from lance_dataset.records.maintenance_policy import MaintenancePolicy
from lance_dataset.records.operations import LANCE_COMMIT_MESSAGE_KEY, LanceOperation, Transaction
from lance_dataset.records.purge import PurgeReport, RemainingCopy
from lance_dataset.records.results import Branch, DeleteResult, ExecuteResult, Tag, UpdateResult, Version, VersionRef
from lance_dataset.records.schema import LanceSchema
from lance_dataset.records.settings import AlterColumn, AutoCleanupConfig, DatasetBasePath
from lance_dataset.scan.explain.plan_picture import PlanText
from lance_dataset.scan.nearest_query import VectorSearchQuery
from lance_dataset.scan.options import ColumnOrdering
from lance_dataset.scan.queries import MinHashQuery
from lance_dataset.scan.resolving import serialize_row_addrs
from lance_dataset.scan.text_queries import FullTextQuery

__all__ = [
    "DEFAULT_BLOB_BUFFER_SIZE",
    "LANCE_COMMIT_MESSAGE_KEY",
    "LOGGER",
    "AlterColumn",
    "AutoCleanupConfig",
    "BatchUDF",
    "BatchUDFCheckpoint",
    "BlobFile",
    "Branch",
    "Branches",
    "BulkCommitResult",
    "CleanupCandidateFile",
    "CleanupExplanation",
    "CleanupReferencedBranch",
    "CleanupStats",
    "ColumnOrdering",
    "CommitConflictError",
    "CommitLock",
    "Compaction",
    "CompactionMetrics",
    "DataFile",
    "DataStatistics",
    "DatasetBasePath",
    "DatasetDelta",
    "DatasetOptimizer",
    "DatasetStats",
    "DeleteResult",
    "DocumentGranularity",
    "ExecuteResult",
    "FFILanceTableProvider",
    "FieldStatistics",
    "FragmentMetadata",
    "FullTextQuery",
    "IOStats",
    "Index",
    "IndexConfig",
    "IndexFile",
    "IndexInformation",
    "IndexSegment",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LanceSchema",
    "LanceStats",
    "MaintenancePolicy",
    "MaintenanceReport",
    "MaintenanceRunner",
    "MaintenanceStep",
    "MergeInsertBuilder",
    "MinHashQuery",
    "PlanText",
    "PurgeReport",
    "RemainingCopy",
    "ScanStatistics",
    "ScannerBuilder",
    "Session",
    "SqlQuery",
    "SqlQueryBuilder",
    "SupportedDistributedIndices",
    "Tag",
    "Tags",
    "Transaction",
    "UpdateResult",
    "VectorIndexReader",
    "VectorSearchQuery",
    "Version",
    "VersionEntry",
    "VersionHistory",
    "VersionRef",
    "__version__",
    "batch_udf",
    "dataset",
    "normalize_transform",
    "serialize_row_addrs",
    "td_to_micros",
    "write_dataset",
]
