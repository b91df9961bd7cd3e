"""Tables that calls are run on, and the names that calls use."""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from support.reference.outcomes import build_table

WORDS = (
    "red apple",
    "green pear tree",
    "the apples are red",
    "old tree",
    "Pear and plum",
    "plum jam with apple",
    "jam",
)


#: Modules that calls use by their own names.
MODULES = (
    *("arrow", "bitmap", "blob", "commit", "debug", "file", "fragment", "hf", "indices", "log", "mem_wal", "optimize"),
    *("progress", "pydantic", "query", "sampler", "schema", "tracing", "types", "udf", "util", "vector"),
)


def names_of(library: Any, scratch: Path) -> dict[str, Any]:
    """Return the names in the text of a call: a library as ``L``, and its modules by their own names."""
    names = {"L": library, "pa": pa, "pc": pc, "np": np, "dt": dt, "tmp": str(scratch), "small": small_rows}
    for name in MODULES:
        with contextlib.suppress(ImportError):
            names[name] = importlib.import_module(f"{library.__name__}.{name}")
    names["dataset"] = importlib.import_module(f"{library.__name__}.dataset")
    return names


def small_rows(start: int = 0, stop: int = 24) -> pa.Table:
    """Return rows of the table ``small``."""
    numbers = range(start, stop)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "n": pa.array([None if i % 7 == 6 else i * 5 % 9 for i in numbers], pa.int32()),
            "f": pa.array([i / 4 for i in numbers], pa.float64()),
            "s": pa.array([None if i % 5 == 4 else f"text {i % 6}" for i in numbers], pa.string()),
            "st": pa.array(
                [{"x": i, "y": f"y{i % 3}"} for i in numbers], pa.struct([("x", pa.int32()), ("y", pa.string())])
            ),
            "li": pa.array([list(range(i % 3)) for i in numbers], pa.list_(pa.int64())),
            "vec": pa.array([[i, 1.0] for i in numbers], pa.list_(pa.float32(), 2)),
        }
    )


def vector_rows(count: int = 400) -> pa.Table:
    """Return rows of the table ``vectors``: clusters of vectors, texts and numbers."""
    draw = np.random.default_rng(5)
    centers = draw.normal(0, 8, (8, 8))
    values = (centers[np.arange(count) % 8] + draw.normal(0, 1, (count, 8))).astype(np.float32)
    return pa.table(
        {
            "id": range(count),
            "n": [i % 20 for i in range(count)],
            "kind": [("a", "b", "c")[i % 3] for i in range(count)],
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 8),
            "half": pa.FixedSizeListArray.from_arrays(pa.array(values[:, :4].astype(np.float16).ravel()), 4),
            "text": [f"{WORDS[i % len(WORDS)]} {i % 11}" for i in range(count)],
            "title": [WORDS[i * 3 % len(WORDS)] if i % 13 else None for i in range(count)],
        }
    )


def build(folder: Path) -> None:
    """Write the tables with the reference."""
    written = None
    for start, stop in ((0, 25), (25, 45), (45, 55), (55, 60)):
        part = build_table(stop - start, start)
        written = lance.write_dataset(part, folder / "main", mode="append" if written else "create")
    assert written is not None
    written.delete("id in (0, 3, 4, 24, 46)")
    written.create_scalar_index("n", "BTREE")
    written.create_scalar_index("s", "BITMAP")
    written.delete("id = 5 or id = 54")
    small = lance.write_dataset(small_rows(), folder / "small", max_rows_per_file=10)
    small.create_scalar_index("id", "BTREE")
    small.delete("id = 3")
    small.tags.create("first", 1)
    small.create_branch("side", 2)
    vectors = lance.write_dataset(vector_rows(), folder / "vectors", max_rows_per_file=150)
    vectors.create_index("vec", "IVF_FLAT", num_partitions=4)
    vectors.create_scalar_index("text", "INVERTED", with_position=True)
    vectors.create_scalar_index("n", "BTREE")
    stable = lance.write_dataset(small_rows(), folder / "stable", max_rows_per_file=10, enable_stable_row_ids=True)
    stable.update({"n": "n + 1"}, where="id < 4")
    stable.delete("id = 7")


class World:
    """Tables, and copies of them for calls that change them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        (folder / "tables").mkdir()
        build(folder / "tables")
        self._open: dict[tuple[str, str], dict[str, Any]] = {}

    def shared(self, library: Any, table: str) -> dict[str, Any]:
        """Return the names for calls that only read."""
        key = (library.__name__, table)
        if key not in self._open:
            names = names_of(library, self._scratch())
            if table:
                names["path"] = str(self._folder / "tables" / table)
                names["ds"] = library.dataset(names["path"])
            self._open[key] = names
        return self._open[key]

    def fresh(self, library: Any, table: str) -> dict[str, Any]:
        """Return the names for a call that changes its copy of a table."""
        scratch = self._scratch()
        names = names_of(library, scratch)
        names["path"] = str(scratch / "t")
        if table:
            shutil.copytree(self._folder / "tables" / table, names["path"])
            names["ds"] = library.dataset(names["path"])
        return names

    def _scratch(self) -> Path:
        self._count += 1
        scratch = self._folder / f"c{self._count}"
        scratch.mkdir()
        return scratch


def tables_of(scratch: Path) -> Iterator[Path]:
    """Yield the datasets below a folder."""
    yield from sorted(path.parent for path in scratch.glob("*/_versions"))
