"""Pools of threads that the process shares, one for each kind of work.

Pools are made when they are first used, and start threads only when there is work. A forked child forgets them.
A pool keeps the threads that it has started. Work of `storage_pool`, `read_pool` and `request_pool` waits for no other
work. Work of `job_pool` may wait for work of all pools but `job_pool` itself.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import thread as thread_pools
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from lance_dataset.errors import InvalidInputError

__all__ = [
    "SharedPool",
    "cpu_count",
    "cpu_pool",
    "fetch_pools",
    "job_pool",
    "one_of_many",
    "read_pool",
    "request_pool",
    "storage_pool",
]

#: Threads that read local files which are not mapped.
_READS = 16
#: Threads that wait for requests to cloud stores, unless ``LANCE_IO_THREADS`` says otherwise.
_REQUESTS = 64
#: Threads for fetches, for fetches that these start, and for fetches that those start: windows of a scan or fragments
#: of a take, the columns of each, and the fragments that a column of a window lies in.
_FETCHES = (16, 48, 64)
#: Upper limit of pools whose callers limit themselves. No work must wait for long because others have all threads.
_UNLIMITED = 256


#: True for work of which there is as much at the same time as there are processors.
_is_one_of_many: ContextVar[bool] = ContextVar("is_one_of_many", default=False)


@contextmanager
def one_of_many() -> Iterator[None]:
    """Work on one processor inside of the ``with`` block, because the others do as much at the same time.

    Handing parts of such work to other threads takes time, and memory: allocators keep some for each thread.
    """
    token = _is_one_of_many.set(True)
    try:
        yield
    finally:
        _is_one_of_many.reset(token)


def cpu_count() -> int:
    """Return the number of processors this process may use, 1 in `one_of_many`; `LANCE_CPU_THREADS` overrides it."""
    return 1 if _is_one_of_many.get() else _processors()


def _processors() -> int:
    configured = os.environ.get("LANCE_CPU_THREADS", "")
    if configured.isdigit() and int(configured) > 0:
        return int(configured)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Pool(ThreadPoolExecutor):
    """Pool that works with the threads it has if the system refuses to start more.

    Its threads register themselves for the end of the process. The library does that in the caller, after the start:
    an interrupt in between left a thread that nobody told to end, and the process waited for it forever.
    """

    def __init__(self, size: int, name: str) -> None:
        super().__init__(size, name, initializer=self._register)

    def _register(self) -> None:
        thread_pools._threads_queues[threading.current_thread()] = self._work_queue  # type: ignore[index]  # declared as read-only

    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if self._threads:
                return
            with suppress(queue.Empty):  # the caller gets the error, so nobody waits for this call
                self._work_queue.get_nowait()
            raise


class SharedPool:
    """Pool that is made on first use, and again in a forked child.

    A child has none of its parent's threads. A lock that one of them held may be locked forever.

    Parameters
    ----------
    name
        Prefix of the names of its threads.
    size
        Returns the maximum number of threads; called when the pool is made.
    """

    def __init__(self, name: str, size: Callable[[], int]) -> None:
        self._name = name
        self._size = size
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def __call__(self) -> ThreadPoolExecutor:
        """Return the pool."""
        with self._lock:
            if self._pool is None:
                self._pool = _Pool(self._size(), self._name)
            return self._pool


def _request_threads() -> int:
    text = os.environ.get("LANCE_IO_THREADS", "").strip()
    if not text:
        return _REQUESTS
    if not text.isdecimal() or not int(text):
        raise InvalidInputError(f"LANCE_IO_THREADS must be a number from 1, not {text!r}")
    return int(text)


def _fixed(size: int) -> Callable[[], int]:
    return lambda: size


#: One thread per processor, for work that computes.
cpu_pool = SharedPool("lance", _processors)
#: Threads that read local files which are not mapped.
read_pool = SharedPool("lance-read", _fixed(_READS))
#: Threads that wait for requests to cloud stores.
request_pool = SharedPool("lance-cloud", _request_threads)
#: Threads that write, copy, remove or sync small files. Each call limits how many it uses.
storage_pool = SharedPool("lance-storage", _fixed(_UNLIMITED))
#: Threads for jobs made of other work, such as the tasks of a compaction. Each call limits how many it uses.
job_pool = SharedPool("lance-job", _fixed(_UNLIMITED))
#: Threads for reads that wait for other machines, by depth; see `lance_dataset.threads.waiting`.
fetch_pools = tuple(SharedPool(f"lance-fetch-{depth}", _fixed(size)) for depth, size in enumerate(_FETCHES))
