"""Writer of one shard: `ShardWriter`."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_dataset.api.mem_wal.scanner import LsmScanner, key_of
from lance_dataset.api.mem_wal.shards import ShardSnapshot, tables_of
from lance_dataset.changes.write.input import ReaderLike, as_batches
from lance_dataset.errors import InvalidInputError
from lance_dataset.memwal.input import deletions, rows_to_put
from lance_dataset.memwal.sources import LsmSources, ShardTables, open_sources

if TYPE_CHECKING:
    from lance_dataset.memwal.writing import WriterCore
    from lance_dataset.read.snapshot import Snapshot

__all__ = ["ShardWriter"]


class ShardWriter:
    """Writer of one shard, made by `LanceDataset.mem_wal_writer`. Several threads may use it.

    Rows go to the log of the shard and to a memtable, which is flushed to an SSTable in the background when it is full.
    Use the writer as a context manager, or `close` it. If another writer claims the shard, this one fails.
    """

    def __init__(self, core: WriterCore, snapshot: Snapshot, shard_id: str) -> None:
        self._core = core
        self._snapshot = snapshot
        self._shard_id = shard_id

    def __enter__(self) -> ShardWriter:
        """Return the writer."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the writer."""
        self.close()

    def __repr__(self) -> str:
        return f"ShardWriter({self._shard_id!r})"

    @property
    def shard_id(self) -> str:
        """Id of the shard, as it was given."""
        return self._shard_id

    def put(self, data: ReaderLike, *, schema: pa.Schema | None = None) -> None:
        """Write rows, which replace older rows of the same keys.

        Parameters
        ----------
        data
            Anything that `write_dataset` accepts, with the columns of the table.
        schema
            Schema of the data; required for iterables.

        Raises
        ------
        SchemaError
            The data has other columns or types than the table, or nulls in a column that is not nullable or in the key.
        CommitConflictError
            Another writer has claimed the shard.
        InvalidInputError
            The writer is closed or failed before.
        """
        given, batches = as_batches(data, schema)
        self._core.write(list(rows_to_put(self._core, given, batches)))

    def delete(self, keys: ReaderLike, *, schema: pa.Schema | None = None) -> None:
        """Delete the rows of keys, whether they exist or not.

        Parameters
        ----------
        keys
            Anything that `write_dataset` accepts, with the columns of the primary key; other columns are ignored.
        schema
            Schema of the data; required for iterables.

        Raises
        ------
        InvalidInputError
            The table has no primary key, or the writer is closed or failed before.
        SchemaError
            A column of the key is missing, of another type, or has nulls.
        CommitConflictError
            Another writer has claimed the shard.
        """
        given, batches = as_batches(keys, schema)
        self._core.write(list(deletions(self._core, given, batches)))

    def flush(self) -> None:
        """Flush all rows to an SSTable, and wait for it. Errors are those of `put`."""
        self._core.flush()

    def close(self) -> None:
        """Flush all rows and stop. Do nothing if the writer is closed. Errors are those of `put`."""
        self._core.close()

    def abort(self) -> None:
        """Stop without a flush. The next writer of the shard replays the rows of the log."""
        self._core.abort()

    def stats(self) -> dict[str, int]:
        """Return counts and times of puts, of log entries, of flushes, of waits for flushes, and of the recovery.

        ``put_p50_us`` and ``put_p99_us`` are the microseconds that half of the puts and 99 % of them took at most, a
        quarter too high at worst. `ShardStatus.metrics` sums up the writers of this process, and has those of merges.
        """
        return self._core.counters.shown()

    def memtable_stats(self) -> dict[str, int]:
        """Return numbers of the active memtable, of rows that wait for the log, and of frozen memtables."""
        return self._core.memtable_stats()

    def lsm_scanner(self, shard_snapshots: list[ShardSnapshot] | None = None) -> LsmScanner:
        """Return a scanner of the table, this shard with its memtables, and other shards.

        Parameters
        ----------
        shard_snapshots
            SSTables of other shards. Those of this shard are known to the writer.

        Raises
        ------
        InvalidInputError
            The table has no primary key, or the writer is closed.
        """
        if self._core.is_closed:
            raise InvalidInputError(f"the writer of shard {self._shard_id} is closed")
        key = key_of(self._snapshot)
        others = [each for each in tables_of(shard_snapshots or ()) if each.shard_id != self._core.place.shard_id]

        def opened(filter: str | None) -> LsmSources:
            # First the shard and then the table: what is merged meanwhile is in both, and not in neither.
            state = self._core.state()
            mine = ShardTables.of(self._core.place.shard_id, state.sstables)
            self._snapshot = self._snapshot.newest()
            return open_sources(self._snapshot, key, [mine, *others], state.memtables, filter)

        self._snapshot = self._snapshot.newest()
        return LsmScanner(opened, self._snapshot.manifest.schema.storage_arrow)
