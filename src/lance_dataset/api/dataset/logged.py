"""MemWAL of a dataset: set up, write to shards, and merge them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lance_dataset.arguments import check_duration, checked_integer
from lance_dataset.errors import InvalidInputError
from lance_dataset.read.shown import Shown

if TYPE_CHECKING:
    from lance_dataset.api.mem_wal.shards import ShardSnapshot
    from lance_dataset.api.mem_wal.writer import ShardWriter
    from lance_dataset.memwal.details import ShardingSpec
    from lance_dataset.memwal.status import ShardStatus
    from lance_dataset.types.schema import Schema

__all__ = ["Logged"]

HnswParameters = Mapping[str, Mapping[str, int]]


class Logged(Shown):
    """MemWAL of a dataset: set up, write to shards, and merge them."""

    def initialize_mem_wal(
        self,
        *,
        maintained_indexes: list[str] | None = None,
        bucket_column: str | None = None,
        num_buckets: int | None = None,
        identity_column: str | None = None,
        unsharded: bool = False,
        durable_write: bool | None = None,
        max_wal_buffer_size: int | None = None,
        max_wal_flush_interval_ms: int | None = None,
        max_memtable_size: int | None = None,
        max_memtable_rows: int | None = None,
        max_memtable_batches: int | None = None,
        max_unflushed_memtable_bytes: int | None = None,
        manifest_scan_batch_size: int | None = None,
        backpressure_log_interval_ms: int | None = None,
        stats_log_interval_ms: int | None = None,
        hnsw_params: HnswParameters | None = None,
    ) -> None:
        """Add a MemWAL, through which rows are written in small pieces. Move this handle to the new version.

        At most one of bucket sharding, identity sharding and `unsharded` can be chosen. It is a rule for those who
        choose shards: writers do not check it.

        Parameters
        ----------
        maintained_indexes
            Names of the indices of which SSTables get counterparts: B-tree, full-text and vector indices. None for all
            of these kinds, also those that are created later.
        bucket_column, num_buckets
            Column and number of buckets of bucket sharding.
        identity_column
            Column of identity sharding.
        unsharded
            True for a single shard.
        durable_write, max_wal_buffer_size, max_wal_flush_interval_ms, max_memtable_size, max_memtable_rows
            Recorded for writers, see `mem_wal_writer`.
        max_memtable_batches, max_unflushed_memtable_bytes, manifest_scan_batch_size
            Recorded, too.
        backpressure_log_interval_ms, stats_log_interval_ms, hnsw_params
            Recorded, too.

        Raises
        ------
        InvalidInputError
            The dataset has a MemWAL, an index or a column does not exist, or arguments contradict each other.
        UnsupportedError
            A MemWAL cannot keep a column.
        """
        from lance_dataset.memwal.details import MemWalDetails
        from lance_dataset.memwal.initializing import initialize_mem_wal
        from lance_dataset.memwal.options import recorded_options

        names = _checked_names(maintained_indexes)
        schema = self.snapshot.manifest.schema
        spec = _spec(schema, bucket_column, num_buckets, identity_column, unsharded)
        defaults = recorded_options(
            {
                "durable_write": durable_write,
                "max_wal_buffer_size": max_wal_buffer_size,
                "max_wal_flush_interval_ms": max_wal_flush_interval_ms,
                "max_memtable_size": max_memtable_size,
                "max_memtable_rows": max_memtable_rows,
                "max_memtable_batches": max_memtable_batches,
                "max_unflushed_memtable_bytes": max_unflushed_memtable_bytes,
                "manifest_scan_batch_size": manifest_scan_batch_size,
                "backpressure_log_interval_ms": backpressure_log_interval_ms,
                "stats_log_interval_ms": stats_log_interval_ms,
                "hnsw_params": hnsw_params,
            }
        )
        details = MemWalDetails(
            num_shards=1 if unsharded else num_buckets or 0,
            sharding_specs=() if spec is None else (spec,),
            maintained_indexes=names or (),
            maintain_all_indexes=names is None,
            writer_defaults=defaults,
        )
        self.show(initialize_mem_wal(self.snapshot, details, list(hnsw_params or ())))

    def mem_wal_index_details(self) -> dict[str, Any] | None:
        """Return the settings of the MemWAL, None without one.

        Returns
        -------
        dict or None
            ``num_shards``, ``maintained_indexes``, ``maintain_all_indexes``, ``writer_config_defaults`` and
            ``sharding_specs``.
        """
        from lance_dataset.memwal.details import find_details

        details = find_details(self.snapshot.manifest)
        if details is None:
            return None
        return {
            "num_shards": details.num_shards,
            "maintained_indexes": list(details.maintained_indexes),
            "maintain_all_indexes": details.maintain_all_indexes,
            "writer_config_defaults": dict(details.writer_defaults),
            "sharding_specs": [asdict(spec) for spec in details.sharding_specs],
        }

    def mem_wal_writer(
        self,
        shard_id: str,
        *,
        durable_write: bool | None = None,
        max_wal_buffer_size: int | None = None,
        max_wal_flush_interval_ms: int | None = None,
        max_memtable_size: int | None = None,
        max_memtable_rows: int | None = None,
        max_memtable_batches: int | None = None,
        max_unflushed_memtable_bytes: int | None = None,
        manifest_scan_batch_size: int | None = None,
        backpressure_log_interval_ms: int | None = None,
        stats_log_interval_ms: int | None = None,
        hnsw_params: HnswParameters | None = None,
    ) -> ShardWriter:
        """Claim a shard and return its writer. Rows of the log that are in no SSTable are replayed.

        An earlier writer of the shard, which may still run, fails from now on.

        Parameters
        ----------
        shard_id
            Id of the shard, a UUID. The shard is created if it does not exist.
        durable_write
            True (the default) if a put returns when its rows are in the log, False if they may wait.
        max_wal_buffer_size, max_wal_flush_interval_ms
            Bytes of rows (10 MiB) and milliseconds (100) that rows wait for the log at most.
        max_memtable_size, max_memtable_rows, max_memtable_batches
            A memtable with as many bytes (256 MiB), rows (100 000) or batches (8 000) is flushed.
        max_unflushed_memtable_bytes
            Puts wait while unflushed memtables have more bytes (1 GiB).
        manifest_scan_batch_size
            No effect.
        backpressure_log_interval_ms, stats_log_interval_ms
            Milliseconds between messages of the log of this package.
        hnsw_params
            Parameters of the graphs of vector indices of SSTables, by the name of the index: ``num_edges``,
            ``ef_construction`` and ``max_level``.

        Raises
        ------
        InvalidInputError
            The dataset has no MemWAL, the id is not a UUID, or the shard is sealed.
        CommitConflictError
            Another writer claimed the shard at the same time.
        CorruptFileError
            The log of the shard is damaged.
        """
        from lance_dataset.api.mem_wal.writer import ShardWriter
        from lance_dataset.memwal.opening import open_writer
        from lance_dataset.memwal.options import WriterOptions
        from lance_dataset.memwal.places import checked_shard_id

        options = WriterOptions.of(
            {
                "durable_write": durable_write,
                "max_wal_buffer_size": max_wal_buffer_size,
                "max_wal_flush_interval_ms": max_wal_flush_interval_ms,
                "max_memtable_size": max_memtable_size,
                "max_memtable_rows": max_memtable_rows,
                "max_memtable_batches": max_memtable_batches,
                "max_unflushed_memtable_bytes": max_unflushed_memtable_bytes,
                "manifest_scan_batch_size": manifest_scan_batch_size,
                "backpressure_log_interval_ms": backpressure_log_interval_ms,
                "stats_log_interval_ms": stats_log_interval_ms,
                "hnsw_params": hnsw_params,
            }
        )
        core = open_writer(self.snapshot, checked_shard_id(shard_id), options)
        return ShardWriter(core, self.snapshot, shard_id)

    def mem_wal_snapshots(self) -> list[ShardSnapshot]:
        """Return the SSTables that each shard has now, for readers of `lance_dataset.mem_wal`."""
        from lance_dataset.api.mem_wal.shards import snapshot_of
        from lance_dataset.memwal.sources import flushed_shards

        return [snapshot_of(shard) for shard in flushed_shards(self.snapshot)]

    def mem_wal_status(self) -> list[ShardStatus]:
        """Return the state of each shard: its writer, its SSTables, and its log.

        Raises
        ------
        InvalidInputError
            The dataset has no MemWAL.
        CorruptFileError
            The manifest or the log of a shard is damaged.
        """
        from lance_dataset.memwal.status import shard_statuses

        return shard_statuses(self.snapshot)

    def merge_mem_wal(self, shard_id: str | None = None) -> dict[str, int]:
        """Merge SSTables of shards into the table, and move this handle to the new version.

        The newest row of each key replaces that of the table, and deleted keys are deleted. Several processes may merge
        at the same time.

        Parameters
        ----------
        shard_id
            Id of a shard; None for all.

        Returns
        -------
        dict
            ``num_sstables``, ``num_upserted_rows`` and ``num_deleted_keys``.

        Raises
        ------
        InvalidInputError
            The dataset has no MemWAL or no such shard, or the id is not a UUID.
        CommitConflictError
            Other writers changed the table again and again.
        """
        from lance_dataset.memwal.merging import merge_shard

        tables = upserted = deleted = 0
        for each in self._shards(shard_id):
            made, merged = merge_shard(self.snapshot, each)
            self.show(made)
            tables, upserted = tables + len(merged.generations), upserted + merged.upserted
            deleted += merged.deleted
        return {"num_sstables": tables, "num_upserted_rows": upserted, "num_deleted_keys": deleted}

    def collect_mem_wal(
        self, shard_id: str | None = None, *, older_than: dt.timedelta = dt.timedelta(hours=1)
    ) -> dict[str, int]:
        """Remove files of shards that nobody needs.

        These are SSTables in all versions of the table, flushed log entries, and manifests of shards but the newest 64.
        Call `cleanup_old_versions` before, as SSTables stay while any version lacks their rows, and `optimize_indices`,
        as they stay while an index does not cover their rows.

        Parameters
        ----------
        shard_id
            Id of a shard; None for all.
        older_than
            Files that were written in this time stay, for readers that may still use them.

        Returns
        -------
        dict
            ``num_sstables``, ``num_log_entries`` and ``num_manifests``.

        Raises
        ------
        InvalidInputError
            The dataset has no MemWAL or no such shard, or the id is not a UUID.
        CorruptFileError
            A manifest cannot be read.
        """
        from lance_dataset.memwal.collecting import collect_shard

        check_duration("older_than", older_than)
        newest = self.snapshot.newest()
        results = [collect_shard(newest, each, older_than) for each in self._shards(shard_id)]
        return {
            "num_sstables": sum(each.sstables for each in results),
            "num_log_entries": sum(each.entries for each in results),
            "num_manifests": sum(each.manifests for each in results),
        }

    def _shards(self, shard_id: str | None) -> list[str]:
        from lance_dataset.memwal.details import required_details
        from lance_dataset.memwal.places import ShardPlace, checked_shard_id, list_shards
        from lance_dataset.memwal.shard_versions import read_shard

        required_details(self.snapshot.manifest)
        if shard_id is None:
            return list_shards(self.snapshot.store, self.snapshot.root)
        wanted = checked_shard_id(shard_id)
        if read_shard(ShardPlace(self.snapshot.store, self.snapshot.root, wanted)) is None:
            raise InvalidInputError(f"shard {wanted} of {self.snapshot.uri} does not exist")
        return [wanted]


def _checked_names(names: object) -> tuple[str, ...] | None:
    if names is None:
        return None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"maintained_indexes must be a list of names, not {names!r}")
    return tuple(names)


def _spec(
    schema: Schema, bucket: str | None, num_buckets: int | None, identity: str | None, unsharded: bool
) -> ShardingSpec | None:
    from lance_dataset.memwal.sharding import bucket_spec, identity_spec, unsharded_spec

    if (bucket is None) != (num_buckets is None):
        raise InvalidInputError("bucket sharding needs both bucket_column and num_buckets")
    if (bucket is not None) + (identity is not None) + bool(unsharded) > 1:
        raise InvalidInputError("choose one of bucket_column, identity_column and unsharded")
    if bucket is not None and num_buckets is not None:
        return bucket_spec(schema, bucket, checked_integer("num_buckets", num_buckets))
    if identity is not None:
        return identity_spec(schema, identity)
    return unsharded_spec() if unsharded else None
