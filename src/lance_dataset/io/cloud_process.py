"""The client library runs threads of its own, which a forked process does not have."""

from __future__ import annotations

import os

from lance_dataset.errors import StorageError

__all__ = ["check_process"]

_first_user: int | None = None


def check_process(uri: str) -> None:
    """Refuse in a forked child what would wait forever: any request, if its parent made one before it forked.

    Raises
    ------
    StorageError
        This process is such a child.
    """
    global _first_user
    if _first_user is None:
        _first_user = os.getpid()
    elif _first_user != os.getpid():
        raise StorageError(
            f"{uri}: this process was forked from one that uses cloud stores, so it cannot use them; start it with "
            "multiprocessing.get_context('spawn') or 'forkserver', or fork before the first use"
        )
