"""Writers in processes of their own, which are killed while they write."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa

import lance_dataset

__all__ = ["Work", "acknowledged_until_killed"]

#: Name of a method of a writer, and its rows; None for a flush.
Work = tuple[str, pa.Table | None]
#: Seconds after which a child counts as stuck.
_PATIENCE = 120
#: Modules that a writer imports when it is first used, so that not each child does.
_LAZY = ("lance_dataset.api.dataset.dataset", "lance_dataset.api.mem_wal.writer", "lance_dataset.memwal.opening")


def acknowledged_until_killed(path: Path, shard: str, size: int, work: Sequence[Work], stop: int, delay: float) -> int:
    """Let a child open a writer and work, and kill it some time after a number of calls.

    Parameters
    ----------
    path
        The table.
    shard
        The shard.
    size
        Rows of a memtable.
    work
        Calls of the child.
    stop
        Number of acknowledged calls to wait for.
    delay
        Seconds from then to the kill.

    Returns
    -------
    int
        Number of calls that the child has acknowledged.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *_LAZY])
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_write, args=(there, str(path), shard, size, list(work)))
    child.start()
    there.close()
    done = -1  # the first answer comes when the writer is open
    try:
        while done < min(stop, len(work)):
            assert here.poll(_PATIENCE), "the child is stuck"
            done = here.recv()
        time.sleep(delay)
    finally:
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
    try:
        while here.poll():
            done = here.recv()
    except EOFError:
        pass
    here.close()
    return done


def _write(answers: Connection, path: str, shard: str, size: int, work: list[Work]) -> None:
    options = {"local_fsync": "false"}  # a kill does not take away what the system has
    writer = lance_dataset.dataset(path, storage_options=options).mem_wal_writer(shard, max_memtable_rows=size)
    answers.send(0)
    for number, (name, rows) in enumerate(work, 1):
        call = getattr(writer, name)
        call() if rows is None else call(rows)
        answers.send(number)
    signal.pause()
