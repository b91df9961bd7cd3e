"""Lance datasets from Python: files, tables, scans, random access.

Names are imported from their modules when they are used first, so that importing this package takes no time.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lance_dataset._version import __version__

if TYPE_CHECKING:
    from lance_dataset import blob as blob
    from lance_dataset import errors, file
    from lance_dataset import fragment as fragment
    from lance_dataset import log as log
    from lance_dataset import progress as progress
    from lance_dataset import query as query
    from lance_dataset import schema as schema
    from lance_dataset import udf as udf
    from lance_dataset import util as util
    from lance_dataset.api.tokenize import FtsToken, tokenize
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
    from lance_dataset.progress import IndexProgress

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
    "tokenize",
    "write_dataset",
    "write_fragments",
]

_MODULES = frozenset(
    {
        *("blob", "commit", "debug", "errors", "file", "fragment", "indices", "log"),
        *("optimize", "progress", "query", "sampler", "schema", "udf", "util"),
    }
)
#: Modules of names that are not in the module `dataset`.
_OTHERS = {
    "FtsToken": "api.tokenize",
    "IndexProgress": "progress",
    "LanceError": "errors",
    "set_logger": "log",
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
