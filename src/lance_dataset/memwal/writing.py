"""Writers of shards: rows go to the log and to a memtable, which is flushed in the background."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lance_dataset.errors import CommitConflictError, InvalidInputError, LanceError
from lance_dataset.memwal.counters import ShardCounters, counters_of
from lance_dataset.memwal.flushing import write_sstable
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.log import ShardLog
from lance_dataset.memwal.log_entries import encode_entry
from lance_dataset.memwal.maintained import SsTableIndices
from lance_dataset.memwal.memtable import Memtable, MemtableLimits
from lance_dataset.memwal.options import WriterOptions
from lance_dataset.memwal.places import ShardPlace
from lance_dataset.memwal.schemas import log_schema, sstable_schema
from lance_dataset.memwal.shard_manifest import ShardManifest, SsTable
from lance_dataset.memwal.shard_versions import update_shard
from lance_dataset.table.manifest import Manifest

__all__ = ["ShardState", "WriterCore"]

_logger = logging.getLogger(__name__)
#: Attempts to flush a memtable before puts and `close` report the failure, and seconds between them.
_FLUSH_ATTEMPTS = 4
_FLUSH_DELAY = 0.1
#: Larger memtables and puts could have more text in a column than one array of Arrow holds.
_MAX_MEMTABLE_BYTES, _MAX_PART_BYTES = 1 << 30, 1 << 29


@dataclass
class _Pending:
    """Rows of a put that are not in the log yet."""

    memtable: Memtable
    batches: Sequence[pa.RecordBatch]
    num_bytes: int
    done: bool = False


@dataclass(frozen=True)
class ShardState:
    """State of a shard as its writer knows it at one moment.

    Attributes
    ----------
    memtables
        Memtables, newest first.
    sstables
        SSTables, oldest first.
    """

    memtables: tuple[Memtable, ...]
    sstables: tuple[SsTable, ...]


class WriterCore:
    """Owner of a shard. All methods may be called from several threads.

    Parameters
    ----------
    place
        The shard.
    base
        Version of the table whose columns the rows have.
    key
        Primary key of the table.
    options
        Options.
    manifest
        State of the shard, which the writer has claimed.
    log
        End of the log.
    indices
        Indices that SSTables get.
    """

    def __init__(
        self,
        place: ShardPlace,
        base: Manifest,
        key: KeyColumns,
        options: WriterOptions,
        manifest: ShardManifest,
        log: ShardLog,
        indices: SsTableIndices,
    ) -> None:
        self.place, self.base, self.key, self.options = place, base, key, options
        self.counters = ShardCounters(counters_of(place.uri))
        self.row_schema = sstable_schema(base.schema, key, base.max_field_id).storage_arrow
        self._indices = indices
        self._names = {field.id: field.name for field in base.schema.fields}
        self._log, self._log_schema = log, log_schema(base.schema, key)
        self._limits = MemtableLimits(
            options.max_memtable_rows,
            min(options.max_memtable_size, options.max_unflushed_memtable_bytes, _MAX_MEMTABLE_BYTES),
            options.max_memtable_batches,
        )
        self._manifest = manifest
        self._active = self.new_memtable(manifest.generation)
        self._frozen: deque[Memtable] = deque()  # oldest first
        self._pending: deque[_Pending] = deque()
        self._pending_bytes = 0
        self._state = threading.Condition()
        self._appending = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}
        self._closed = False
        self._stopped = False
        self._broken: BaseException | None = None
        self._flush_error: BaseException | None = None
        self._process = os.getpid()
        self._told = time.monotonic()

    # -- writing -------------------------------------------------------------------------------------------------

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Add rows, in the schema of `row_schema`. If puts are durable, they are in the log on return.

        Raises
        ------
        CommitConflictError
            Another writer owns the shard.
        InvalidInputError
            The writer is closed, or belongs to another process.
        LanceError, OSError
            The store failed. The rows may be in the log: a new writer tells.
        """
        self._check_process()
        with self.counters.timed("put"):
            last: _Pending | None = None
            size = 0
            for part in _parts(batches, self.options):
                self._wait_for_room()
                last = self._enqueue(part)
                size += last.num_bytes
            if last is None:
                with self._state:
                    self._check_usable()
            elif self.options.durable_write or self._pending_bytes >= self.options.max_wal_buffer_size:
                self._log_until(last)
        self.counters.add("put_rows", sum(batch.num_rows for batch in batches))
        self.counters.add("put_bytes", size)
        self._tell_statistics()

    def _tell_statistics(self) -> None:
        pause, now = self.options.stats_log_interval_ms / 1000, time.monotonic()
        if pause and now - self._told > pause:
            self._told = now
            _logger.info("shard %s: %s", self.place.shard_id, self.counters.shown())

    def _enqueue(self, batches: Sequence[pa.RecordBatch]) -> _Pending:
        rows = sum(batch.num_rows for batch in batches)
        with self._state:
            self._check_usable()
            if not self._active.has_room(rows, self._limits):
                self._freeze()
            memtable = self._active
            memtable.reserve(batches)
            pending = _Pending(memtable, batches, sum(batch.nbytes for batch in batches))
            self._pending.append(pending)
            self._pending_bytes += pending.num_bytes
            if not self.options.durable_write:
                memtable.add(batches)
                self._run("log", self._log_in_time)
            if not memtable.has_room(1, self._limits):
                self._freeze()
            return pending

    def _check_process(self) -> None:
        """Raise InvalidInputError in a forked child, where a thread that is not there may hold the locks forever."""
        if self._process != os.getpid():
            raise InvalidInputError("the writer belongs to another process; open one in each process")

    def _check_usable(self) -> None:
        if self._broken is not None:
            raise self._error(self._broken)
        if self._closed:
            raise InvalidInputError(f"the writer of shard {self.place.shard_id} is closed")

    def _error(self, cause: BaseException) -> BaseException:
        """Return an error of its own for each caller."""
        if isinstance(cause, CommitConflictError):
            return CommitConflictError(str(cause), retryable=cause.retryable)
        made = InvalidInputError(
            f"the writer of shard {self.place.shard_id} failed before and must not go on: {cause}; open a new one, "
            "which finds what is in the log"
        )
        made.__cause__ = cause
        return made

    def _wait_for_room(self) -> None:
        """Wait while unflushed memtables have too many bytes."""
        with self._state:
            if self._has_room():
                return
            with self.counters.timed("backpressure"):
                self._wait()

    def _has_room(self) -> bool:
        return not self._frozen or self._unflushed() < self.options.max_unflushed_memtable_bytes

    def _wait(self) -> None:
        """Wait for room. The caller holds the lock."""
        told = started = time.monotonic()
        while not self._has_room():
            self._check_usable()
            if self._flush_error is not None:
                failed, self._flush_error = self._flush_error, None
                self._run("flush", self._flush_in_turn)  # the next put finds room if the store works again
                raise failed
            self._state.wait(0.1)
            pause = self.options.backpressure_log_interval_ms / 1000
            if pause and time.monotonic() - told > pause:
                told = time.monotonic()
                _logger.warning("shard %s: waiting for flushes since %.0f s", self.place.shard_id, told - started)

    def _unflushed(self) -> int:
        return self._active.num_bytes + sum(memtable.num_bytes for memtable in self._frozen)

    # -- log -----------------------------------------------------------------------------------------------------

    def _log_until(self, pending: _Pending) -> None:
        """Write entries until rows are in the log. One of the waiting threads writes for all."""
        while not pending.done:
            with self._appending:
                if not pending.done:
                    self._log_next()

    def _log_next(self) -> None:
        """Write the next entry of the log: as many rows as fit, all of one memtable."""
        with self._state:
            if self._broken is not None:
                raise self._error(self._broken)
            if self._stopped:
                raise InvalidInputError(f"the writer of shard {self.place.shard_id} was stopped; rows were not logged")
            group: list[_Pending] = []
            size = 0
            for each in self._pending:
                size += each.num_bytes
                if group and (each.memtable is not group[0].memtable or size > self.options.max_wal_buffer_size):
                    break
                group.append(each)
        if not group:
            return
        memtable = group[0].memtable
        batches = [batch for each in group for batch in each.batches]
        try:
            with self.counters.timed("wal_flush"):
                data = encode_entry(self._log.epoch, memtable.generation, self._log_schema, batches)
                position = self._log.append(data)
        except BaseException as error:
            with self._state:
                self._broken = error
                self._state.notify_all()
            raise
        self.counters.add("wal_flush_bytes", data.size)
        with self._state:
            memtable.note(position)
            if self.options.durable_write:
                memtable.add(batches)
            for each in group:
                each.done = True
                self._pending.popleft()
                self._pending_bytes -= each.num_bytes
            self._state.notify_all()

    def _log_in_time(self) -> None:
        """Write waiting rows to the log, again and again; runs in a thread."""
        while True:
            with self._state:
                while not self._pending and not self._stopped:
                    self._state.wait()
                if self._stopped or self._broken is not None:
                    return
                deadline = time.monotonic() + self.options.max_wal_flush_interval_ms / 1000
                while not self._stopped and (left := deadline - time.monotonic()) > 0:
                    self._state.wait(min(left, threading.TIMEOUT_MAX))
                if self._stopped or not self._pending:
                    continue
                last = self._pending[-1]
            try:
                self._log_until(last)
            except (LanceError, OSError) as error:
                _logger.error("shard %s: rows were not logged: %s", self.place.shard_id, error)
                return

    # -- flushes -------------------------------------------------------------------------------------------------

    def new_memtable(self, generation: int) -> Memtable:
        """Return an empty memtable."""
        return Memtable(generation, self.row_schema, self.key, self._names)

    def _freeze(self) -> None:
        """Start a new memtable. The caller holds the lock."""
        self._frozen.append(self._active)
        self._active = self.new_memtable(self._active.generation + 1)
        self._flush_error = None
        self._run("flush", self._flush_in_turn)
        self._state.notify_all()

    def _run(self, name: str, work: object) -> None:
        """Start a thread unless it runs. The caller holds the lock."""
        if name not in self._threads:
            thread = threading.Thread(target=work, name=f"lance-memwal-{name}", daemon=True)  # type: ignore[arg-type]
            self._threads[name] = thread
            thread.start()

    def _flush_in_turn(self) -> None:
        """Flush frozen memtables, oldest first; runs in a thread, which ends when there is none."""
        while True:
            with self._state:
                if not self._frozen or self._broken is not None or self._stopped or self._flush_error is not None:
                    self._threads.pop("flush", None)  # a thread that has decided to end takes no more work
                    return
                memtable = self._frozen[0]
            self._flushed(memtable)

    def _flushed(self, memtable: Memtable) -> None:
        """Flush the oldest memtable. Keep the error if that fails repeatedly."""
        for attempt in range(_FLUSH_ATTEMPTS):
            try:
                self._flush(memtable)
                return
            except BaseException as error:
                self.counters.add("memtable_flush_failures")
                with self._state:
                    final = attempt + 1 == _FLUSH_ATTEMPTS or not isinstance(error, LanceError | OSError)
                    if isinstance(error, CommitConflictError) and not error.retryable:
                        self._broken = error
                    if final or self._broken is not None:
                        self._flush_error = error
                        self._state.notify_all()
                        return
                _logger.warning("shard %s: flush failed, trying again: %s", self.place.shard_id, error)
                time.sleep(_FLUSH_DELAY * 2**attempt)

    def _flush(self, memtable: Memtable) -> None:
        while True:
            with self._state:
                waiting = next((each for each in self._pending if each.memtable is memtable), None)
            if waiting is None:
                break
            self._log_until(waiting)
        with self.counters.timed("memtable_flush"):
            self.publish(memtable)
        self.counters.add("memtable_flush_rows", memtable.rows)

    def publish(
        self, memtable: Memtable, noted: Callable[[ShardManifest], ShardManifest] = lambda known: known
    ) -> None:
        """Write a memtable as an SSTable, and name it in the manifest of the shard.

        Parameters
        ----------
        memtable
            The memtable.
        noted
            Returns the manifest with what is to be noted with the SSTable.
        """
        table = write_sstable(self.place, memtable, self.base, self._indices)

        def change(known: ShardManifest) -> ShardManifest:
            if known.generation > memtable.generation:
                return known  # an earlier attempt was published, but its answer was lost
            return replace(
                noted(known),
                generation=memtable.generation + 1,
                replay_after=max(memtable.last_position, known.replay_after),
                last_seen=max(memtable.last_position, known.last_seen),
                sstables=(*known.sstables, table),
            )

        made = update_shard(self.place, self._log.epoch, change)
        with self._state:
            self._manifest = made
            if self._frozen and self._frozen[0] is memtable:
                self._frozen.popleft()
            self._state.notify_all()

    def flush(self) -> None:
        """Flush all rows, and wait for it.

        Raises
        ------
        CommitConflictError
            Another writer owns the shard.
        LanceError, OSError
            The store failed. Durable rows are safe in the log.
        """
        self._check_process()
        with self._state:
            self._check_usable()
        self._flush_all()

    def _flush_all(self) -> None:
        """Flush the rows of now; those that other threads put meanwhile are not waited for."""
        with self._state:
            last = self._pending[-1] if self._pending else None
        if last is not None:
            self._log_until(last)
        with self._state:
            if self._active.batches:
                self._freeze()
            elif self._frozen:
                self._flush_error = None
                self._run("flush", self._flush_in_turn)
            end = self._active.generation
            while self._waits_for(end) and self._flush_error is None and self._broken is None:
                self._state.wait(0.1)
                if self._waits_for(end) and self._flush_error is None:
                    self._run("flush", self._flush_in_turn)
            if self._broken is not None:
                raise self._error(self._broken)
            if self._flush_error is not None and self._waits_for(end):
                raise self._flush_error

    def _waits_for(self, end: int) -> bool:
        """Return True if a memtable before a generation is to be flushed. The caller holds the lock."""
        return bool(self._frozen) and self._frozen[0].generation < end

    # -- end -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Flush all rows and stop. Errors are those of `flush`; durable rows stay in the log. Do nothing again."""
        if self._process != os.getpid():
            return
        with self._state:
            if self._closed:
                return
            self._closed = True
        try:
            if self._broken is not None:
                raise self._error(self._broken)
            self._flush_all()
        finally:
            self._stop()

    def abort(self) -> None:
        """Stop without a flush. Rows of the log are replayed by the next writer, others are lost."""
        if self._process != os.getpid():
            return
        with self._state:
            self._closed = True
        self._stop()

    def _stop(self) -> None:
        with self._state:
            self._stopped = True
            self._state.notify_all()
        for thread in list(self._threads.values()):
            if thread is not threading.current_thread():
                thread.join()

    # -- state ---------------------------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """True if no more rows are accepted."""
        return self._closed

    def state(self) -> ShardState:
        """Return the SSTables of this moment, and memtables to which no rows are added."""
        self._check_process()
        with self._state:
            memtables = (self._active, *reversed(self._frozen))
            sstables = self._manifest.sstables
        return ShardState(tuple(memtable.as_of_now() for memtable in memtables), sstables)

    def continue_with(self, memtable: Memtable) -> None:
        """Use a memtable with rows of the log, before the first put."""
        with self._state:
            self._active = memtable

    def memtable_stats(self) -> dict[str, int]:
        """Return numbers of the active memtable, of rows that wait for the log, and of frozen memtables."""
        self._check_process()
        with self._state:
            active, waiting = self._active, list(self._pending)
            frozen = sum(memtable.num_bytes for memtable in self._frozen)
            pending = sum(len(each.batches) for each in waiting if each.memtable is active)
            return {
                "row_count": active.rows,
                "batch_count": active.batches,
                "estimated_size_bytes": active.num_bytes,
                "index_bytes": 0,
                "generation": active.generation,
                "max_buffered_batch_position": max(active.batches - 1, 0),
                "durable_batch_count": active.batches - pending,
                "global_offset": 0,
                "pending_wal_start_batch_position": active.batches - pending,
                "pending_wal_end_batch_position": active.batches,
                "pending_wal_batch_count": sum(len(each.batches) for each in waiting),
                "pending_wal_row_count": sum(batch.num_rows for each in waiting for batch in each.batches),
                "pending_wal_estimated_bytes": self._pending_bytes,
                "frozen_count": len(self._frozen),
                "frozen_bytes": frozen,
                "grace_bytes": 0,
                "retained_bytes": active.num_bytes + frozen,
            }


def _parts(batches: Sequence[pa.RecordBatch], options: WriterOptions) -> list[list[pa.RecordBatch]]:
    """Cut the rows of a put into parts that are logged one by one."""
    parts: list[list[pa.RecordBatch]] = []
    rows = size = 0
    most = min(options.max_wal_buffer_size, _MAX_PART_BYTES)
    for batch in batches:
        step = max(min(options.max_memtable_rows, _rows_of(batch, most)), 1)
        for start in range(0, batch.num_rows, step):
            piece = batch.slice(start, step)
            rows, size = rows + piece.num_rows, size + piece.nbytes
            if not parts or rows > options.max_memtable_rows or size > most:
                parts.append([])
                rows, size = piece.num_rows, piece.nbytes
            parts[-1].append(piece)
    return parts


def _rows_of(batch: pa.RecordBatch, num_bytes: int) -> int:
    return batch.num_rows if batch.nbytes <= num_bytes else num_bytes * batch.num_rows // batch.nbytes
