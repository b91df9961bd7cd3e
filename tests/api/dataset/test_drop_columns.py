"""Tests of dropped columns: the same call on copies of one dataset, compared with the reference."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import CommitConflictError, FieldNotFoundError, InvalidInputError

TABLE = pa.table(
    {
        "a": [1, 2, 3, 4],
        "b": ["x", "y", None, "w"],
        "s": [{"x": 1, "y": "p", "t": {"u": 1, "v": 2}}] * 4,
        "l": [[1], [2, 3], [], None],
        "ls": [[{"k": 1, "j": 2}], [], None, [{"k": 2, "j": 3}]],
        "m": pa.array([[("k", 1)], [], None, [("z", 2)]], pa.map_(pa.string(), pa.int64())),
    }
)

CASES: dict[str, Any] = {
    "one": ["a"],
    "unknown": ["zz"],
    "other case": ["A"],
    "text": "a",
    "twice": ["a", "a"],
    "child": ["s.x"],
    "parent and child": ["s", "s.x"],
    "child and parent": ["s.x", "s"],
    "some children": ["s.x", "s.y"],
    "all children": ["s.x", "s.y", "s.t"],
    "deep": ["s.t.u"],
    "all deep ones": ["s.t.u", "s.t.v"],
    "item": ["l.item"],
    "below a list": ["ls.item.k"],
    "all below a list": ["ls.item.k", "ls.item.j"],
    "without the item": ["ls.k"],
    "entries": ["m.entries"],
    "nothing": [],
    "all": ["a", "b", "s", "l", "ls", "m"],
    "quoted": ["`a`"],
    "tuple": ("a",),
    "set": {"a"},
    "none": None,
    "number": [1],
    "row ids": ["_rowid"],
    "unknown child": ["s.zz"],
    "no struct": ["a.b"],
    "empty": [""],
}


def dropped(library: Any, path: Path, columns: Any) -> Any:
    """Return the table after dropping columns as both libraries read it, or the error."""
    try:
        library.dataset(path).drop_columns(columns)
    except (OSError, TypeError, ValueError) as error:
        return error
    made = lance.dataset(path)
    assert lance_dataset.dataset(path).to_table() == made.to_table()
    operation = made.read_transaction(made.version).operation
    files = [[file.fields for file in each.data_files()] for each in made.get_fragments()]
    return repr(made.to_table().to_pydict()), made.schema, files, type(operation), operation.preserves_nullability


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a table of two fragments with a deleted row, whose column `extra` has its own files."""
    path = tmp_path_factory.mktemp("drop") / "d"
    dataset = lance.write_dataset(TABLE, path, max_rows_per_file=2)
    dataset.delete("a = 2")
    return path


@pytest.mark.parametrize("name", CASES)
def test_like_the_reference(tmp_path: Path, start: Path, name: str) -> None:
    ends = []
    for library in (lance_dataset, lance):
        path = tmp_path / library.__name__
        shutil.copytree(start, path)
        ends.append(dropped(library, path, CASES[name]))
    ours, theirs = ends
    assert ours == theirs or isinstance(ours, type(theirs))


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.3"])
def test_file_versions(tmp_path: Path, version: str) -> None:
    """Dropping a field of a struct in a list keeps the list; the reference drops the list too in early versions."""
    table = TABLE.drop_columns(["m"]).slice(0, 1)
    path = tmp_path / "d"
    lance.write_dataset(table, path, data_storage_version=version)
    lance_dataset.dataset(path).drop_columns(["ls.item.k", "s.t", "a"])
    expected = {"b": ["x"], "s": [{"x": 1, "y": "p"}], "l": [[1]], "ls": [[{"j": 2}]]}
    for library in (lance, lance_dataset):
        assert library.dataset(path).to_table().to_pydict() == expected


def test_files_and_ids(tmp_path: Path) -> None:
    """Data files and field ids match the reference after columns are added and dropped.

    A file goes with its last column. A field id is reused only if no file has it and no mark forbids it.
    """
    ends = []
    for library in (lance_dataset, lance):
        path = tmp_path / library.__name__
        lance.write_dataset(TABLE.select(["a", "b"]), path)
        found = []
        for added, gone in (("n", "b"), ("o", "n"), ("p", "o")):
            lance.dataset(path).add_columns({added: "a + 1"})
            library.dataset(path).drop_columns([gone])
            made = lance.dataset(path)
            files = [file.fields for file in made.get_fragments()[0].data_files()]
            found.append((files, [(field.name(), field.id()) for field in made.lance_schema.fields()]))
        ends.append(found)
        assert lance_dataset.dataset(path).to_table().to_pydict() == {"a": [1, 2, 3, 4], "p": [2, 3, 4, 5]}
    assert ends[0] == ends[1]


def test_indices_go(tmp_path: Path) -> None:
    dataset = lance.write_dataset(TABLE, tmp_path / "d")
    for column in ("a", "b"):
        dataset.create_scalar_index(column, "BTREE")
    lance_dataset.dataset(tmp_path / "d").drop_columns(["a"])
    assert [index.name for index in lance.dataset(tmp_path / "d").describe_indices()] == ["b_idx"]


def test_older_versions_stay(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(TABLE, tmp_path / "d")
    dataset.drop_columns(["s", "m"])
    assert dataset.version == 2
    assert dataset.schema.names == ["a", "b", "l", "ls"]
    for library in (lance, lance_dataset):
        assert library.dataset(tmp_path / "d", version=1).to_table().to_pydict() == TABLE.to_pydict()


def test_beside_other_writers(tmp_path: Path) -> None:
    """Rows appended by another writer stay, and dropping a column that another writer dropped raises an error."""
    dataset = lance_dataset.write_dataset(TABLE.select(["a", "b"]), tmp_path / "d")
    lance.write_dataset(TABLE.select(["a", "b"]), tmp_path / "d", mode="append")
    other = lance_dataset.dataset(tmp_path / "d")
    dataset.drop_columns(["a"])
    assert dataset.count_rows() == 8
    with pytest.raises(FieldNotFoundError, match="a does not exist"):
        other.drop_columns(["a"])
    with pytest.raises(InvalidInputError, match="all columns"):
        other.drop_columns(["b"])
    lance.write_dataset(TABLE, tmp_path / "d", mode="overwrite")
    with pytest.raises(CommitConflictError):
        dataset.drop_columns([])


def test_maps_stay_whole(tmp_path: Path) -> None:
    """Dropping part of a map raises an error; the reference makes a table that cannot be read."""
    dataset = lance_dataset.write_dataset(TABLE, tmp_path / "d")
    with pytest.raises(InvalidInputError, match="map"):
        dataset.drop_columns(["m.entries.value"])
