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
    "indices",
    "optimize",
    "sampler",
    "schema",
    "udf",
    "util",
)

#: Public names of this package by module of the reference, including names that a module re-exports.
NAMES: dict[str, tuple[str, ...]] = {
    "lance": (
        "BlobFile",
        "CleanupCandidateFile",
        "CleanupExplanation",
        "CleanupReferencedBranch",
        "CleanupStats",
        "DataStatistics",
        "DatasetBasePath",
        "FFILanceTableProvider",
        "FieldStatistics",
        "FragmentMetadata",
        "Index",
        "IndexFile",
        "IndexProgress",
        "LanceDataset",
        "LanceFragment",
        "LanceOperation",
        "LanceScanner",
        "MergeInsertBuilder",
        "ScanStatistics",
        "Session",
        "Transaction",
        "__version__",
        "batch_udf",
        "dataset",
        "file",
        "set_logger",
        "write_dataset",
        "FtsToken",
        "tokenize",
    ),
    "lance.blob": (
        "BlobFile",
        "DEFAULT_BLOB_BUFFER_SIZE",
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
        "LanceFileStatistics",
        "LanceFileWriter",
        "LancePageMetadata",
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
        "LanceFragment",
        "RowDatasetVersionMeta",
        "RowIdMeta",
        "Session",
        "normalize_transform",
        "write_fragments",
    ),
    "lance.log": (
        "LOGGER",
        "set_logger",
    ),
    "lance.indices": ("IndexConfig", "IndexSegmentDescription"),
    "lance.progress": ("IndexProgress",),
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
    "lance.schema": ("LanceSchema",),
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
    theirs = {name for name in vars(importlib.import_module(module)) if name[0] != "_" or name == "__version__"}
    assert theirs & set(public_names.names()) <= set(NAMES[module])


def test_modules_are_present() -> None:
    assert all(inspect.ismodule(getattr(lance, name)) for name in PRESENT)
    checks = "; ".join(f"lance_dataset.{name}.__all__" for name in PRESENT)
    subprocess.run([sys.executable, "-c", f"import lance_dataset; {checks}"], check=True)


@pytest.mark.parametrize("name", ROOT_MODULES)
def test_modules_at_the_root_only_pass_on_names(name: str) -> None:
    source = Path(lance_dataset.__path__[0], f"{name}.py").read_text(encoding="utf-8")
    docstring, *statements, names = ast.parse(source).body
    assert isinstance(docstring, ast.Expr)
    assert all(isinstance(each, ast.ImportFrom) for each in statements)
    assert isinstance(names, ast.Assign)
    assert ast.unparse(names.targets[0]) == "__all__"
