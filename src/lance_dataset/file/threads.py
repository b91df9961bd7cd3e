"""Worker threads that the process shares."""

from __future__ import annotations

import os

from lance_dataset.io.threads import SharedPool

__all__ = ["cpu_count", "shared_pool"]


def cpu_count() -> int:
    """Processors this process may use; `LANCE_CPU_THREADS` overrides."""
    configured = os.environ.get("LANCE_CPU_THREADS", "")
    if configured.isdigit() and int(configured) > 0:
        return int(configured)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


#: A pool of a thread per processor; work given to it must not wait for other work given to it.
shared_pool = SharedPool("lance", cpu_count)
