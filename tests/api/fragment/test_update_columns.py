"""Tests of new column values for single fragments, and of existing data files, compared with the reference."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import (
    CorruptFileError,
    FieldNotFoundError,
    InvalidInputError,
    MissingFileError,
    SchemaError,
)
from lance_dataset.file import LanceFileWriter
from lance_dataset.fragment import DataFile

TABLE = pa.table(
    {
        "a": [1, 2, 300, 4],
        "b": ["x", "y", None, "w"],
        "s": [{"x": 1, "y": "p"}] * 4,
        "l": [[1], [2, 3], [], [4]],
    }
)


def ids(*rows: int | None) -> pa.Array:
    return pa.array(rows, pa.uint64())


NEW: dict[str, tuple[pa.Table, tuple[str, ...]]] = {
    "row ids": (pa.table({"_rowid": ids(0, 2), "a": [10, None]}), ()),
    "twice": (pa.table({"_rowid": ids(0, 0), "a": [10, 30]}), ()),
    "some": (pa.table({"_rowid": ids(0, 77), "a": [10, 30]}), ()),
    "none": (pa.table({"_rowid": ids(77), "a": [10]}), ()),
    "empty": (pa.table({"_rowid": ids(), "a": pa.array([], pa.int64())}), ()),
    "null key": (pa.table({"_rowid": ids(None, 1), "a": [10, 11]}), ()),
    "null keys": (pa.table({"b": ["x", None], "a": [7, 8]}), ("b",)),
    "addresses": (pa.table({"_rowaddr": ids(0, 1), "a": [10, 11]}), ("_rowaddr",)),
    "key": (pa.table({"b": ["x", "w", "q"], "a": [7, 8, 9]}), ("b",)),
    "other name": (pa.table({"key": ["x", "w"], "a": [7, 8], "b": ["X", "W"]}), ("b", "key")),
    "unknown": (pa.table({"b": ["x"], "zz": [1]}), ("b",)),
    "other type": (pa.table({"b": ["x"], "a": ["1"]}), ("b",)),
    "struct": (pa.table({"_rowid": ids(0, 2), "s": [{"x": 5, "y": "q"}, {"x": None, "y": None}]}), ()),
    "part of a struct": (pa.table({"_rowid": ids(0), "s": [{"x": 5}]}), ()),
    "list": (pa.table({"_rowid": ids(0, 2), "l": [[9, 9], [8]], "a": [1, 1]}), ()),
    "views": (pa.table({"a": [2], "b": pa.array(["q"], pa.string_view())}), ("a",)),
    "key of a view": (pa.table({"a": [20], "b": pa.array(["y"], pa.string_view())}), ("b",)),
    "no key": (pa.table({"a": [1], "b": ["q"]}), ("zz",)),
    "no key there": (pa.table({"a": [1], "b": ["q"]}), ("a", "zz")),
}


def updated(library: Any, path: Path, data: pa.Table, keys: tuple[str, ...]) -> Any:
    """Return the table after an update of the first fragment as both libraries read it, or the error."""
    dataset = library.dataset(path)
    try:
        made, fields, offsets = dataset.get_fragments()[0].update_columns(data, *keys, with_offsets=True)
    except (OSError, ValueError, RuntimeError) as error:
        return error
    change = library.LanceOperation.Update(
        updated_fragments=[made],
        fields_modified=fields,
        update_mode="rewrite_columns",
        updated_fragment_offsets={made.id: offsets},
    )
    library.LanceDataset.commit(dataset, change, read_version=dataset.version)
    columns = [*TABLE.column_names, "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    found = [repr(each.dataset(path).to_table(columns=columns).to_pydict()) for each in (lance, lance_dataset)]
    assert found[0] == found[1]
    return found[0], fields, offsets, [(file.fields, file.column_indices) for file in made.files]


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("kind", ["plain", "stable, deleted"])
def test_like_the_reference(tmp_path: Path, name: str, kind: str) -> None:
    start = tmp_path / "start"
    dataset = lance.write_dataset(TABLE, start, max_rows_per_file=3, enable_stable_row_ids=kind != "plain")
    if kind != "plain":
        dataset.delete("a = 1")
    ends = []
    for library in (lance_dataset, lance):
        path = tmp_path / library.__name__
        shutil.copytree(start, path)
        ends.append(updated(library, path, *NEW[name]))
    ours, theirs = ends
    if isinstance(theirs, RuntimeError):
        assert isinstance(ours, SchemaError)
    else:
        assert ours == theirs or isinstance(ours, type(theirs))


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.3"])
def test_file_versions(tmp_path: Path, version: str) -> None:
    path = tmp_path / "d"
    table = TABLE.set_column(1, "b", pa.array(["x", "y", "z", "w"]))
    lance.write_dataset(table, path, data_storage_version=version)
    data = pa.table({"b": ["z", "x"], "a": [30, 10], "s": [{"x": 7, "y": "q"}, {"x": 8, "y": "r"}], "l": [[5], []]})
    updated(lance_dataset, path, data, ("b",))
    expected = table.to_pylist()
    expected[0] |= {"a": 10, "s": {"x": 8, "y": "r"}, "l": []}
    expected[2] |= {"a": 30, "s": {"x": 7, "y": "q"}, "l": [5]}
    assert lance.dataset(path).to_table().to_pylist() == expected


def test_many_rows(tmp_path: Path) -> None:
    """Updates of many batches and pages skip deleted rows and match keys of another integer type."""
    rows = 200_000
    table = pa.table(
        {"k": np.arange(rows), "v": np.arange(rows) * 1.5, "t": [f"t{number % 97}" for number in range(rows)]}
    )
    dataset = lance_dataset.write_dataset(table, tmp_path / "d")
    dataset.delete("k % 7 = 0 or (k > 50000 and k < 150000)")
    chosen = np.random.default_rng(1).permutation(rows)[: rows // 3]
    data = pa.table({"k": chosen.astype(np.int32), "v": -chosen.astype(float), "t": pa.nulls(len(chosen), pa.string())})
    made, fields = dataset.get_fragments()[0].update_columns(data, "k")
    change = lance_dataset.LanceOperation.Update(
        updated_fragments=[made], fields_modified=fields, update_mode="rewrite_columns"
    )
    lance_dataset.LanceDataset.commit(dataset, change, read_version=dataset.version)
    new = np.isin(np.arange(rows), chosen)
    texts = pa.array(table["t"].to_numpy(zero_copy_only=False), mask=new)
    whole = pa.table({"k": table["k"], "v": np.where(new, -np.arange(rows) * 1.0, table["v"].to_numpy()), "t": texts})
    expected = whole.filter(np.array([k % 7 != 0 and not 50000 < k < 150000 for k in range(rows)]))
    for library in (lance, lance_dataset):
        assert library.dataset(tmp_path / "d").to_table().combine_chunks() == expected.combine_chunks()


def test_refused(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(TABLE, tmp_path / "d")
    fragment = dataset.get_fragments()[0]
    before = sorted(tmp_path.rglob("*"))
    required = lance_dataset.write_dataset(
        pa.table({"a": [1]}, pa.schema([pa.field("a", pa.int64(), nullable=False)])), tmp_path / "r"
    )
    for target, data, key, error in (
        (fragment, {"b": ["x"]}, "b", InvalidInputError),
        (fragment, {"_rowid": ["x"], "a": [1]}, "_rowid", InvalidInputError),
        (fragment, {"_rowid": [0], "_rowaddr": [1]}, "_rowid", FieldNotFoundError),
        (required.get_fragments()[0], {"_rowid": [0], "a": pa.array([None], pa.int64())}, "_rowid", SchemaError),
    ):
        with pytest.raises(error):
            target.update_columns(data, key)
    assert [
        path for path in sorted(tmp_path.rglob("*")) if "/r" not in str(path.relative_to(tmp_path.parent))
    ] == before


# -- data files that exist -----------------------------------------------------------------------------------------

FILES = {
    "one": pa.table({"a": [10, 20]}),
    "two": pa.table({"b": ["q", None], "a": [10, 20]}),
    "struct": pa.table({"s": [{"x": 1, "y": "q"}] * 2}),
    "part of a struct": pa.table({"s": [{"x": 1}] * 2}),
    "unknown": pa.table({"zz": [1, 2]}),
}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("name", FILES)
def test_replaced_data(tmp_path: Path, name: str, version: str) -> None:
    """Data files written by either library can replace columns through either library."""
    table, found = FILES[name], []
    for library, writer in ((lance_dataset, lance.file.LanceFileWriter), (lance, LanceFileWriter)):
        path = tmp_path / library.__name__
        dataset = lance.write_dataset(
            TABLE, path, max_rows_per_file=2, data_storage_version=version, enable_stable_row_ids=True
        )
        dataset.delete("a = 300")
        with writer(f"{path}/data/new.lance", table.schema, version=version) as file:
            file.write_batch(table.to_batches()[0])
        try:
            given = library.fragment.DataFile.create(library.dataset(path), "new.lance")
        except ValueError:
            found.append(None)
            continue
        groups = [library.LanceOperation.DataReplacementGroup(1, given)]
        operation = library.LanceOperation.DataReplacement(groups)
        library.LanceDataset.commit(str(path), operation, read_version=2)
        columns = [*TABLE.column_names, "_row_last_updated_at_version"]
        rows = [each.dataset(path).to_table(columns=columns).to_pydict() for each in (lance, lance_dataset)]
        assert rows[0] == rows[1]
        files = [file.fields for file in lance.dataset(path).get_fragments()[1].data_files()]
        found.append((rows[0], given.fields, given.column_indices, given.file_minor_version, files))
    assert found[0] == found[1]


def test_unfit_files(tmp_path: Path) -> None:
    """Data files of another type or length raise an error.

    The reference accepts them and then returns wrong values or fails.
    """
    path = tmp_path / "d"
    dataset = lance_dataset.write_dataset(TABLE, path)
    for name, table in {"type": pa.table({"a": ["x"] * 4}), "rows": pa.table({"a": [1, 2]})}.items():
        with LanceFileWriter(f"{path}/data/{name}.lance", table.schema) as file:
            file.write_batch(table.to_batches()[0])
    with pytest.raises(SchemaError, match="'a' is string"):
        DataFile.create(dataset, "type.lance")
    short = DataFile.create(dataset, "rows.lance")
    other = DataFile("type.lance", [0], [0], 2, 2)
    for given, message in ((short, "2 rows"), (other, "string in column 0")):
        groups = [lance_dataset.LanceOperation.DataReplacementGroup(0, given)]
        with pytest.raises(InvalidInputError, match=message):
            lance_dataset.LanceDataset.commit(
                dataset, lance_dataset.LanceOperation.DataReplacement(groups), read_version=1
            )
    with pytest.raises(MissingFileError):
        DataFile.create(dataset, "nope.lance")
    with pytest.raises(CorruptFileError):
        DataFile.create(dataset, "../rows.lance")
    with pytest.raises(InvalidInputError, match="base path"):
        DataFile.create(dataset, "rows.lance", base_id=3)
    assert dataset.to_table().to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
def test_fragments_from_files(tmp_path: Path, version: str) -> None:
    """A fragment can be made from a data file whose fragment was lost.

    Files of the file writer with unknown columns raise `SchemaError`.
    """
    table = TABLE.set_column(1, "b", pa.array(["x", "y", "z", "w"]))
    dataset = lance_dataset.write_dataset(table, tmp_path / "d", max_rows_per_file=2, data_storage_version=version)
    lost = dataset.get_fragments()[1].data_files()[0].path
    dataset.delete("a > 2")
    made = lance_dataset.LanceFragment.create_from_file(lost, dataset, 0)
    append = lance_dataset.LanceOperation.Append([made])
    dataset = lance_dataset.LanceDataset.commit(dataset, append, read_version=dataset.version)
    for library in (lance, lance_dataset):
        assert library.dataset(tmp_path / "d").to_table().to_pydict() == table.to_pydict()
    with pytest.raises(MissingFileError):
        lance_dataset.LanceFragment.create_from_file("nope.lance", dataset, 0)
    if version != "0.1":
        part = pa.table({"zz": [1]})
        with LanceFileWriter(f"{tmp_path}/d/data/zz.lance", part.schema, version=version) as file:
            file.write_batch(part.to_batches()[0])
        with pytest.raises(SchemaError, match="zz"):
            lance_dataset.LanceFragment.create_from_file("zz.lance", dataset, 0)
