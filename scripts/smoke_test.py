"""A round trip with the installed package; `make wheel` runs it in a clean environment."""

from __future__ import annotations

import tempfile
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa

import lance_dataset as lance


def main() -> None:
    table = pa.table(
        {
            "id": pa.array(range(1000), pa.int64()),
            "name": pa.array([None if i % 7 == 0 else f"row {i}" for i in range(1000)]),
            "vector": pa.array([[i, i + 0.5] for i in range(1000)], pa.list_(pa.float32(), 2)),
        }
    )
    with tempfile.TemporaryDirectory() as directory:
        uri = str(Path(directory, "smoke.lance"))
        lance.write_dataset(table, uri)
        lance.write_dataset(table, uri, mode="append")
        dataset = lance.dataset(uri)
        read = dataset.to_table()
        if not read.equals(pa.concat_tables([table, table])):
            raise SystemExit("the table read differs from the table written")
        if dataset.take([5, 1500]).column("id").to_pylist() != [5, 500]:
            raise SystemExit("take returned the wrong rows")
    print(f"lance-dataset {version('lance-dataset')} from {Path(lance.__file__).parent}: round trip fine")


if __name__ == "__main__":
    main()
