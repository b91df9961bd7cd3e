"""A table with an index of each scalar kind, and damage to its indices."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import lance.indices
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.changes.commit import commit_change
from lance_dataset.errors import DamagedIndexError, IndexProblem
from lance_dataset.index.files import NewIndexFolder
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.indices import IndexConfig
from lance_dataset.io.local import LocalStore
from lance_dataset.table.operations import CreateIndex

__all__ = [
    "INDICES",
    "create_indices",
    "indexed_table",
    "problem_of",
    "problems_of",
    "replace_index",
    "segment_of",
    "validate",
    "write_indexed_table",
]

#: Name, column, kind and parameters of an index of each kind.
INDICES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("btree", "k", "btree", {"zone_size": 32}),
    ("floats", "f", "btree", {"zone_size": 50}),
    ("texts", "s", "btree", {}),
    ("bitmap", "s", "bitmap", {}),
    ("labels", "l", "labellist", {}),
    ("ngram", "t", "ngram", {}),
    ("fm", "t", "fm", {}),
    ("minhash", "t", "minhashlsh", {"num_hashes": 8, "num_bands": 4, "shingle_size": 2}),
    ("zones", "f", "zonemap", {"rows_per_zone": 40}),
    ("text_zones", "s", "zonemap", {"rows_per_zone": 30}),
    ("bloom", "k", "bloomfilter", {"number_of_items": 40}),
    ("rtree", "p", "rtree", {"page_size": 8}),
    ("numbers", "j", "json", {"path": "x", "target_index_type": "btree"}),
    ("names", "j", "json", {"path": "s", "target_index_type": "bitmap"}),
)
_WORDS = ("alpha", "Beta", "gamma délta", "straße", "ﬁne", "Ｗide", "x")
_ROWS = 360


def _text(number: int) -> str | None:
    return None if number % 9 == 2 else " ".join(f"{_WORDS[(number + i) % 7]}{number}" for i in range(number % 4))


def _float(number: int) -> float:
    return float("nan") if number % 9 == 3 else -0.0 if number % 9 == 4 else number / 3


def indexed_table(numbers: Sequence[int]) -> pa.Table:
    n = np.array(numbers, np.int64)
    floats = pa.array([None if i % 9 == 2 else _float(i) for i in numbers], pa.float64())
    lists = [None if i % 10 == 1 else [] if i % 10 == 2 else [i % 5, None if i % 6 == 0 else i % 7] for i in numbers]
    documents = [None if i % 12 == 3 else json.dumps({"x": i, "s": f"n{i % 4}"}) for i in numbers]
    points = pa.StructArray.from_arrays(
        [pa.array(n % 37 * 1.0), pa.array(n % 11 * 1.5)], ["x", "y"], mask=pa.array(n % 13 == 4)
    )
    table = pa.table(
        {
            "n": n,
            "k": pa.array(n * 7 % 1001, mask=n % 11 == 3),
            "s": pa.array([None if i % 7 == 5 else f"v{i % 90}" for i in numbers], pa.string()),
            "f": floats,
            "l": pa.array(lists, pa.list_(pa.int64())),
            "t": pa.array([_text(i) for i in numbers], pa.string()),
            "j": pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(documents, pa.string())),
        }
    )
    field = pa.field("p", points.type, metadata={"ARROW:extension:name": "geoarrow.point"})
    return table.append_column(field, points)


def create_indices(module: Any, path: Path, names: Sequence[str] = ()) -> None:
    make = lance.indices.IndexConfig if module is lance else IndexConfig
    for name, column, kind, parameters in INDICES:
        if not names or name in names:
            module.dataset(path).create_scalar_index(column, make(kind, parameters), name=name)


def write_indexed_table(path: Path) -> None:
    lance_dataset.write_dataset(indexed_table(range(_ROWS)), path, max_rows_per_file=150)
    lance_dataset.dataset(path).delete("n IN (20, 160, 300)")


def validate(path: Path) -> None:
    lance_dataset.dataset(path).validate(indices=True)


def problems_of(path: Path) -> tuple[IndexProblem, ...]:
    with pytest.raises(DamagedIndexError) as caught:
        validate(path)
    return caught.value.problems


def problem_of(path: Path, name: str) -> IndexProblem:
    (found,) = problems_of(path)
    assert found.index == name
    return found


def segment_of(path: Path, name: str) -> Segment:
    (found,) = (each for each in index_segments(lance_dataset.dataset(path).snapshot.reader) if each.name == name)
    return found


def replace_index(path: Path, name: str, write: Callable[[Segment, NewIndexFolder], None]) -> str:
    """Publish other files as those of an index with one segment; return the id of the segment."""
    old = segment_of(path, name)
    new_id = f"{random.Random(name).getrandbits(128):032x}"
    new_id = "-".join([new_id[:8], new_id[8:12], new_id[12:16], new_id[16:20], new_id[20:]])
    target = NewIndexFolder(LocalStore(), f"{path}/_indices/{new_id}")
    write(old, target)
    changed = replace(old.metadata, uuid=new_id, files=target.files)
    commit_change(lance_dataset.dataset(path).snapshot, CreateIndex((changed,), (old.metadata,)))
    return new_id
