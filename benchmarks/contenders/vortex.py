"""Vortex with its default writer; strings are read as string views, its own choice."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from contenders.base import Contender, Handle
from data import Comparison


class VortexHandle(Handle):
    def __init__(self, library: Any, file: Any) -> None:
        self._library = library
        self._file = file
        # pyarrow cannot take from string views.
        self._takeable = pa.schema(
            [
                field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field
                for field in file.dtype.to_arrow_schema()
            ]
        )

    def scan(self, columns: Sequence[str] | None = None) -> pa.Table:
        return self._file.to_arrow(None if columns is None else list(columns)).read_all()

    def batches(self, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        return iter(self._file.to_arrow(batch_size=rows))

    def take(self, rows: np.ndarray, columns: Sequence[str] | None = None) -> pa.Table:
        names = None if columns is None else list(columns)
        # Row numbers must be strictly ascending; the caller handles any other order.
        rising, position = np.unique(rows, return_inverse=True)
        indices = self._library.array(pa.array(rising.astype(np.uint64)))
        if len(rising) == len(rows) and bool((position[1:] > position[:-1]).all()):
            return self._file.to_arrow(names, indices=indices).read_all()
        schema = self._takeable if names is None else pa.schema([self._takeable.field(name) for name in names])
        return self._file.to_arrow(names, indices=indices, schema=schema).read_all().take(pa.array(position))

    def filtered(self, comparison: Comparison) -> pa.Table:
        return self._file.to_arrow(expr=self._expression(comparison)).read_all()

    def count(self, comparison: Comparison | None = None) -> int:
        if comparison is None:
            return len(self._file)
        # Counting requires reading a column; the compared column costs least.
        return self._file.to_arrow([comparison.column], expr=self._expression(comparison)).read_all().num_rows

    def _expression(self, comparison: Comparison) -> Any:
        names, types = self._file.dtype.names(), self._file.dtype.fields()
        bound = self._library.expr.literal(types[names.index(comparison.column)], comparison.bound)
        return self._library.expr.column(comparison.column) < bound


class Vortex(Contender):
    requires = "vortex-data"

    def __init__(self, name: str, *, memory_map: bool, stored_by: str | None = None) -> None:
        self.name = name
        self.stored_by = stored_by or name
        self.description = "vortex-data, memory mapped" if memory_map else "vortex-data, its default reads"
        self._memory_map = memory_map

    def import_library(self) -> None:
        self._library = importlib.import_module("vortex")
        importlib.import_module("vortex.expr")

    def write(self, source: pa.Table | pa.RecordBatchReader, path: Path) -> None:
        self._library.io.write(source, str(path))

    def open(self, path: Path) -> Handle:
        return VortexHandle(self._library, self._library.open(str(path), memory_map=self._memory_map))
