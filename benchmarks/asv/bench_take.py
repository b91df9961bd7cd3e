"""Random access by row number."""

from __future__ import annotations

from pathlib import Path

import numpy as np

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
