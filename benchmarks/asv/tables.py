"""Datasets on disk for the benchmarks, written once per run in `setup_cache`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import lance_dataset as lance
from data import DATASETS

#: Small enough for a suite of minutes; `benchmarks/compare.py` measures at full size.
ROWS = {"mixed": 500_000, "vectors": 50_000, "wide": 5_000}


@dataclass(frozen=True)
class Stored:
    """One dataset of the suite."""

    name: str
    uri: str
    rows: int

    def open(self) -> lance.LanceDataset:
        return lance.dataset(self.uri)


def store(directory: Path) -> dict[str, Stored]:
    stored = {}
    for name, rows in ROWS.items():
        uri = str(directory / f"{name}.lance")
        lance.write_dataset(DATASETS[name].reader(rows), uri, data_storage_version="2.0")
        stored[name] = Stored(name, uri, rows)
    return stored
