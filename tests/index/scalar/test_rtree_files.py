"""Damaged files of R-tree indices: errors name the file, and nothing crashes, hangs, or is answered wrongly."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader, LanceFileWriter
from support.arrays.geometries import geometry_table, in_form, random_geometries

import lance_dataset
from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.indices import IndexConfig

_FILTER = "st_intersects(g, st_makebox2d(st_point(-200, -200), st_point(200, 200)))"
_ITEMS = 282


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset with a tree of three levels."""
    path = tmp_path_factory.mktemp("indexed") / "t"
    table = geometry_table("point", in_form(random_geometries("point", 300), "point", "xy"))
    dataset = lance_dataset.write_dataset(table, path)
    dataset.create_scalar_index("g", IndexConfig("rtree", {"page_size": 8}))
    assert dataset.stats.index_stats("g_idx")["indices"][0]["num_items"] == _ITEMS
    return path


@pytest.fixture
def copied(indexed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the dataset, whose index is used at any cost."""
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")
    shutil.copytree(indexed, tmp_path / "t")
    return tmp_path / "t"


def _rewrite(path: Path, name: str, change: Callable[[pa.Table, dict[str, str]], pa.Table]) -> Path:
    (file,) = path.glob(f"_indices/*/{name}")
    table = LanceFileReader(str(file)).read_all().to_table()
    metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    changed = change(table.replace_schema_metadata(None), metadata)
    file.unlink()
    with LanceFileWriter(str(file), changed.schema) as writer:
        writer.write_batch(changed)
        for key, value in metadata.items():
            writer.add_schema_metadata(key, value)
    return file


def _ids(place: int, value: int) -> Callable[[pa.Table, dict[str, str]], pa.Table]:
    def change(table: pa.Table, _: dict[str, str]) -> pa.Table:
        ids = np.asarray(table["id"]).copy()
        ids[place] = value
        return table.set_column(1, table.schema.field(1), pa.array(ids))

    return change


def _noted(**changes: str | None) -> Callable[[pa.Table, dict[str, str]], pa.Table]:
    def change(table: pa.Table, metadata: dict[str, str]) -> pa.Table:
        for key, value in changes.items():
            metadata.pop(key)
            if value is not None:
                metadata[key] = value
        return table

    return change


def _cut(table: pa.Table, _: dict[str, str]) -> pa.Table:
    return table.slice(0, len(table) - 1)


def _renamed(table: pa.Table, _: dict[str, str]) -> pa.Table:
    return table.rename_columns(["box", "id"])


def _retyped(table: pa.Table, _: dict[str, str]) -> pa.Table:
    return table.set_column(1, "id", table["id"].cast(pa.int64()))


#: Rows of the page data: 282 items, 36 boxes of pages of items, 5 of pages of those; the root page is 41.
_DAMAGE: dict[str, Callable[[pa.Table, dict[str, str]], pa.Table]] = {
    "the root is its own child": _ids(-1, 41),
    "a child is beside its parent": _ids(_ITEMS + 20, 37),
    "a child is above its parent": _ids(_ITEMS + 20, 41),
    "a child is two levels below": _ids(-3, 3),
    "a child does not exist": _ids(_ITEMS + 20, 1 << 63),
    "a row is missing": _cut,
    "no number of items": _noted(num_items=None),
    "too many items": _noted(num_items="283"),
    "too few items": _noted(num_items="281"),
    "a negative number of items": _noted(num_items="-1"),
    "a huge number of items": _noted(num_items=str(10**18)),
    "no items": _noted(num_items="0"),
    "another number of pages": _noted(num_pages="43"),
    "pages of one box": _noted(page_size="1"),
    "no pages": _noted(page_size="0"),
    "other pages": _noted(page_size="9"),
    "pages without a number": _noted(page_size="x"),
    "another column": _renamed,
    "another type": _retyped,
}


@pytest.mark.parametrize("name", _DAMAGE)
def test_damaged_trees(copied: Path, name: str) -> None:
    file = _rewrite(copied, "page_data.lance", _DAMAGE[name])
    dataset = lance_dataset.dataset(copied)
    with pytest.raises(CorruptFileError, match=file.parent.name):
        dataset.count_rows(_FILTER)
    assert dataset.scanner(filter=_FILTER, use_scalar_index=False).count_rows() > 20


def test_damaged_trees_are_not_extended(copied: Path) -> None:
    _rewrite(copied, "page_data.lance", _DAMAGE["a row is missing"])
    dataset = lance_dataset.dataset(copied)
    dataset.insert(geometry_table("point", in_form(random_geometries("point", 9), "point", "xy"), 1000))
    with pytest.raises(CorruptFileError, match="page_data"):
        dataset.optimize.optimize_indices()


def _sets(value: Any) -> Callable[[pa.Table, dict[str, str]], pa.Table]:
    return lambda table, _: pa.table({"nulls": pa.array(value, pa.binary())})


_NULLS: dict[str, Callable[[pa.Table, dict[str, str]], pa.Table]] = {
    "no set": _sets([]),
    "two sets": _sets([bytes(4)] * 2),
    "null": _sets([None]),
    "not a set": _sets([b"\xff" * 9]),
    "a huge set": _sets([b"\xff\xff\xff\xff"]),
    "another column": lambda table, _: table.rename_columns(["nothing"]),
    "another type": lambda table, _: pa.table({"nulls": [5]}),
}


@pytest.mark.parametrize("name", _NULLS)
def test_damaged_nulls(copied: Path, name: str) -> None:
    file = _rewrite(copied, "nulls.lance", _NULLS[name])
    dataset = lance_dataset.dataset(copied)
    with pytest.raises(CorruptFileError, match=file.parent.name):
        dataset.count_rows("g IS NULL")
    assert dataset.count_rows(_FILTER) > 20
    assert dataset.scanner(filter="g IS NULL", use_scalar_index=False).count_rows() == 18


def test_a_set_of_all_rows_of_a_fragment(copied: Path) -> None:
    """A set may say that it has all rows of a fragment; such a segment is trained anew instead of extended."""
    _rewrite(copied, "nulls.lance", _sets([b"\x01\0\0\0" + bytes(8)]))
    dataset = lance_dataset.dataset(copied)
    dataset.insert(geometry_table("point", in_form(random_geometries("point", 9), "point", "xy"), 1000))
    dataset.optimize.optimize_indices()
    assert dataset.count_rows("g IS NULL") == 19


@pytest.mark.parametrize("file", ["page_data.lance", "nulls.lance"])
@pytest.mark.parametrize("damage", ["cut", "zeros", "gone"])
def test_damaged_bytes(copied: Path, file: str, damage: str) -> None:
    (path,) = copied.glob(f"_indices/*/{file}")
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.write_bytes(bytes(len(content) - 40) + content[-40:])
    with pytest.raises(LanceError, match=path.parent.name):
        lance_dataset.dataset(copied).count_rows(_FILTER if file == "page_data.lance" else "g IS NULL")


def test_random_changes_of_bytes(copied: Path) -> None:
    """Any byte may be changed: the result is an error, or an answer that has passed the comparison with the scan."""
    rng = np.random.default_rng(4)
    (path,) = copied.glob("_indices/*/page_data.lance")
    content = path.read_bytes()
    errors = 0
    for _ in range(120):
        changed = bytearray(content)
        for place in rng.integers(0, len(content), 3):
            changed[place] = rng.integers(0, 256)
        path.write_bytes(changed)
        try:
            lance_dataset.dataset(copied, session=lance_dataset.Session()).count_rows(_FILTER)
        except LanceError:
            errors += 1
    assert errors > 5


def test_metadata_is_that_of_the_reference(indexed: Path) -> None:
    (file,) = indexed.glob("_indices/*/page_data.lance")
    metadata = LanceFileReader(str(file)).metadata().schema.metadata
    assert {key.decode() for key in metadata} == {"page_size", "num_items", "num_pages", "bbox"}
    assert list(json.loads(metadata[b"bbox"])) == ["minx", "miny", "maxx", "maxy"]
