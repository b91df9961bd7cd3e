"""Tests that names of the reference can be imported from the same modules: ``lance.x.Y`` as ``lance_dataset.x.Y``."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import lance
import pytest
from support.api import public_names

import lance_dataset

#: Modules at the root that have the names of modules of the reference.
ROOT_MODULES = (
    "blob",
    "commit",
    "dataset",
    "debug",
    "fragment",
    "hf",
    "indices",
    "mem_wal",
    "namespace",
    "optimize",
    "otel",
    "progress",
    "pydantic",
    "sampler",
    "schema",
    "tracing",
    "udf",
    "util",
    "vector",
)

#: Public names of this package by module of the reference, including names that a module re-exports.
NAMES: dict[str, tuple[str, ...]] = {
    "lance": (
        "Blob",
        "BlobArray",
        "BlobColumn",
        "BlobDescriptor",
        "BlobDescriptorArrayBuilder",
        "BlobFile",
        "CleanupCandidateFile",
        "CleanupExplanation",
        "CleanupReferencedBranch",
        "CleanupStats",
        "CompactedSsTable",
        "DataStatistics",
        "DatasetBasePath",
        "DedicatedBlobWriter",
        "ExecutionPlan",
        "FFILanceTableProvider",
        "FieldStatistics",
        "FragmentMetadata",
        "FtsToken",
        "Index",
        "IndexFile",
        "IndexProgress",
        "LanceDataset",
        "LanceFragment",
        "LanceOperation",
        "LanceScanner",
        "LsmPointLookupPlanner",
        "LsmScanner",
        "LsmVectorSearchPlanner",
        "MergeInsertBuilder",
        "PackedBlobWriter",
        "ScanStatistics",
        "Session",
        "ShardSnapshot",
        "ShardWriter",
        "ShardingField",
        "ShardingSpec",
        "Transaction",
        "__version__",
        "batch_udf",
        "blob_array",
        "bytes_read_counter",
        "iops_counter",
        "blob_field",
        "dataset",
        "evaluate_sharding_spec",
        "file",
        "json_to_schema",
        "sanitize_ts",
        "schema_to_json",
        "set_logger",
        "simd_info",
        "tokenize",
        "write_dataset",
    ),
    "lance.blob": (
        "Blob",
        "BlobArray",
        "BlobColumn",
        "BlobDescriptor",
        "BlobDescriptorArrayBuilder",
        "BlobFile",
        "BlobIterator",
        "BlobType",
        "DEFAULT_BLOB_BUFFER_SIZE",
        "DedicatedBlobWriter",
        "PackedBlobWriter",
        "blob_array",
        "blob_field",
    ),
    "lance.arrow": (
        "BFloat16",
        "BFloat16Array",
        "BFloat16Type",
        "EncodedImageArray",
        "EncodedImageScalar",
        "EncodedImageType",
        "FixedShapeImageTensorArray",
        "FixedShapeImageTensorScalar",
        "FixedShapeImageTensorType",
        "ImageArray",
        "ImageScalar",
        "ImageURIArray",
        "ImageURIScalar",
        "ImageURIType",
        "PandasBFloat16Array",
        "bfloat16_array",
        "cast",
    ),
    "lance.commit": (
        "CommitConflictError",
        "CommitLock",
    ),
    "lance.dataset": (
        "AlterColumn",
        "AutoCleanupConfig",
        "BatchUDF",
        "BatchUDFCheckpoint",
        "BlobFile",
        "Branch",
        "Branches",
        "BulkCommitResult",
        "CleanupExplanation",
        "CleanupStats",
        "ColumnOrdering",
        "Compaction",
        "CompactionMetrics",
        "DEFAULT_BLOB_BUFFER_SIZE",
        "DataFile",
        "DataStatistics",
        "DatasetBasePath",
        "DatasetDelta",
        "DatasetOptimizer",
        "DatasetStats",
        "DeleteResult",
        "ExecuteResult",
        "FieldStatistics",
        "FragmentMetadata",
        "IOStats",
        "Index",
        "DocumentGranularity",
        "IndexConfig",
        "IndexFile",
        "IndexInformation",
        "IndexSegment",
        "LANCE_COMMIT_MESSAGE_KEY",
        "LOGGER",
        "LanceDataset",
        "LanceFragment",
        "LanceOperation",
        "LanceScanner",
        "LanceSchema",
        "LanceStats",
        "MergeInsertBuilder",
        "ScanStatistics",
        "ScannerBuilder",
        "Session",
        "SqlQuery",
        "SqlQueryBuilder",
        "Tag",
        "Tags",
        "Transaction",
        "UpdateResult",
        "SupportedDistributedIndices",
        "VectorIndexReader",
        "VectorSearchQuery",
        "td_to_micros",
        "Version",
        "VersionRef",
        "__version__",
        "batch_udf",
        "normalize_transform",
        "serialize_row_addrs",
        "write_dataset",
        "MinHashQuery",
        "FullTextQuery",
    ),
    "lance.debug": (
        "format_fragment",
        "format_manifest",
        "format_schema",
        "list_transactions",
    ),
    "lance.file": (
        "LanceBufferDescriptor",
        "LanceColumnMetadata",
        "LanceFileMetadata",
        "LanceFileReader",
        "LanceFileSession",
        "LanceFileStatistics",
        "LanceFileWriter",
        "LancePageMetadata",
        "ListResult",
        "ReaderResults",
        "stable_version",
    ),
    "lance.fragment": (
        "BatchUDF",
        "DEFAULT_MAX_BYTES_PER_FILE",
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
        "write_fragments",
    ),
    "lance.download": (
        "LANGUAGE_MODEL_HOME",
        "check_lindera",
        "download_jieba",
        "download_lindera",
        "import_requests",
        "language_model_home",
        "main",
    ),
    "lance.hf": ("HuggingFaceConverter",),
    "lance.otel": ("instrument_lance_metrics",),
    "lance.tracing": ("TraceEvent", "capture_trace_events", "trace_to_chrome"),
    "lance.log": (
        "ENV_NAME_PYLANCE_LOGGING_LEVEL",
        "LOGGER",
        "get_log_level",
        "get_python_log_level",
        "set_logger",
    ),
    "lance.mem_wal": (
        "CompactedSsTable",
        "ExecutionPlan",
        "LsmPointLookupPlanner",
        "LsmScanner",
        "LsmVectorSearchPlanner",
        "ShardSnapshot",
        "ShardWriter",
        "ShardingField",
        "ShardingSpec",
        "evaluate_sharding_spec",
    ),
    "lance.namespace": ("DirectoryNamespace", "DynamicContextProvider", "RestAdapter", "RestNamespace"),
    "lance.indices": (
        "IndexConfig",
        "IndexFileVersion",
        "IndexSegment",
        "IndexSegmentDescription",
        "IndicesBuilder",
        "IvfModel",
        "PqModel",
        "SupportedDistributedIndices",
    ),
    "lance.indices.builder": (
        "IndexConfig",
        "IndicesBuilder",
        "IvfModel",
        "PARTITION_COLUMN",
        "PQ_COLUMN",
        "RESIDUAL_COLUMN",
        "PqModel",
    ),
    "lance.indices.ivf": ("IvfModel", "LanceFileReader", "LanceFileWriter"),
    "lance.indices.pq": ("LanceFileReader", "LanceFileWriter", "PqModel"),
    "lance.progress": (
        "FileSystemFragmentWriteProgress",
        "FragmentWriteProgress",
        "IndexProgress",
        "NoopFragmentWriteProgress",
    ),
    "lance.pydantic": (
        "FixedSizeListMixin",
        "MultiVector",
        "Vector",
        "get_extras",
        "is_nullable",
        "pydantic_to_schema",
    ),
    "lance.optimize": (
        "Compaction",
        "CompactionMetrics",
        "CompactionOptions",
        "CompactionPlan",
        "CompactionTask",
        "RewriteResult",
    ),
    "lance.sampler": (
        "FragmentSampler",
        "FullScanSampler",
        "LOGGER",
        "Sampler",
        "ShardedBatchSampler",
        "ShardedFixedBatchSampler",
        "ShardedFragmentSampler",
        "maybe_sample",
        "reservoir_sampling",
    ),
    "lance.bitmap": ("Bitmap",),
    "lance.schema": ("LanceSchema", "json_to_schema", "schema_to_json"),
    "lance.util": (
        "HNSW",
        "KMeans",
        "sanitize_ts",
        "td_to_micros",
        "validate_vector_index",
    ),
    "lance.vector": (
        "compute_partitions",
        "compute_pq_codes",
        "find_duplicate_pairs",
        "find_duplicate_pairs_in_partition",
        "get_ivf_partition_info",
        "hamming_clustering_for_ivf_partition",
        "hamming_clustering_for_range",
        "hamming_clustering_for_sample",
        "one_pass_assign_ivf_pq_on_accelerator",
        "one_pass_train_ivf_pq_on_accelerator",
        "train_ivf_centroids_on_accelerator",
        "train_pq_codebook_on_accelerator",
        "vec_to_table",
        "LOGGER",
        "write_dataset",
    ),
    "lance.udf": (
        "BatchUDF",
        "BatchUDFCheckpoint",
        "batch_udf",
        "normalize_transform",
    ),
}

#: Modules that `import lance_dataset` loads.
PRESENT = ("blob", "file", "fragment", "log", "schema", "udf", "util")


@pytest.mark.parametrize("path", [f"{module}.{name}" for module, names in NAMES.items() for name in names])
def test_the_name_is_there(path: str) -> None:
    module, _, name = path.rpartition(".")
    ours = importlib.import_module(f"lance_dataset{module.removeprefix('lance')}")
    assert hasattr(importlib.import_module(module), name), "the reference does not have it"
    assert getattr(ours, name) is not None
    assert name in ours.__all__ or inspect.ismodule(getattr(ours, name))


@pytest.mark.parametrize("module", NAMES)
def test_the_list_is_complete(module: str) -> None:
    """The list has every name that is public in this package and in the same module of the reference."""
    found = vars(importlib.import_module(module)).items()
    theirs = {name for name, value in found if name[0] != "_" and getattr(value, "__module__", "") != "typing"}
    assert theirs & set(public_names.names()) <= set(NAMES[module])


def test_modules_are_present() -> None:
    assert all(inspect.ismodule(getattr(lance, name)) for name in PRESENT)
    checks = "; ".join(f"lance_dataset.{name}.__all__" for name in PRESENT)
    subprocess.run([sys.executable, "-c", f"import lance_dataset; {checks}"], check=True)


@pytest.mark.parametrize("name", ROOT_MODULES)
def test_modules_at_the_root_only_pass_on_names(name: str) -> None:
    folder = Path(lance_dataset.__path__[0])
    package = folder / name / "__init__.py"
    source = (package if package.exists() else folder / f"{name}.py").read_text(encoding="utf-8")
    docstring, *statements, names = ast.parse(source).body
    assert isinstance(docstring, ast.Expr)
    assert all(isinstance(each, ast.ImportFrom) for each in statements)
    assert isinstance(names, ast.Assign)
    assert ast.unparse(names.targets[0]) == "__all__"
