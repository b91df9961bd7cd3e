"""Searches of vectors over a table and its shards: `LsmVectorSearchPlanner`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.api.mem_wal.plans import ExecutionPlan
from lance_dataset.api.mem_wal.scanner import key_of
from lance_dataset.api.mem_wal.shards import ShardSnapshot, tables_of
from lance_dataset.api.scanner.nearest_scanner import NearestScanner, nearest_scanner
from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError
from lance_dataset.expr.compiled import compile_filter
from lance_dataset.memwal.hiding import hidden_addresses
from lance_dataset.memwal.lsm_scan import scanned_columns
from lance_dataset.memwal.shard_rows import shard_rows
from lance_dataset.memwal.sources import open_sources
from lance_dataset.memwal.vectors import distances_to
from lance_dataset.scan.nearest_query import METRICS, NearestQuery
from lance_dataset.scan.options import checked_option
from lance_dataset.scan.resolving import serialize_row_addrs

if TYPE_CHECKING:
    from lance_dataset.read.shown import Shown

__all__ = ["LsmVectorSearchPlanner"]

_DISTANCE = pa.field("_distance", pa.float32())


class LsmVectorSearchPlanner:
    """Planner of searches of vectors over a table and SSTables of its shards.

    Rows of SSTables are compared one by one, those of the table by its index. Rows that have a newer version do not
    count.

    Parameters
    ----------
    dataset
        The table. SSTables that this version contains are left out.
    shard_snapshots
        SSTables, see `LanceDataset.mem_wal_snapshots`.
    vector_column
        Column of the vectors.
    pk_columns
        Columns of the key; None for the primary key.
    distance_type
        Metric; None for that of the index, or the usual one.
    filter
        SQL text for the rows that count; None for all.

    Raises
    ------
    InvalidInputError
        The table has no primary key, the column holds no vectors, or the metric does not exist.
    FieldNotFoundError, FilterError
        The column does not exist, or the filter does not fit.
    """

    def __init__(
        self,
        dataset: Shown,
        shard_snapshots: list[ShardSnapshot],
        vector_column: str,
        pk_columns: list[str] | None = None,
        distance_type: str | None = None,
        filter: str | None = None,
    ) -> None:
        base = dataset.snapshot
        field = base.manifest.schema.top_level(vector_column)
        kind = field.storage_type
        if not pa.types.is_fixed_size_list(kind) or not pa.types.is_floating(kind.value_type):
            raise InvalidInputError(f"column {vector_column!r} of type {kind} is not a fixed-size list of floats")
        if distance_type is not None and str(distance_type).lower() not in METRICS:
            raise InvalidInputError(f"unknown distance type {distance_type!r}; use one of {sorted(METRICS)}")
        if filter is not None:
            compile_filter(filter, base.manifest.schema.storage_arrow)
        self._sources = open_sources(base, key_of(base, pk_columns), tables_of(shard_snapshots), filter=filter)
        self._column, self._dimension = vector_column, kind.list_size
        self._metric = None if distance_type is None else METRICS[distance_type.lower()]
        self._filter = filter

    def plan_search(
        self,
        query: pa.Array,
        k: int = 10,
        nprobes: int = 20,
        columns: list[str] | None = None,
        refine_base_table: bool = False,
        overfetch_factor: float = 1.0,
    ) -> ExecutionPlan:
        """Plan the search of the rows whose vectors are nearest to another.

        Parameters
        ----------
        query
            The other vector.
        k
            Number of rows to find.
        nprobes
            Partitions of an index of the table to search.
        columns
            Columns to return, besides those of the key and ``_distance``; None for all.
        refine_base_table
            True to compute distances of rows of the table from their vectors, if an index estimates them.
        overfetch_factor
            Rows of an index to consider, as a multiple of `k`.

        Raises
        ------
        InvalidInputError
            A number is out of range, or the vector has another dimension.
        TypeError
            `query` is not an array.
        FieldNotFoundError
            A column does not exist.
        """
        vector = self._vector(query)
        most, probes = checked_integer("k", k), checked_integer("nprobes", nprobes)
        if most < 1 or probes < 1:
            raise InvalidInputError(f"k and nprobes must be at least 1, not {k} and {nprobes}")
        if not overfetch_factor >= 1:
            raise InvalidInputError(f"overfetch_factor must be at least 1, not {overfetch_factor}")
        chosen = None if columns is None else tuple(name for name in columns if name != _DISTANCE.name)
        fields = scanned_columns(self._sources, chosen)
        schema = pa.schema([*(field.to_arrow() for field in fields), _DISTANCE])
        factor = int(np.ceil(overfetch_factor)) if refine_base_table or overfetch_factor > 1 else None
        parameters = {"column": self._column, "q": vector, "k": most, "nprobes": probes, "refine_factor": factor}
        scanner = self._base_search([field.name for field in fields], parameters)
        lines = [(0, f"LsmNearest: k={most}, metric={scanner.metric}")]
        lines += [(1, f"SsTable: generation={table.generation}") for shard in self._sources.shards for table in shard]
        lines += [(1, line) for line in scanner.explain_plan().splitlines()]
        return ExecutionPlan(schema, lambda: lines, lambda: self._run(schema, vector, most, scanner))

    def _vector(self, query: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        if not isinstance(query, pa.Array):
            raise TypeError(f"query must be a pyarrow Array, not {type(query).__name__}")
        if pa.types.is_fixed_size_list(query.type) and len(query) == 1:
            query = query.flatten()
        if len(query) != self._dimension or query.null_count:
            raise InvalidInputError(f"query has {len(query)} numbers, but the vectors have {self._dimension}")
        return np.asarray(query.to_numpy(zero_copy_only=False), np.float32)

    def _base_search(self, names: list[str], parameters: dict[str, Any]) -> NearestScanner:
        base = self._sources.base
        if self._metric is not None:
            parameters = {**parameters, "metric": self._metric}
        options: dict[str, Any] = {"columns": [*names, _DISTANCE.name], "prefilter": True}
        if self._filter is not None:
            options["filter"] = self._filter
        hidden = hidden_addresses(self._sources)
        if len(hidden):
            options["row_addr_blocklist"] = serialize_row_addrs(hidden.tolist())
        checked = {name: checked_option(name, value) for name, value in options.items()}
        parameters = {name: value for name, value in parameters.items() if value is not None}
        return nearest_scanner(base, checked, NearestQuery.of(parameters))

    def _run(
        self, schema: pa.Schema, vector: np.ndarray[Any, np.dtype[np.float32]], k: int, scanner: NearestScanner
    ) -> Iterator[pa.RecordBatch]:
        found = [scanner.to_table().select(schema.names).cast(schema)]
        wanted = scanned_columns(self._sources, (*schema.names[:-1], self._column))
        for _, batch in shard_rows(self._sources, wanted, self._filter):
            distances = distances_to(batch.column(self._column), vector, scanner.metric)
            kept = batch.append_column(_DISTANCE, distances).filter(distances.is_valid())
            found.append(pa.Table.from_batches([kept]).select(schema.names).cast(schema))
        rows = pa.concat_tables(found)
        order = pc.sort_indices(rows, sort_keys=[(_DISTANCE.name, "ascending")])
        yield from rows.take(order.slice(0, k)).combine_chunks().to_batches()
