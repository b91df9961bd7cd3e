"""Lance in this package and in the reference: the same calls, since the two share one API."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from contenders.base import Contender, Handle
from data import Comparison


class LanceHandle(Handle):
    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def scan(self, columns: Sequence[str] | None = None) -> pa.Table:
        return self._dataset.to_table(columns=None if columns is None else list(columns))

    def batches(self, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        return self._dataset.to_batches(batch_size=rows)

    def take(self, rows: np.ndarray, columns: Sequence[str] | None = None) -> pa.Table:
        return self._dataset.take(rows.tolist(), columns=None if columns is None else list(columns))

    def filtered(self, comparison: Comparison) -> pa.Table:
        return self._dataset.to_table(filter=f"{comparison.column} < {comparison.bound}")

    def count(self, comparison: Comparison | None = None) -> int:
        if comparison is None:
            return self._dataset.count_rows()
        return self._dataset.count_rows(filter=f"{comparison.column} < {comparison.bound}")


class Lance(Contender):
    def __init__(
        self,
        name: str,
        library: tuple[str, str],
        version: str,
        detail: str = "",
        *,
        stored_by: str | None = None,
        storage_options: dict[str, str] | None = None,
        reads: bool = True,
    ) -> None:
        self.name = name
        self.requires, self._module_name = library
        self.version = version
        self.stored_by = stored_by or name
        self.reads = reads
        self.description = f"{self.requires}, file version {version}{detail}"
        self._storage_options = storage_options

    def import_library(self) -> None:
        self._module = importlib.import_module(self._module_name)

    def write(self, source: pa.Table | pa.RecordBatchReader, path: Path) -> None:
        self._module.write_dataset(
            source, str(path), data_storage_version=self.version, storage_options=self._storage_options
        )

    def open(self, path: Path) -> Handle:
        return LanceHandle(self._module.dataset(str(path)))


#: (distribution, module)
OURS = ("lance-dataset", "lance_dataset")
REFERENCE = ("pylance", "lance")
VERSIONS = ("legacy", "2.0", "2.1", "2.2")


def lance_contenders(version: str) -> tuple[Contender, ...]:
    """Return this package and the reference at a file version; ours also without fsync or on the reference's file."""
    ours, reference = f"{OURS[0]}-{version}", f"{REFERENCE[0]}-{version}"
    return (
        Lance(ours, OURS, version),
        Lance(reference, REFERENCE, version),
        Lance(f"{ours}-on-pylance", OURS, version, ", reading pylance's file", stored_by=reference),
        Lance(
            f"{ours}-unsynced",
            OURS,
            version,
            ", writing without fsync",
            storage_options={"local_fsync": "false"},
            reads=False,
        ),
    )
