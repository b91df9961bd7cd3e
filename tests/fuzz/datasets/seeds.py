"""Small datasets to damage: fixtures of all releases, and tables with every kind of file, written by both libraries."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["build", "seeds"]

_FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "datasets"
_ROWS = 300


def seeds(folder: Path) -> dict[str, Path]:
    """Return the datasets in a folder that `build` filled, by name."""
    return {path.stem: path for path in sorted(folder.glob("*.lance"))}


def build(folder: Path, *, only_fixtures: bool = False) -> None:
    """Write the datasets. Takes some ten seconds; loads both libraries, so run it in a process of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(_FIXTURES.glob("*/*.lance")):
        shutil.copytree(path, folder / f"{path.parent.name}-{path.stem}.lance")
    if only_fixtures:
        return
    import lance

    import lance_dataset

    for version in ("2.0", "2.1", "2.2", "2.3"):
        _changed(lance_dataset, folder / f"ours-{version}.lance", version)
    _changed(lance, folder / "reference-2.1.lance", "2.1")
    _changed(lance_dataset, folder / "stable.lance", "2.1", enable_stable_row_ids=True)
    _blobs(lance_dataset, folder / "blobs.lance")
    for name, kinds in _INDICES.items():
        _indexed(lance, folder / f"index-{name}.lance", kinds)


def _table(count: int, start: int = 0) -> pa.Table:
    ids = list(range(start, start + count))
    words = [("red", "green", "blue", "a longer colour")[each % 4] for each in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": pa.array([None if each % 11 == 0 else f"{words[each % 4]} {each} " * (each % 5) for each in ids]),
            "word": pa.array(words).dictionary_encode(),
            "list": pa.array([None if each % 7 == 0 else list(range(each % 4)) for each in ids]),
            "struct": pa.array([{"x": float(each), "y": [str(each)] * (each % 3)} for each in ids]),
            "flag": pa.array([None if each % 3 == 0 else each % 2 == 0 for each in ids]),
            "vector": pa.FixedSizeListArray.from_arrays(
                pa.array(np.random.default_rng(start).random(count * 8, dtype=np.float32)), 8
            ),
        }
    )


def _changed(library: Any, path: Path, version: str, **options: Any) -> None:
    """Write a table with several versions, both kinds of deletion files, tags, branches, a clone and settings."""
    dataset = library.write_dataset(_table(_ROWS), path, data_storage_version=version, max_rows_per_file=100, **options)
    dataset.delete("id = 7")
    dataset.delete("id >= 100 and id % 3 < 2")
    dataset = library.write_dataset(_table(50, 1000), path, mode="append")
    dataset.update({"text": "'changed'"}, where="id = 20")
    dataset.tags.create("first", 1)
    dataset.add_columns({"more": "id * 2"})
    dataset.update_config({"setting": "value"})
    branch = dataset.create_branch("side")
    library.write_dataset(_table(20, 2000), branch, mode="append")
    dataset.tags.create("on-side", ("side", None))
    dataset.shallow_clone(str(path.with_name(path.stem + "-clone.lance")), dataset.version)
    library.dataset(path).optimize.compact_files(target_rows_per_fragment=120)


def _blobs(library: Any, path: Path) -> None:
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = [bytes([each]) * (each * 100) for each in range(40)]
    schema = pa.schema([pa.field("id", pa.int64()), field])
    table = pa.table([pa.array(range(40), pa.int64()), pa.array(values, pa.large_binary())], schema=schema)
    library.write_dataset(table, path, data_storage_version="2.1")


_INDICES: dict[str, Callable[[Any], None]] = {
    "btree": lambda dataset: dataset.create_scalar_index("id", "BTREE"),
    "bitmap": lambda dataset: dataset.create_scalar_index("flag", "BITMAP"),
    "labels": lambda dataset: dataset.create_scalar_index("list", "LABEL_LIST"),
    "ngram": lambda dataset: dataset.create_scalar_index("text", "NGRAM"),
    "zones": lambda dataset: dataset.create_scalar_index("id", "ZONEMAP"),
    "bloom": lambda dataset: dataset.create_scalar_index("id", "BLOOMFILTER"),
    "inverted": lambda dataset: dataset.create_scalar_index("text", "INVERTED", with_position=True),
    "ivf": lambda dataset: dataset.create_index("vector", "IVF_FLAT", num_partitions=2),
    "pq": lambda dataset: dataset.create_index("vector", "IVF_PQ", num_partitions=2, num_sub_vectors=2),
    "hnsw": lambda dataset: dataset.create_index("vector", "IVF_HNSW_SQ", num_partitions=2),
}


def _indexed(library: Any, path: Path, make: Callable[[Any], None]) -> None:
    """Write a table with an index of the reference and rows behind it; compaction and updates remap the index."""
    dataset = library.write_dataset(_table(_ROWS), path, max_rows_per_file=100)
    make(dataset)
    dataset.delete("id < 5")
    library.write_dataset(_table(10, 1000), path, mode="append")


if __name__ == "__main__":
    build(Path(sys.argv[1]), only_fixtures="--fixtures" in sys.argv)
