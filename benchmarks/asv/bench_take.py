"""Random access by row number."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pyarrow as pa

import lance_dataset

from .tables import ROWS, VERSIONS, Tables, store

ORDERS = ("sorted", "shuffled")


class Take:
    params = (tuple(ROWS), VERSIONS, (1, 100, 1_000), ORDERS)
    param_names = ("dataset", "version", "rows", "order")
    timeout = 300

    def setup_cache(self) -> Tables:
        return store(Path.cwd())

    def setup(self, stored: Tables, name: str, version: str, count: int, order: str) -> None:
        self.dataset = stored[name, version].open()
        rows = np.random.default_rng(count).choice(stored[name, version].rows, count, replace=False)
        self.rows = (np.sort(rows) if order == "sorted" else rows).tolist()
        self.dataset.take(self.rows)

    def time_take(self, _stored: Tables, _name: str, _version: str, _count: int, _order: str) -> None:
        self.dataset.take(self.rows)


class TakeColumn:
    params = (("id", "i32", "text", "nullable", "list"), VERSIONS)
    param_names = ("column", "version")
    timeout = 300

    def setup_cache(self) -> Tables:
        return store(Path.cwd())

    def setup(self, stored: Tables, column: str, version: str) -> None:
        table = stored["mixed", version]
        self.dataset = table.open()
        self.rows = np.random.default_rng(1).integers(0, table.rows, 1_000).tolist()
        self.dataset.take(self.rows, columns=[column])

    def time_take(self, _stored: Tables, column: str, _version: str) -> None:
        self.dataset.take(self.rows, columns=[column])


class TakeFromThreads:
    """Single rows read from many threads in parallel."""

    params = (("mixed", "vectors"), VERSIONS)
    param_names = ("dataset", "version")
    timeout = 300
    threads = 8

    def setup_cache(self) -> Tables:
        return store(Path.cwd())

    def setup(self, stored: Tables, name: str, version: str) -> None:
        self.dataset = stored[name, version].open()
        rows = np.random.default_rng(2).integers(0, stored[name, version].rows, 64)
        self.rows = [[int(row)] for row in rows]
        for row in self.rows:
            self.dataset.take(row)

    def time_take(self, _stored: Tables, _name: str, _version: str) -> None:
        workers = [threading.Thread(target=self.work, args=(number,)) for number in range(self.threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def work(self, number: int) -> None:
        for turn in range(100):
            self.dataset.take(self.rows[(31 * number + turn) % len(self.rows)])


class TakeFromFragments:
    """Rows of many small fragments, some of them deleted."""

    params = ("cold", "warm")
    param_names = ("files",)
    timeout = 300
    fragments, fragment_rows = 500, 200

    def setup_cache(self) -> str:
        rows = self.fragments * self.fragment_rows
        names = pa.array([f"name {row % 9999}" for row in range(rows)])
        table = pa.table({"id": np.arange(rows), "x": np.random.default_rng(0).random(rows), "name": names})
        path = str(Path.cwd() / "fragments.lance")
        dataset = lance_dataset.write_dataset(table, path, max_rows_per_file=self.fragment_rows)
        dataset.delete("id % 10 = 3")
        return path

    def setup(self, path: str, _files: str) -> None:
        self.dataset = lance_dataset.dataset(path)
        self.rows = np.random.default_rng(1).choice(self.dataset.count_rows(), 1_000, replace=False).tolist()
        self.dataset.take(self.rows)

    def time_take(self, path: str, files: str) -> None:
        dataset = lance_dataset.dataset(path) if files == "cold" else self.dataset
        dataset.take(self.rows)
