"""Worker threads that the process shares."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

__all__ = ["cpu_count", "shared_pool"]

_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def cpu_count() -> int:
    """Processors this process may use; `LANCE_CPU_THREADS` overrides."""
    configured = os.environ.get("LANCE_CPU_THREADS", "")
    if configured.isdigit() and int(configured) > 0:
        return int(configured)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def shared_pool() -> ThreadPoolExecutor:
    """A pool of a thread per processor; work given to it must not wait for other work given to it."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(cpu_count(), thread_name_prefix="lance")
        return _pool


def _forget_pool() -> None:
    """A forked child has none of its parent's threads."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
