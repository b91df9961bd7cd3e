"""Details of the MemWAL of a table, as its system index records them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet

from lance_dataset._proto import system_indices_pb2
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.io.messages import parse_message
from lance_dataset.table.index_metadata import IndexDetails, IndexMetadata, uuid_from_proto
from lance_dataset.table.indices.coverage import MEMORY_INDEX, parse_indices
from lance_dataset.table.manifest import Manifest

__all__ = [
    "MemWalDetails",
    "ShardingField",
    "ShardingSpec",
    "encode_details",
    "find_details",
    "index_entry",
    "required_details",
]

_TYPE_URL = "/lance.table.MemWalIndexDetails"
_LENGTH_DELIMITED = 2


@dataclass(frozen=True)
class ShardingField:
    """Definition of one sharding field.

    Parameters
    ----------
    field_id
        Name of the derived value.
    source_ids
        Ids of the fields of the table that it is computed from.
    transform
        ``unsharded``, ``bucket`` or ``identity``.
    expression
        Reserved by the format.
    result_type
        Name of the type of the value.
    parameters
        Further parameters, such as ``num_buckets``.
    """

    field_id: str
    source_ids: list[int]
    transform: str | None = None
    expression: str | None = None
    result_type: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ShardingSpec:
    """Derivation of shards from rows.

    Parameters
    ----------
    spec_id
        Number of the definition, from 1.
    fields
        Its fields.
    """

    spec_id: int
    fields: list[ShardingField]


@dataclass(frozen=True)
class MemWalDetails:
    """Settings of the MemWAL of a table, and its progress.

    Attributes
    ----------
    num_shards
        Number of buckets; 1 if unsharded, 0 for shards that the user chooses.
    sharding_specs
        How rows lead to shards.
    maintained_indexes, maintain_all_indexes
        Names of the indices that SSTables get, or all.
    compacted
        Highest generation of each shard that is in the table.
    caught_up
        The same for each index: generations that the index covers.
    writer_defaults
        Settings of writers, as text.
    """

    num_shards: int = 0
    sharding_specs: tuple[ShardingSpec, ...] = ()
    maintained_indexes: tuple[str, ...] = ()
    maintain_all_indexes: bool = False
    compacted: Mapping[str, int] = field(default_factory=dict)
    caught_up: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    writer_defaults: Mapping[str, str] = field(default_factory=dict)

    @property
    def spec_id(self) -> int:
        """Id of the only sharding spec, 0 for none."""
        return self.sharding_specs[0].spec_id if self.sharding_specs else 0


def find_details(manifest: Manifest) -> MemWalDetails | None:
    """Return the details of the MemWAL of a table, None without one.

    Raises
    ------
    CorruptFileError
        The details cannot be read.
    UnsupportedError
        They are in the form of releases up to 1.0.
    """
    found = next((index for index in parse_indices(manifest.index_section) if index.name == MEMORY_INDEX), None)
    if found is None:
        return None
    where = f"{manifest.path}: index {found.name!r}"
    message = parse_message(system_indices_pb2.MemWalIndexDetails, found.index_details.value, where)
    unknown: Iterable[Any] = UnknownFieldSet(message)  # type: ignore[assignment]
    for each in unknown:
        if each.field_number == 1 and each.wire_type == _LENGTH_DELIMITED:
            raise UnsupportedError(f"{where}: the MemWAL is in the form of releases up to 1.0, which cannot be used")
    return MemWalDetails(
        message.num_shards,
        tuple(ShardingSpec(spec.spec_id, [_field(each) for each in spec.fields]) for spec in message.sharding_specs),
        tuple(message.maintained_indexes),
        message.maintain_all_indexes,
        _progress(message.compacted_sstables, where),
        {each.index_name: _progress(each.caught_up_generations, where) for each in message.index_catchup},
        dict(message.writer_config_defaults),
    )


def required_details(manifest: Manifest) -> MemWalDetails:
    """Return the details of the MemWAL of a table, as `find_details`; raise InvalidInputError without one."""
    details = find_details(manifest)
    if details is None:
        raise InvalidInputError(
            "MemWAL is not initialized on this version of the dataset; call initialize_mem_wal() first"
        )
    return details


def _progress(tables: Iterable[Any], where: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in tables:
        shard = uuid_from_proto(each.shard_id, where)
        found[shard] = max(each.generation, found.get(shard, 0))
    return found


def _field(message: system_indices_pb2.ShardingField) -> ShardingField:
    return ShardingField(
        message.field_id,
        list(message.source_ids),
        message.transform if message.HasField("transform") else None,
        message.expression if message.HasField("expression") else None,
        message.result_type,
        dict(message.parameters),
    )


def encode_details(details: MemWalDetails) -> IndexDetails:
    """Return the details of a new MemWAL, which has no progress."""
    message = system_indices_pb2.MemWalIndexDetails(
        num_shards=details.num_shards,
        sharding_specs=[
            system_indices_pb2.ShardingSpec(
                spec_id=spec.spec_id,
                fields=[
                    system_indices_pb2.ShardingField(
                        field_id=each.field_id,
                        source_ids=each.source_ids,
                        transform=each.transform,
                        expression=each.expression,
                        result_type=each.result_type,
                        parameters=each.parameters,
                    )
                    for each in spec.fields
                ],
            )
            for spec in details.sharding_specs
        ],
        maintained_indexes=details.maintained_indexes,
        writer_config_defaults=details.writer_defaults,
        maintain_all_indexes=details.maintain_all_indexes,
    )
    return IndexDetails(_TYPE_URL, message.SerializeToString(deterministic=True))


def index_entry(uuid: str, details: MemWalDetails, version: int, created_at: int) -> IndexMetadata:
    """Return the system index of a new MemWAL."""
    return IndexMetadata(
        uuid,
        MEMORY_INDEX,
        dataset_version=version,
        details=encode_details(details),
        index_version=0,
        created_at=created_at,
    )
