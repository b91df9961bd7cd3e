"""Datasets on disk for the benchmarks, written once for each run in `setup_cache`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import lance_dataset as lance
from data import DATASETS

#: Small enough for a suite of minutes; `benchmarks/compare.py` measures at full size.
ROWS = {"mixed": 500_000, "vectors": 50_000, "wide": 5_000, "lineitem": 400_000}
VERSIONS = ("legacy", "2.0", "2.1", "2.2")


@dataclass(frozen=True)
class Stored:
    """One dataset of the suite."""

    name: str
    uri: str
    rows: int

    def open(self) -> lance.LanceDataset:
        return lance.dataset(self.uri)


#: Datasets by name and file version.
Tables = dict[tuple[str, str], Stored]


def store(directory: Path) -> Tables:
    """Write every table in every file version."""
    stored = {}
    for name, rows in ROWS.items():
        for version in VERSIONS:
            uri = str(directory / f"{name}-{version}.lance")
            lance.write_dataset(DATASETS[name].reader(rows), uri, data_storage_version=version)
            stored[name, version] = Stored(name, uri, rows)
    return stored
