"""Tests of inserts, updates and deletes through a handle: the same sequence as with the reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.reference.outcomes import Outcome, assert_same_outcome

import lance_dataset

FIRST = pa.table({"id": [1, 2, 3], "s": ["a", None, "c"], "st": [{"x": 1, "y": "p"}, None, {"x": 3, "y": None}]})
OTHER = pa.table({"name": ["u", "v"], "id": pa.array([1.5, None], pa.float32())})
REQUIRED = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("s", pa.string())])

Step = Callable[[Any, Any], Any]
STEPS: dict[str, list[Step]] = {
    "truncated": [lambda lib, ds: ds.truncate_table(), lambda lib, ds: ds.insert(FIRST)],
    "truncated twice": [lambda lib, ds: ds.truncate_table(), lambda lib, ds: ds.truncate_table()],
    "truncated, another schema": [
        lambda lib, ds: ds.truncate_table(),
        lambda lib, ds: ds.insert(OTHER),
        lambda lib, ds: ds.insert(OTHER, mode="overwrite"),
    ],
    "appended": [lambda lib, ds: ds.insert(FIRST), lambda lib, ds: ds.insert(FIRST.slice(1, 1), mode="append")],
    "another schema": [lambda lib, ds: ds.insert(OTHER, mode="overwrite"), lambda lib, ds: ds.insert(OTHER)],
    "back again": [
        lambda lib, ds: ds.insert(OTHER, mode="overwrite"),
        lambda lib, ds: ds.insert(FIRST, mode="overwrite"),
        lambda lib, ds: ds.insert(FIRST),
    ],
    "some columns": [
        lambda lib, ds: ds.insert(FIRST.select(["id"])),
        lambda lib, ds: ds.insert(FIRST.select(["s", "id"])),
        lambda lib, ds: ds.update({"s": "'new'"}, "s is null"),
    ],
    "other order": [lambda lib, ds: ds.insert(FIRST.select(["st", "s", "id"]))],
    "fields of a struct": [lambda lib, ds: ds.insert(pa.table({"id": [9], "st": [{"y": "z"}]}))],
    "unknown column": [lambda lib, ds: ds.insert(FIRST.append_column("z", pa.array([1, 2, 3])))],
    "wrong type": [lambda lib, ds: ds.insert(pa.table({"id": ["a"], "s": ["b"]}))],
    "required": [
        lambda lib, ds: ds.insert(pa.table({"id": [1], "s": ["x"]}, schema=REQUIRED), mode="overwrite"),
        lambda lib, ds: ds.insert(pa.table({"s": ["x"]})),
        lambda lib, ds: ds.insert(pa.table({"id": [2]}, schema=REQUIRED.remove(1))),
        lambda lib, ds: ds.update({"id": "id + 1"}, "s is null"),
    ],
    "no rows": [
        lambda lib, ds: ds.insert(FIRST.slice(0, 0)),
        lambda lib, ds: ds.insert(OTHER.slice(0, 0), mode="overwrite"),
        lambda lib, ds: ds.insert(OTHER),
    ],
    "older format": [
        lambda lib, ds: ds.insert(FIRST.drop(["st"]), mode="overwrite", data_storage_version="2.0"),
        lambda lib, ds: ds.insert(FIRST.drop(["st"])),
        lambda lib, ds: ds.update({"id": "id * 2"}, "id > 1"),
        lambda lib, ds: ds.data_storage_version,
    ],
    "legacy format and back": [
        lambda lib, ds: ds.insert(FIRST.select(["id"]), mode="overwrite", data_storage_version="legacy"),
        lambda lib, ds: ds.insert(FIRST.select(["id"])),
        lambda lib, ds: ds.delete("id = 2"),
        lambda lib, ds: ds.update({"id": "id + 10"}, "id = 1"),
        lambda lib, ds: ds.data_storage_version,
        lambda lib, ds: ds.insert(FIRST, mode="overwrite", data_storage_version="2.1"),
        lambda lib, ds: ds.data_storage_version,
    ],
    "legacy beside later": [
        lambda lib, ds: ds.insert(FIRST.select(["id"]), data_storage_version="legacy"),
        lambda lib, ds: ds.insert(FIRST.select(["id"]), data_storage_version="2.0"),
        lambda lib, ds: ds.update({"id": "id + 10"}, "id < 3"),
    ],
    "format kept": [
        lambda lib, ds: ds.insert(OTHER, mode="overwrite", data_storage_version="2.1"),
        lambda lib, ds: ds.insert(OTHER, mode="overwrite"),
        lambda lib, ds: ds.data_storage_version,
    ],
    "created again": [lambda lib, ds: ds.insert(FIRST, mode="create")],
    "bad mode": [lambda lib, ds: ds.insert(FIRST, mode="zzz")],
}


def shown(library: Any, path: Path) -> str:
    dataset = library.dataset(path)
    return repr((dataset.version, dataset.schema.to_string(), dataset.to_table().to_pylist()))


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_like_the_reference(tmp_path: Path, name: str, stable: bool) -> None:
    """Outcomes match the reference on separate copies, and on copies that both libraries change in turn."""
    libraries = {"ours": (lance_dataset, lance_dataset), "theirs": (lance, lance)}
    libraries |= {"ours first": (lance_dataset, lance), "theirs first": (lance, lance_dataset)}
    ends = {}
    for kind, pair in libraries.items():
        path = tmp_path / kind
        pair[0].write_dataset(FIRST, path, enable_stable_row_ids=stable)
        outcomes = []
        for number, step in enumerate(STEPS[name]):
            library = pair[number % 2]
            outcomes.append(Outcome.of(step, library, library.dataset(path)))
        first, second = (shown(library, path) for library in (lance, lance_dataset))
        assert first == second
        ends[kind] = (outcomes, first)
    for kind in ("ours", "ours first", "theirs first"):
        assert ends[kind][1] == ends["theirs"][1]
        for ours, theirs in zip(ends[kind][0], ends["theirs"][0], strict=True):
            if kind == "ours":
                assert_same_outcome(ours, theirs)
            else:
                assert (ours.error is None) == (theirs.error is None)
