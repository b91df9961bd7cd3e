"""Lance, by this package and by the reference: the same calls, since the two share one API."""

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

    def batches(self) -> Iterator[pa.RecordBatch]:
        return self._dataset.to_batches()

    def take(self, rows: np.ndarray) -> pa.Table:
        return self._dataset.take(rows.tolist())

    def filtered(self, comparison: Comparison) -> pa.Table:
        return self._dataset.to_table(filter=f"{comparison.column} < {comparison.bound}")

    def count(self) -> int:
        return self._dataset.count_rows()


class Lance(Contender):
    def __init__(self, name: str, requires: str, module: str, data_storage_version: str | None) -> None:
        self.name = name
        self.requires = requires
        version = "its default file version" if data_storage_version is None else f"file version {data_storage_version}"
        self.description = f"{requires}, {version}"
        self._module_name = module
        self._options = {} if data_storage_version is None else {"data_storage_version": data_storage_version}

    def import_library(self) -> None:
        self._module = importlib.import_module(self._module_name)

    def write(self, source: pa.Table | pa.RecordBatchReader, path: Path) -> None:
        self._module.write_dataset(source, str(path), **self._options)

    def open(self, path: Path) -> Handle:
        return LanceHandle(self._module.dataset(str(path)))
