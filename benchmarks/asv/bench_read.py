"""Scans: whole tables, single columns, batches, filters, and opening."""

from __future__ import annotations

from pathlib import Path

from data import DATASETS

from .tables import ROWS, Stored, store

COLUMNS = tuple(f"{name}.{column}" for name in ROWS for column in DATASETS[name].single_columns)


class Scan:
    params = tuple(ROWS)
    param_names = ("dataset",)
    timeout = 300

    def setup_cache(self) -> dict[str, Stored]:
        return store(Path.cwd())

    def setup(self, stored: dict[str, Stored], name: str) -> None:
        self.stored = stored[name]
        self.dataset = self.stored.open()
        comparison = DATASETS[name].comparison(self.stored.rows)
        self.filter = f"{comparison.column} < {comparison.bound}"

    def time_open_and_count(self, _stored: dict[str, Stored], _name: str) -> None:
        self.stored.open().count_rows()

    def time_table(self, _stored: dict[str, Stored], _name: str) -> None:
        self.dataset.to_table()

    def time_table_after_open(self, _stored: dict[str, Stored], _name: str) -> None:
        self.stored.open().to_table()

    def time_batches(self, _stored: dict[str, Stored], _name: str) -> None:
        for _ in self.dataset.to_batches(batch_size=8_192):
            pass

    def time_filter(self, _stored: dict[str, Stored], _name: str) -> None:
        self.dataset.to_table(filter=self.filter)

    def peakmem_batches(self, _stored: dict[str, Stored], _name: str) -> None:
        for _ in self.dataset.to_batches(batch_size=8_192):
            pass

    def track_throughput(self, _stored: dict[str, Stored], _name: str) -> float:
        from kernels import interleaved

        size = self.dataset.to_table().nbytes
        seconds, _ = interleaved(self.dataset.to_table, lambda: None, rounds=7)
        return size / seconds

    track_throughput.unit = "bytes/s"


class ScanColumn:
    params = COLUMNS
    param_names = ("column",)
    timeout = 300

    def setup_cache(self) -> dict[str, Stored]:
        return store(Path.cwd())

    def setup(self, stored: dict[str, Stored], column: str) -> None:
        name, self.column = column.split(".")
        self.dataset = stored[name].open()

    def time_column(self, _stored: dict[str, Stored], _column: str) -> None:
        self.dataset.to_table(columns=[self.column])
