"""Random access by row number."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .tables import ROWS, Stored, store

ORDERS = ("sorted", "shuffled")


class Take:
    params = (tuple(ROWS), (1, 100, 1_000), ORDERS)
    param_names = ("dataset", "rows", "order")
    timeout = 300

    def setup_cache(self) -> dict[str, Stored]:
        return store(Path.cwd())

    def setup(self, stored: dict[str, Stored], name: str, count: int, order: str) -> None:
        self.dataset = stored[name].open()
        rows = np.random.default_rng(count).choice(stored[name].rows, count, replace=False)
        self.rows = (np.sort(rows) if order == "sorted" else rows).tolist()
        self.dataset.take(self.rows)

    def time_take(self, _stored: dict[str, Stored], _name: str, _count: int, _order: str) -> None:
        self.dataset.take(self.rows)


class TakeColumn:
    params = ("id", "i32", "text", "nullable", "list")
    param_names = ("column",)
    timeout = 300

    def setup_cache(self) -> dict[str, Stored]:
        return store(Path.cwd())

    def setup(self, stored: dict[str, Stored], column: str) -> None:
        self.dataset = stored["mixed"].open()
        self.rows = np.random.default_rng(1).integers(0, stored["mixed"].rows, 1_000).tolist()
        self.dataset.take(self.rows, columns=[column])

    def time_take(self, _stored: dict[str, Stored], column: str) -> None:
        self.dataset.take(self.rows, columns=[column])
