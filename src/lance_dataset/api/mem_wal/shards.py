"""Snapshots of shards, which readers are given, and progress of merges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError
from lance_dataset.memwal.details import ShardingField, ShardingSpec
from lance_dataset.memwal.places import checked_shard_id
from lance_dataset.memwal.sharding import sharding_values
from lance_dataset.memwal.sources import ShardTables
from lance_dataset.records.schema import LanceSchema
from lance_dataset.table.operations import CompactedSsTable

__all__ = ["ShardSnapshot", "compacted_sstables", "evaluate_sharding_spec", "snapshot_of", "tables_of"]


class ShardSnapshot:
    """SSTables of a shard that a reader is to use, built table by table. The methods return the snapshot.

    Parameters
    ----------
    shard_id
        Id of the shard.

    Raises
    ------
    InvalidInputError
        The id is not a UUID.
    """

    def __init__(self, shard_id: str) -> None:
        self._tables = ShardTables(checked_shard_id(shard_id), {})
        self._spec_id = 0
        self._generation: int | None = None
        self._shown_id = shard_id

    def __repr__(self) -> str:
        return f"ShardSnapshot({self._shown_id!r}, sstables={dict(self._tables.sstables)})"

    @property
    def shard_id(self) -> str:
        """Id of the shard."""
        return self._shown_id

    @property
    def sstables(self) -> dict[int, str]:
        """Folders of the SSTables by generation."""
        return dict(self._tables.sstables)

    def with_spec_id(self, spec_id: int) -> ShardSnapshot:
        """Set the id of the sharding spec."""
        self._spec_id = checked_integer("spec_id", spec_id, bits=32)
        return self

    def with_current_generation(self, generation: int) -> ShardSnapshot:
        """Set the generation that the next SSTable gets."""
        self._generation = checked_integer("generation", generation)
        return self

    def with_sstable(self, generation: int, path: str) -> ShardSnapshot:
        """Add an SSTable.

        Parameters
        ----------
        generation
            Its generation.
        path
            Name of its folder.

        Raises
        ------
        InvalidInputError
            The path is not the name of a folder.
        """
        if not isinstance(path, str):
            raise TypeError(f"path must be the name of a folder, not {type(path).__name__}")
        if path in ("", ".", "..") or set(path) & set("/\\\0"):
            raise InvalidInputError(f"{path!r} is not the name of a folder of the shard")
        known = {**self._tables.sstables, checked_integer("generation", generation): path}
        marks = {number: each for number, each in self._tables.marks.items() if number != generation}
        self._tables = ShardTables(self._tables.shard_id, known, marks)
        return self


def snapshot_of(tables: ShardTables) -> ShardSnapshot:
    """Return a snapshot with the SSTables of a shard."""
    made = ShardSnapshot(tables.shard_id)
    made._tables = tables
    return made


def tables_of(snapshots: Iterable[ShardSnapshot]) -> list[ShardTables]:
    """Return the SSTables of snapshots.

    Raises
    ------
    TypeError
        One of them is not a ShardSnapshot.
    """
    found = []
    for each in snapshots:
        if not isinstance(each, ShardSnapshot):
            raise TypeError(f"a list of ShardSnapshot is needed, not one with {type(each).__name__}")
        found.append(each._tables)
    return found


def compacted_sstables(given: Iterable[Any]) -> tuple[CompactedSsTable, ...]:
    """Return progress that a user gives, as objects with `shard_id` and `generation`.

    Raises
    ------
    TypeError
        An object lacks an attribute.
    InvalidInputError
        A shard id is not a UUID.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"sstables must be a list of CompactedSsTable, not {type(given).__name__}")
    found = []
    for each in given:
        if not hasattr(each, "shard_id") or not hasattr(each, "generation"):
            raise TypeError(f"sstables must be a list of CompactedSsTable, not one with {type(each).__name__}")
        found.append(CompactedSsTable(checked_shard_id(each.shard_id), checked_integer("generation", each.generation)))
    return tuple(found)


def evaluate_sharding_spec(
    batch: pa.RecordBatch, spec: ShardingSpec | Mapping[str, object], schema: LanceSchema
) -> pa.RecordBatch:
    """Compute the sharding values of rows.

    Parameters
    ----------
    batch
        The rows.
    spec
        A spec, or a dict as in `LanceDataset.mem_wal_index_details`.
    schema
        Schema of the table, by which field ids lead to columns.

    Returns
    -------
    pyarrow.RecordBatch
        A column for each field of the spec.

    Raises
    ------
    TypeError
        An argument has the wrong type.
    UnsupportedError
        A transform or a type is not supported.
    FieldNotFoundError
        The batch lacks a source column.
    """
    if not isinstance(batch, pa.RecordBatch):
        raise TypeError(f"batch must be a pyarrow.RecordBatch, not {type(batch).__name__}")
    if not isinstance(schema, LanceSchema):
        raise TypeError(f"schema must be a LanceSchema, not {type(schema).__name__}")
    names = {field.id(): field.name() for field in schema.fields()}
    return sharding_values(batch, _spec(spec), names)


def _spec(given: Any) -> ShardingSpec:
    if isinstance(given, ShardingSpec):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(f"spec must be a ShardingSpec or a dict, not {type(given).__name__}")
    try:
        fields = [each if isinstance(each, ShardingField) else ShardingField(**each) for each in given["fields"]]
        return ShardingSpec(given["spec_id"], fields)
    except (KeyError, TypeError) as error:
        raise InvalidInputError(f"spec must have 'spec_id' and 'fields' as ShardingSpec has: {error}") from error
