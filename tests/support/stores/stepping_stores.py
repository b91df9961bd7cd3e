"""Stores that stop, fail or count at every step."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from lance_dataset.errors import (
    UnsupportedError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.operations import Append
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import read_latest
from support.tables.bare_tables import fragment

ROOT = "/dir/t"
STAGED = "18446744073709551613.manifest-2f1ee4f2-1d3c-4b3e-9d47-0d6a1d7d1b33"


class PlainStore(MemoryStore):
    """Store without an atomic `put_if_absent`."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        raise UnsupportedError("this store has no conditional put")


def append(store: ObjectStore, rows: int = 10, root: str = ROOT) -> int:
    latest = read_latest(store, root)
    assert latest is not None
    return commit_transaction(store, root, Transaction(latest.version, Append((fragment(rows),)))).version


def rows(store: ObjectStore, root: str = ROOT) -> list[int]:
    latest = read_latest(store, root)
    assert latest is not None
    return [each.physical_rows for each in latest.fragments]


def names(store: ObjectStore, root: str = ROOT) -> list[str]:
    return sorted(name for name in store.list_names(f"{root}/_versions") if ".manifest" in name)


class Lock:
    """Lock for threads that records its use."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.log: list[object] = []

    @contextlib.contextmanager
    def __call__(self, version: int) -> Iterator[None]:
        with self.lock:
            self.log.append(version)
            try:
                yield
            except BaseException as error:
                self.log.append(type(error))
                raise

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Lock, ()
