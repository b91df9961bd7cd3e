"""Plans of lookups and searches over a table and its shards, and the planners that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_dataset.api.mem_wal.scanner import key_of
from lance_dataset.api.mem_wal.shards import ShardSnapshot, tables_of
from lance_dataset.errors import InvalidInputError
from lance_dataset.memwal.lookup import KeyLookup
from lance_dataset.memwal.sources import LsmSources, open_sources

if TYPE_CHECKING:
    from lance_dataset.read.shown import Shown

__all__ = ["ExecutionPlan", "LsmPointLookupPlanner"]


class ExecutionPlan:
    """Plan of a lookup or search, made by a planner. Each call runs it anew.

    Parameters
    ----------
    schema
        Schema of the result.
    steps
        Returns the steps of the plan, the last one first, each with its depth.
    run
        Runs the plan.
    """

    def __init__(
        self,
        schema: pa.Schema,
        steps: Callable[[], Sequence[tuple[int, str]]],
        run: Callable[[], Iterator[pa.RecordBatch]],
    ) -> None:
        self._schema, self._steps, self._run = schema, steps, run

    def __repr__(self) -> str:
        return f"ExecutionPlan(\n{self.explain()})"

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result."""
        return self._schema

    @property
    def dataset_schema(self) -> pa.Schema:
        """Schema of the result."""
        return self._schema

    def explain(self) -> str:
        """Return the steps as indented text."""
        return "".join(f"{'  ' * depth}{line}\n" for depth, line in self._steps())

    def to_reader(self) -> pa.RecordBatchReader:
        """Run the plan as a stream."""
        return pa.RecordBatchReader.from_batches(self._schema, self._run())

    def to_batches(self) -> list[pa.RecordBatch]:
        """Run the plan and return its batches."""
        return list(self._run())

    def to_table(self) -> pa.Table:
        """Run the plan and return a table.

        Raises
        ------
        MissingFileError, CorruptFileError
            An SSTable does not exist or cannot be read.
        """
        return pa.Table.from_batches(self._run(), self._schema)


class LsmPointLookupPlanner:
    """Planner of lookups of single keys over a table and SSTables of its shards.

    Parameters
    ----------
    dataset
        The table. SSTables that this version contains are left out.
    shard_snapshots
        SSTables, see `LanceDataset.mem_wal_snapshots`.
    pk_columns
        Columns of the key; None for the primary key.

    Raises
    ------
    InvalidInputError
        The table has no primary key.
    MissingFileError
        An SSTable does not exist.
    """

    def __init__(
        self, dataset: Shown, shard_snapshots: list[ShardSnapshot], pk_columns: list[str] | None = None
    ) -> None:
        base = dataset.snapshot
        self._sources = open_sources(base, key_of(base, pk_columns), tables_of(shard_snapshots))
        self._lookups: dict[tuple[str, ...] | None, KeyLookup] = {}

    def plan_lookup(self, pk_value: pa.Array, columns: list[str] | None = None) -> ExecutionPlan:
        """Plan the lookup of one key.

        Parameters
        ----------
        pk_value
            Array with the value of the key; for a key of several columns a StructArray with a field for each.
        columns
            Columns to return; None for all. Those of the key are added if they are missing.

        Raises
        ------
        TypeError
            `pk_value` is not an array, or of other types than the key.
        InvalidInputError
            It does not have exactly one value.
        FieldNotFoundError
            A column does not exist.
        """
        sources = self._sources
        key = _key_row(sources, pk_value)
        chosen = None if columns is None else tuple(columns)
        lookup = self._lookups.get(chosen)
        if lookup is None:
            lookup = self._lookups.setdefault(chosen, KeyLookup(sources, chosen))
        return ExecutionPlan(lookup.schema, partial(_lookup_steps, sources), lambda: iter([lookup.find(key)]))


def _lookup_steps(sources: LsmSources) -> list[tuple[int, str]]:
    lines = [(0, f"LsmLookup: key=[{', '.join(sources.key.names)}]")]
    lines += [(1, f"SsTable: generation={table.generation}") for shard in sources.shards for table in shard]
    return [*lines, (1, f"Table: version={sources.base.version}")]


def _key_row(sources: LsmSources, value: Any) -> pa.StructArray:
    """Return a key as one row with a field for each column."""
    if isinstance(value, pa.Scalar):
        value = pa.array([value.as_py()], value.type)
    if not isinstance(value, pa.Array):
        raise TypeError(f"pk_value must be a pyarrow Array, not {type(value).__name__}")
    if len(value) != 1:
        raise InvalidInputError(f"pk_value must have exactly one value, not {len(value)}")
    names = sources.key.names
    is_struct = pa.types.is_struct(value.type)
    if len(names) > 1 and not is_struct:
        raise TypeError(f"pk_value must be a StructArray with the fields {list(names)}, not {value.type}")
    parts = [value]
    if is_struct:
        missing = [name for name in names if value.type.get_field_index(name) < 0]
        if missing:
            raise InvalidInputError(f"pk_value lacks the fields {missing} of the key")
        parts = [value.field(value.type.get_field_index(name)) for name in names]
    schema = sources.base.manifest.schema
    for number, (name, part) in enumerate(zip(names, parts, strict=True)):
        kind = schema.top_level(name).storage_type
        if part.type != kind:
            try:
                parts[number] = part.cast(kind)
            except pa.ArrowException as error:
                raise TypeError(f"the value of key column {name!r} is {part.type}, not {kind}") from error
    return pa.StructArray.from_arrays(parts, list(names))
