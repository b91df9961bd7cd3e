"""Tables with old versions and files to clean up."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import lance_dataset as lance
from lance_dataset.io.local import LocalStore
from lance_dataset.table.cleanup.file_usage import version_files
from lance_dataset.table.manifest import read_manifest
from lance_dataset.table.naming import named_path
from lance_dataset.table.versions import list_versions
from support.tables.over_store import dataset_over

ROWS = pa.table({"x": range(10)})
ALL = {"older_than": dt.timedelta(0)}
Hook = Callable[[str, str], None]


class HookedStore(LocalStore):
    """Store that calls a function before each change."""

    def __init__(self, hook: Hook) -> None:
        super().__init__(fsync=False)
        self.hook = hook

    def delete(self, path: str) -> None:
        self.hook("delete", path)
        super().delete(path)

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.hook("put", path)
        super().put(path, data, durable=durable)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.hook("put", path)
        super().put_if_absent(path, data)

    def sync(self, prefix: str) -> None:
        self.hook("sync", prefix)
        super().sync(prefix)


def hooked(path: str, hook: Hook, version: int | None = None) -> lance.LanceDataset:
    return dataset_over(HookedStore(hook), path, version)


def versions(path: str) -> list[int]:
    return [name.version for name in list_versions(LocalStore(), path)]


def check_complete(path: str) -> None:
    """Assert that every listed version has its files."""
    for name in list_versions(LocalStore(), path):
        manifest = read_manifest(LocalStore(), named_path(path, name))
        used = version_files(manifest)
        for file in (*used.own, *(f"data/{data.decode()}" for data in used.data)):
            assert os.path.exists(f"{path}/{file}"), (name.version, file)
        lance.dataset(path, version=name.version).to_table()


def files(path: str) -> set[str]:
    return {str(file.relative_to(path)) for file in Path(path).rglob("*") if file.is_file()}
