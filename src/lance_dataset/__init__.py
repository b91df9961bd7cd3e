"""Lance datasets from Python: files, tables, scans, random access.

Names are imported from their modules when they are used first, so that importing this package takes no time.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lance_dataset._version import __version__

if TYPE_CHECKING:
    from lance_dataset import arrow as arrow
    from lance_dataset import bitmap as bitmap
    from lance_dataset import blob as blob
    from lance_dataset import errors, file
    from lance_dataset import fragment as fragment
    from lance_dataset import log as log
    from lance_dataset import mem_wal as mem_wal
    from lance_dataset import namespace as namespace
    from lance_dataset import progress as progress
    from lance_dataset import query as query
    from lance_dataset import schema as schema
    from lance_dataset import udf as udf
    from lance_dataset import util as util
    from lance_dataset import vector as vector
    from lance_dataset.api.machine import simd_info
    from lance_dataset.api.tokenize import FtsToken, tokenize
    from lance_dataset.blob import (
        Blob,
        BlobArray,
        BlobColumn,
        BlobDescriptor,
        BlobDescriptorArrayBuilder,
        DedicatedBlobWriter,
        PackedBlobWriter,
        blob_array,
        blob_field,
    )
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
    from lance_dataset.io.statistics import bytes_read_counter, iops_counter
    from lance_dataset.log import set_logger
    from lance_dataset.mem_wal import (
        CompactedSsTable,
        ExecutionPlan,
        LsmPointLookupPlanner,
        LsmScanner,
        LsmTextSearchPlanner,
        LsmVectorSearchPlanner,
        ShardingField,
        ShardingSpec,
        ShardSnapshot,
        ShardWriter,
        evaluate_sharding_spec,
    )
    from lance_dataset.memory import limited_memory
    from lance_dataset.progress import IndexProgress
    from lance_dataset.schema import json_to_schema, schema_to_json
    from lance_dataset.util import sanitize_ts

__all__ = [
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
    "ColumnOrdering",
    "CompactedSsTable",
    "DataStatistics",
    "DatasetBasePath",
    "DedicatedBlobWriter",
    "ExecutionPlan",
    "FFILanceTableProvider",
    "FieldStatistics",
    "FragmentMetadata",
    "FtsToken",
    "IOStats",
    "Index",
    "IndexFile",
    "IndexProgress",
    "LanceDataset",
    "LanceError",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LsmPointLookupPlanner",
    "LsmScanner",
    "LsmTextSearchPlanner",
    "LsmVectorSearchPlanner",
    "MergeInsertBuilder",
    "PackedBlobWriter",
    "ScanStatistics",
    "ScannerBuilder",
    "Session",
    "ShardSnapshot",
    "ShardWriter",
    "ShardingField",
    "ShardingSpec",
    "Transaction",
    "__version__",
    "batch_udf",
    "blob_array",
    "blob_field",
    "bytes_read_counter",
    "dataset",
    "errors",
    "evaluate_sharding_spec",
    "file",
    "iops_counter",
    "json_to_schema",
    "limited_memory",
    "sanitize_ts",
    "schema_to_json",
    "set_logger",
    "simd_info",
    "tokenize",
    "write_dataset",
    "write_fragments",
]

_MODULES = frozenset(
    {
        *("arrow", "bitmap", "blob", "commit", "debug", "errors", "file", "fragment", "indices", "log"),
        *("mem_wal", "namespace", "optimize", "progress", "query", "sampler", "schema", "udf", "util", "vector"),
    }
)
#: Modules of names that are not in the module `dataset`, or that are so common that the rest of it can wait.
_OTHERS = {
    "dataset": "api.opening",
    **dict.fromkeys(("LanceDataset", "write_dataset"), "api.dataset.dataset"),
    **dict.fromkeys(("Blob", "BlobArray", "BlobColumn", "BlobDescriptor", "BlobDescriptorArrayBuilder"), "blob"),
    **dict.fromkeys(("DedicatedBlobWriter", "PackedBlobWriter", "blob_array", "blob_field"), "blob"),
    "FtsToken": "api.tokenize",
    **dict.fromkeys(("CompactedSsTable", "ExecutionPlan", "LsmPointLookupPlanner", "LsmScanner"), "mem_wal"),
    **dict.fromkeys(("LsmVectorSearchPlanner", "ShardSnapshot", "ShardWriter", "ShardingField"), "mem_wal"),
    **dict.fromkeys(("LsmTextSearchPlanner", "ShardingSpec", "evaluate_sharding_spec"), "mem_wal"),
    "IndexProgress": "progress",
    "LanceError": "errors",
    "json_to_schema": "schema",
    "limited_memory": "memory",
    "sanitize_ts": "util",
    "schema_to_json": "schema",
    "set_logger": "log",
    **dict.fromkeys(("bytes_read_counter", "iops_counter"), "io.statistics"),
    "simd_info": "api.machine",
    "tokenize": "api.tokenize",
    "write_fragments": "fragment",
}


class _Package(ModuleType):
    """The package, whose `dataset` is a function although there is a module of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, except `dataset` to the module when that is imported."""
        if name != "dataset" or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name, as cloudpickle does with other modules: functions for Spark's workers refer to this one."""
        return importlib.import_module, (self.__name__,)


if os.environ.get("LANCE_LOG") or os.environ.get("LANCE_LOG_FILE"):
    # Before any other module has something to say; without these variables, the program's own logging is not touched.
    importlib.import_module("lance_dataset.log")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_OTHERS.get(name, 'dataset')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


sys.modules[__name__].__class__ = _Package
