"""Tests of changes of tables with blob columns of version 2; the reference reads the results."""

from __future__ import annotations

import os
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset import Blob, DatasetBasePath, LanceDataset, blob_array, blob_field
from lance_dataset.errors import CorruptFileError, InvalidInputError, LanceError, MissingFileError, UnsupportedError

SMALL = {"inline_size_threshold": 10, "dedicated_size_threshold": 100}
BLOB = blob_field("b", **SMALL)
SIZES = [5, 50, 150, 0, 20, 200, 3, 70]


def value(row: int) -> bytes | None:
    return None if row % 8 == 6 else bytes([row]) * SIZES[row % 8]


def rows_of(first: int, stop: int) -> pa.Table:
    numbers = list(range(first, stop))
    arrays = [pa.array(numbers), blob_array([value(row) for row in numbers]), pa.array([f"t{row}" for row in numbers])]
    return pa.Table.from_arrays(arrays, schema=pa.schema([("i", pa.int64()), BLOB, ("t", pa.string())]))


@pytest.fixture(params=["plain", "stable"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> LanceDataset:
    """Return a table of three fragments."""
    stable = request.param == "stable"
    return lance_dataset.write_dataset(
        rows_of(0, 24), tmp_path / "t", max_rows_per_file=8, enable_stable_row_ids=stable
    )


def contents(dataset: LanceDataset, column: str = "b") -> dict[int, Any]:
    """Return the values by number, read by both libraries, also row by row."""
    found = dataset.to_table(columns=["i", column], blob_handling="all_binary")
    values = dict(zip(*(each.to_pylist() for each in found.columns), strict=True))
    assert len(values) == found.num_rows
    theirs = lance.dataset(dataset.uri).to_table(columns=["i", column], blob_handling="all_binary")
    assert theirs.sort_by("i").to_pylist() == found.sort_by("i").to_pylist()
    blobs = dataset.take_blobs(column, indices=range(found.num_rows))
    assert [None if blob is None else blob.read() for blob in blobs] == found.column(1).to_pylist()
    return values


def expected(*rows: int) -> dict[int, bytes | None]:
    return {row: value(row) for row in rows}


def side_files(dataset: LanceDataset) -> list[Path]:
    return sorted(Path(dataset.uri).glob("data/*/*.blob"))


def test_delete_update_append(dataset: LanceDataset) -> None:
    dataset.delete("i in (1, 9, 10)")
    dataset.update({"t": "'new'", "i": "i + 100"}, "i in (2, 14)")
    lance_dataset.write_dataset(rows_of(24, 30), dataset, mode="append")
    dataset = lance_dataset.dataset(dataset.uri)
    kept = set(range(30)) - {1, 9, 10, 2, 14}
    assert contents(dataset) == {**expected(*kept), 102: value(2), 114: value(14)}
    assert dataset.to_table(filter="t = 'new'", columns=["i"])["i"].to_pylist() == [102, 114]
    with pytest.raises(UnsupportedError, match="Direct updates to column 'b' containing blob v2"):
        dataset.update({"b": "X'41'"})
    dataset.update({"i": "i"}, "b.size > 100")
    assert contents(dataset) == {**expected(*kept), 102: value(2), 114: value(14)}


def test_merge_insert(dataset: LanceDataset) -> None:
    source = pa.Table.from_arrays(
        [pa.array([3, 8, 50]), blob_array([b"three", b"e" * 300, None]), pa.array(["x", "y", "z"])],
        schema=pa.schema([("i", pa.int64()), BLOB, ("t", pa.string())]),
    )
    dataset.merge_insert("i").when_matched_update_all().when_not_matched_insert_all().execute(source)
    changed = {**expected(*range(24)), 3: b"three", 8: b"e" * 300, 50: None}
    assert contents(dataset) == changed
    # the source lacks the blobs, or has nothing else
    partial = pa.table({"i": [4, 11], "t": ["p", "q"]})
    dataset.merge_insert("i").when_matched_update_all().execute(partial)
    assert contents(dataset) == changed
    blobs = pa.Table.from_arrays(
        [pa.array([5, 6]), blob_array([b"five", b"s" * 40])], schema=pa.schema([("i", pa.int64()), BLOB])
    )
    dataset.merge_insert("i").when_matched_update_all().execute(blobs)
    assert contents(dataset) == {**changed, 5: b"five", 6: b"s" * 40}
    assert dataset.to_table(filter="i in (4, 5)", columns=["t"])["t"].to_pylist() in (["p", "t5"], ["t5", "p"])


def test_compaction_and_cleanup(dataset: LanceDataset) -> None:
    dataset.delete("i % 5 = 0")
    before = side_files(dataset)
    metrics = dataset.optimize.compact_files()
    assert metrics.fragments_removed == 3
    assert metrics.fragments_added == 1
    assert contents(dataset) == expected(*(row for row in range(24) if row % 5))
    dataset.cleanup_old_versions(older_than=timedelta(0))
    after = side_files(dataset)
    assert after
    assert not set(before) & set(after)
    assert len({file.parent for file in after}) == 1
    assert contents(dataset) == expected(*(row for row in range(24) if row % 5))
    with pytest.raises(UnsupportedError, match="blob column 'b'"):
        lance_dataset.write_dataset(rows_of(24, 30), dataset, mode="append").optimize.compact_files(
            compaction_mode="force_binary_copy"
        )


def test_compaction_keeps_references(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    for name in ("a", "b"):
        (place / f"{name}.bin").write_bytes(name.encode() * 500)
    (tmp_path / "far.bin").write_bytes(b"far" * 100)
    values = [
        Blob.from_uri(str(place / "a.bin")),
        Blob.from_uri((place / "b.bin").as_uri(), 3, 9),
        Blob.from_uri((tmp_path / "far.bin").as_uri(), 1, 4),
        b"x" * 50,
    ]
    table = pa.Table.from_arrays([pa.array(range(4)), blob_array(values)], schema=pa.schema([("i", pa.int64()), BLOB]))
    base = DatasetBasePath(str(place), "place", is_dataset_root=False)
    dataset = lance_dataset.write_dataset(
        table, tmp_path / "t", max_rows_per_file=2, initial_bases=[base], allow_external_blob_outside_bases=True
    )
    descriptors = dataset.to_table(columns=["b"]).slice(0, 3).to_pylist()
    wanted = {0: b"a" * 500, 1: b"b" * 9, 2: b"arfa", 3: b"x" * 50}
    dataset.optimize.compact_files()
    assert contents(dataset) == wanted
    dataset.update({"i": "i"})
    assert contents(dataset) == wanted
    assert dataset.to_table(columns=["b"]).slice(0, 3).to_pylist() == descriptors
    for deep in (False, True):
        copy = tmp_path / f"copy-{deep}"
        clone = dataset.deep_clone if deep else dataset.shallow_clone
        clone(copy, dataset.version)
        assert contents(lance_dataset.dataset(copy)) == wanted


def test_new_references_lead_to_base_paths(dataset: LanceDataset, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    for name in ("place/a.bin", "b.bin"):
        (tmp_path / name).write_bytes(b"0123")
    dataset.add_bases([DatasetBasePath(str(tmp_path / "place"), "place", is_dataset_root=False)])
    inside, outside = (blob_array([(tmp_path / name).as_uri(), None]) for name in ("place/a.bin", "b.bin"))

    def source(values: pa.Array, field: pa.Field) -> pa.Table:
        return pa.Table.from_arrays([pa.array([1, 2]), values], schema=pa.schema([("i", pa.int64()), field]))

    def column() -> pa.RecordBatchReader:
        schema = pa.schema([blob_field("new")])
        whole = blob_array([(tmp_path / "b.bin").as_uri(), *[None] * 23])
        return pa.RecordBatchReader.from_batches(schema, pa.Table.from_arrays([whole], schema=schema).to_batches())

    fragment = dataset.get_fragments()[0]
    calls = (
        lambda: dataset.merge_insert("i").when_matched_update_all().execute(source(outside, BLOB)),
        lambda: dataset.merge(source(outside, blob_field("new")), "i"),
        lambda: dataset.add_columns(column()),
        lambda: fragment.merge(source(outside, blob_field("new")), "i"),
        lambda: fragment.update_columns(source(outside, BLOB), left_on="i"),
    )
    for call in calls:
        with pytest.raises(InvalidInputError, match="outside registered external bases"):
            call()
    dataset.merge_insert("i").when_matched_update_all().execute(source(inside, BLOB))
    assert contents(dataset) == {**expected(*range(24)), 1: b"0123", 2: None}
    dataset.update({"t": "'u'"}, "i < 4")
    assert contents(dataset) == {**expected(*range(24)), 1: b"0123", 2: None}


def test_columns(dataset: LanceDataset) -> None:
    dataset.add_columns({"n": "b.size", "m": "i + 1"})
    sizes = dataset.to_table(columns=["i", "n", "m"]).to_pylist()
    assert [row["n"] for row in sizes] == [None if value(row) is None else len(value(row) or b"") for row in range(24)]
    dataset.add_columns(blob_field("later"))
    assert contents(dataset, "later") == dict.fromkeys(range(24))

    @lance_dataset.batch_udf(output_schema=pa.schema([pa.field("first", pa.binary())]))
    def first(batch: pa.RecordBatch) -> pa.RecordBatch:
        found = [None if each is None else each[:1] for each in batch["b"].to_pylist()]
        return pa.record_batch([pa.array(found, pa.binary())], names=["first"])

    dataset.add_columns(first, read_columns=["b"])
    firsts = dataset.to_table(columns=["first"])["first"].to_pylist()
    assert firsts == [None if value(row) is None else (value(row) or b"")[:1] for row in range(24)]
    schema = pa.schema([("i", pa.int64()), blob_field("joined", **SMALL)])
    other = pa.Table.from_arrays(
        [pa.array(range(24)), blob_array([b"j" * (row * 9) for row in range(24)])], schema=schema
    )
    dataset.merge(other, "i")
    assert contents(dataset, "joined") == {row: b"j" * (row * 9) for row in range(24)}
    assert contents(dataset) == expected(*range(24))
    dataset.alter_columns({"path": "b", "name": "renamed"})
    assert contents(dataset, "renamed") == expected(*range(24))
    dataset.drop_columns(["joined"])
    assert dataset.schema.names == ["i", "renamed", "t", "n", "m", "later", "first"]


def test_column_from_a_stream(dataset: LanceDataset) -> None:
    schema = pa.schema([blob_field("s", **SMALL)])
    batches = pa.Table.from_arrays([blob_array([b"k" * (row * 9) for row in range(24)])], schema=schema).to_batches(5)
    dataset.add_columns(pa.RecordBatchReader.from_batches(schema, batches))
    assert contents(dataset, "s") == {row: b"k" * (row * 9) for row in range(24)}


def test_clones_and_branches(dataset: LanceDataset, tmp_path: Path) -> None:
    dataset.shallow_clone(tmp_path / "shallow", dataset.version)
    dataset.deep_clone(tmp_path / "deep", dataset.version)
    for name in ("shallow", "deep"):
        clone = lance_dataset.dataset(tmp_path / name)
        assert contents(clone) == expected(*range(24))
        clone.update({"t": "'c'"}, "i < 3")
        clone.optimize.compact_files()
        assert contents(clone) == expected(*range(24))
    assert len(list((tmp_path / "deep").glob("data/*/*.blob"))) > len(side_files(dataset))
    assert contents(dataset) == expected(*range(24))


def test_reads_after_restore_and_overwrite(dataset: LanceDataset) -> None:
    dataset.delete("i > 3")
    dataset = lance_dataset.write_dataset(rows_of(30, 33), dataset, mode="overwrite")
    assert contents(dataset) == expected(30, 31, 32)
    old = dataset.checkout_version(1)
    old.restore()
    assert contents(lance_dataset.dataset(dataset.uri)) == expected(*range(24))


def test_tables_whose_blobs_were_converted(tmp_path: Path) -> None:
    """The reference converts blob columns of 2.1 tables, and then cannot change or compact these tables."""
    marked = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([("i", pa.int64()), marked])
    for number, version in enumerate(("2.1", "2.2")):
        table = pa.table([[number], [b"%d" % number]], schema=schema)
        lance.write_dataset(table, tmp_path, mode="append", data_storage_version=version)
    with pytest.raises(OSError, match="Blob v2 requires"):
        lance.dataset(tmp_path).optimize.compact_files()
    dataset = lance_dataset.write_dataset(pa.table([[2], [b"2"]], schema=schema), tmp_path, mode="append")
    blobs = pa.Table.from_arrays(
        [pa.array([3]), blob_array([b"3"])], schema=pa.schema([("i", pa.int64()), blob_field("b")])
    )
    dataset = lance_dataset.write_dataset(blobs, tmp_path, mode="append")
    wanted = {number: b"%d" % number for number in range(4)}
    assert contents(dataset) == wanted
    dataset.update({"i": "i"}, "i = 0")
    dataset.merge_insert("i").when_matched_update_all().execute(blobs)
    assert contents(dataset) == wanted
    dataset.optimize.compact_files()
    assert contents(dataset) == wanted
    assert len(dataset.get_fragments()) == 1


def test_validation(dataset: LanceDataset) -> None:
    dataset.delete("i = 2")
    dataset.validate()
    first, *others = (file for file in side_files(dataset) if file.stat().st_size == 200)  # not of the deleted row
    content = first.read_bytes()
    os.truncate(first, len(content) - 1)
    with pytest.raises(CorruptFileError, match=f"but the file has {len(content) - 1}"):
        dataset.validate()
    first.write_bytes(content)
    dataset.validate()
    others[-1].unlink()
    with pytest.raises(MissingFileError, match="holds values of a blob column"):
        dataset.validate()


def test_sql(dataset: LanceDataset) -> None:
    found = dataset.sql("SELECT count(*) AS n FROM dataset WHERE b.size > 100").build().to_batch_records()
    assert pa.Table.from_batches(found)["n"].to_pylist() == [6]


def test_batches_of_large_values_are_bounded(tmp_path: Path) -> None:
    """A scan reads few rows at a time if their values are large, and samples none of them."""
    large = tmp_path / "large.bin"
    large.touch()
    os.truncate(large, 480 << 20)
    values = [Blob.from_uri(large.as_uri(), row << 23, 8 << 20) for row in range(60)]
    table = pa.Table.from_arrays([blob_array(values)], schema=pa.schema([blob_field("b")]))
    dataset = lance_dataset.write_dataset(table, tmp_path / "t", allow_external_blob_outside_bases=True)
    before = pa.total_allocated_bytes()
    batch = next(iter(dataset.to_batches(batch_size=2, blob_handling="all_binary", batch_readahead=1)))
    assert batch.num_rows == 2
    assert pa.total_allocated_bytes() - before < 200 << 20


@pytest.mark.parametrize("seed", range(3))
def test_damaged_descriptors(dataset: LanceDataset, seed: int) -> None:
    """Damaged files raise errors of the package, or values of the right number."""
    generator = random.Random(seed)
    file = sorted(Path(dataset.uri).glob("data/*.lance"))[0]
    content = file.read_bytes()
    for _ in range(40):
        damaged = bytearray(content)
        for _ in range(3):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        file.write_bytes(damaged)
        try:
            found = lance_dataset.dataset(dataset.uri).to_table(columns=["b"], blob_handling="all_binary")
            assert found.num_rows == 24
        except LanceError:
            pass


def test_side_file_of_a_cleaned_version(dataset: LanceDataset) -> None:
    for file in side_files(dataset):
        os.truncate(file, 1)
    with pytest.raises(CorruptFileError, match="but the file has 1"):
        dataset.optimize.compact_files()
    assert dataset.version == 1
    assert lance_dataset.dataset(dataset.uri).count_rows() == 24
