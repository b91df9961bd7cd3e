"""Manifests of shards: who writes a shard, what of its log was flushed, and to where."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lance_dataset._proto import mem_wal_pb2
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.io.messages import parse_message
from lance_dataset.table.index_metadata import uuid_from_proto, uuid_to_proto

__all__ = ["ShardManifest", "SsTable", "claiming_bytes", "decode_shard_manifest", "encode_shard_manifest"]


@dataclass(frozen=True)
class SsTable:
    """Flushed memtable: a small dataset in the folder of its shard.

    Attributes
    ----------
    generation
        Number of the memtable, counted from 1.
    path
        Name of the folder.
    in_memory_bytes, physical_rows, primary_key_bytes
        Sizes, None if they are not known.
    marks
        Marks of the sharding values of all rows, see `lance_dataset.memwal.routing`; None if they are not known.
    """

    generation: int
    path: str
    in_memory_bytes: int | None = None
    physical_rows: int | None = None
    primary_key_bytes: int | None = None
    marks: frozenset[str] | None = None


@dataclass(frozen=True)
class ShardManifest:
    """One version of the state of a shard.

    Attributes
    ----------
    shard_id
        Id of the shard.
    version
        Number of this version.
    writer_epoch
        Number of claims so far; the last writer to claim the shard owns it. 0 if there was none.
    replay_after
        Last position of the log that is in an SSTable, 0 for none.
    last_seen
        A position that exists in the log, 0 if none is known.
    generation
        Generation of the next SSTable.
    sstables
        SSTables, oldest first.
    spec_id
        Id of the sharding spec, 0 for none.
    field_values
        Sharding values of the rows of the shard, encoded.
    sealed
        True if no writer may claim the shard.
    jobs
        Number of the last batch of each job that publishes batches. A writer of another library may drop it.
    """

    shard_id: str
    version: int = 0
    writer_epoch: int = 0
    replay_after: int = 0
    last_seen: int = 0
    generation: int = 1
    sstables: tuple[SsTable, ...] = ()
    spec_id: int = 0
    field_values: Mapping[str, bytes] = field(default_factory=dict)
    sealed: bool = False
    jobs: Mapping[str, int] = field(default_factory=dict)


#: Start of a field that no release reads, with 16 bytes: number 1000, with a length.
_UNREAD = b"\xc2\x3e\x10"
#: Numbers of fields that other libraries skip: of an SSTable with one of its marks, and of a shard with the number of a
#: batch and the name of its job; and their wire type.
_MARKS, _JOBS, _LENGTH_DELIMITED = 1001, 1002, 2


def claiming_bytes(manifest: ShardManifest) -> bytes:
    """Return the content of the file of a manifest that claims a shard.

    It is unlike that of any other claim, so that a writer who does not know what became of its request can tell its
    manifest from that of another writer with the same epoch. Readers skip the random field.
    """
    return encode_shard_manifest(manifest) + _UNREAD + os.urandom(16)


def encode_shard_manifest(manifest: ShardManifest) -> bytes:
    """Return the content of the file of a manifest."""
    message = mem_wal_pb2.ShardManifest(
        version=manifest.version,
        writer_epoch=manifest.writer_epoch,
        replay_after_wal_entry_position=manifest.replay_after,
        wal_entry_position_last_seen=manifest.last_seen,
        current_generation=manifest.generation,
        sstables=[_sstable_message(table) for table in manifest.sstables],
        shard_spec_id=manifest.spec_id,
        shard_id=uuid_to_proto(manifest.shard_id),
        shard_field_entries=[
            mem_wal_pb2.ShardFieldEntry(field_id=name, value=value) for name, value in manifest.field_values.items()
        ],
        status=mem_wal_pb2.SEALED if manifest.sealed else mem_wal_pb2.ACTIVE,
    )
    for job, number in manifest.jobs.items():
        message.MergeFromString(_unread_field(_JOBS, f"{number} {job}"))
    return message.SerializeToString(deterministic=True)


def _sstable_message(table: SsTable) -> mem_wal_pb2.SsTable:
    message = mem_wal_pb2.SsTable(
        generation=table.generation,
        path=table.path,
        in_memory_bytes=table.in_memory_bytes,
        physical_rows=table.physical_rows,
        primary_key_bytes=table.primary_key_bytes,
    )
    for mark in sorted(table.marks or ()):
        message.MergeFromString(_unread_field(_MARKS, mark))
    return message


def _unread_field(number: int, text: str) -> bytes:
    content = text.encode()
    return _encoded(number << 3 | _LENGTH_DELIMITED) + _encoded(len(content)) + content


def _encoded(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def decode_shard_manifest(data: bytes, where: str) -> ShardManifest:
    """Read the content of the file of a manifest.

    Raises
    ------
    CorruptFileError
        It contradicts the format.
    UnsupportedError
        The shard is in a state that this release does not know.
    """
    message = parse_message(mem_wal_pb2.ShardManifest, data, where)
    if not message.HasField("shard_id"):
        raise CorruptFileError(f"{where}: a shard manifest without the id of its shard")
    if message.status not in (mem_wal_pb2.ACTIVE, mem_wal_pb2.SEALED):
        raise UnsupportedError(f"{where}: the shard has the unknown status {message.status}; use a newer release")
    manifest = ShardManifest(
        uuid_from_proto(message.shard_id, where),
        message.version,
        message.writer_epoch,
        message.replay_after_wal_entry_position,
        message.wal_entry_position_last_seen,
        max(message.current_generation, 1),
        tuple(_sstable(table) for table in message.sstables),
        message.shard_spec_id,
        {entry.field_id: entry.value for entry in message.shard_field_entries},
        message.status == mem_wal_pb2.SEALED,
        _jobs(message),
    )
    _check_sstables(manifest, where)
    return manifest


def _sstable(message: mem_wal_pb2.SsTable) -> SsTable:
    sizes = [
        getattr(message, name) if message.HasField(name) else None
        for name in ("in_memory_bytes", "physical_rows", "primary_key_bytes")
    ]
    marks = frozenset(_unread_texts(message, _MARKS))
    return SsTable(message.generation, message.path, sizes[0], sizes[1], sizes[2], marks or None)


def _unread_texts(message: Message, number: int) -> list[str]:
    """Return the texts in a field that other libraries skip; none if it is a field of someone else."""
    unknown: Iterable[Any] = UnknownFieldSet(message)  # type: ignore[assignment]
    found = [each for each in unknown if each.field_number == number and each.wire_type == _LENGTH_DELIMITED]
    try:
        return [bytes(each.data).decode() for each in found]
    except UnicodeDecodeError:
        return []


def _jobs(message: Message) -> dict[str, int]:
    parts = (text.partition(" ") for text in _unread_texts(message, _JOBS))
    return {job: int(number) for number, _, job in parts if number.isascii() and number.isdecimal()}


def _check_sstables(manifest: ShardManifest, where: str) -> None:
    before = 0
    for table in manifest.sstables:
        if table.generation <= before:
            raise CorruptFileError(f"{where}: SSTable {table.generation} follows SSTable {before}")
        if table.generation >= manifest.generation:
            raise CorruptFileError(
                f"{where}: SSTable {table.generation} exists, but the next one would be {manifest.generation}"
            )
        if table.path in ("", ".", "..") or set(table.path) & set("/\\\0"):
            raise CorruptFileError(f"{where}: SSTable {table.generation} is in {table.path!r}, not in a folder of it")
        before = table.generation
