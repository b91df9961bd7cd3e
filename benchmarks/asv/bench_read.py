"""Scans: whole tables, single columns, batches, filters, and opening."""

from __future__ import annotations

from pathlib import Path

from data import DATASETS

from .tables import ROWS, VERSIONS, Tables, store

COLUMNS = tuple(f"{name}.{column}" for name in ROWS for column in DATASETS[name].single_columns)


class Scan:
    params = (tuple(ROWS), VERSIONS)
    param_names = ("dataset", "version")
    timeout = 300

    def setup_cache(self) -> Tables:
        return store(Path.cwd())

    def setup(self, stored: Tables, name: str, version: str) -> None:
        self.stored = stored[name, version]
        self.dataset = self.stored.open()
        comparison = DATASETS[name].comparison(self.stored.rows)
        self.filter = f"{comparison.column} < {comparison.bound}"

    def time_open_and_count(self, _stored: Tables, _name: str, _version: str) -> None:
        self.stored.open().count_rows()

    def time_table(self, _stored: Tables, _name: str, _version: str) -> None:
        self.dataset.to_table()

    def time_table_after_open(self, _stored: Tables, _name: str, _version: str) -> None:
        self.stored.open().to_table()

    def time_batches(self, _stored: Tables, _name: str, _version: str) -> None:
        for _ in self.dataset.to_batches(batch_size=8_192):
            pass

    def time_filter(self, _stored: Tables, _name: str, _version: str) -> None:
        self.dataset.to_table(filter=self.filter)

    def peakmem_batches(self, _stored: Tables, _name: str, _version: str) -> None:
        for _ in self.dataset.to_batches(batch_size=8_192):
            pass

    def track_throughput(self, _stored: Tables, _name: str, _version: str) -> float:
        from kernels import interleaved

        size = self.dataset.to_table().nbytes
        seconds, _ = interleaved(self.dataset.to_table, lambda: None, rounds=7)
        return size / seconds

    track_throughput.unit = "bytes/s"


class ScanColumn:
    params = (COLUMNS, VERSIONS)
    param_names = ("column", "version")
    timeout = 300

    def setup_cache(self) -> Tables:
        return store(Path.cwd())

    def setup(self, stored: Tables, column: str, version: str) -> None:
        name, self.column = column.split(".")
        self.dataset = stored[name, version].open()

    def time_column(self, _stored: Tables, _column: str, _version: str) -> None:
        self.dataset.to_table(columns=[self.column])
