"""Writes: new datasets, and appends that are small compared to their commit."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import lance_dataset as lance
from data import DATASETS

from .tables import ROWS, VERSIONS


class Write:
    params = (tuple(ROWS), VERSIONS)
    param_names = ("dataset", "version")
    timeout = 300

    def setup(self, name: str, _version: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="lance-dataset-bench-"))
        self.table = DATASETS[name].table(ROWS[name])

    def teardown(self, _name: str, _version: str) -> None:
        shutil.rmtree(self.directory)

    def time_create(self, _name: str, version: str) -> None:
        lance.write_dataset(self.table, str(self.directory / "t"), mode="overwrite", data_storage_version=version)

    def track_throughput(self, name: str, version: str) -> float:
        rates = []
        for _ in range(5):
            begin = time.perf_counter()
            self.time_create(name, version)
            rates.append(self.table.nbytes / (time.perf_counter() - begin))
        return sorted(rates)[len(rates) // 2]

    track_throughput.unit = "bytes/s"


class Append:
    timeout = 300

    def setup(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="lance-dataset-bench-"))
        self.table = DATASETS["mixed"].table(1_000)
        lance.write_dataset(self.table, str(self.directory / "t"))

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    def time_append(self) -> None:
        lance.write_dataset(self.table, str(self.directory / "t"), mode="append")
