"""Tests of datasets of this package, read and changed by old releases. `scripts/old_releases.sh` installs them."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.arrays.random_arrays import FLAT_TYPES, NULLS, random_table
from support.reference.both_read import assert_both_read
from support.releases.old_release_runs import Run, check, runner, write_ipc

import lance_dataset

PROJECT = Path(__file__).parents[3]
DATASETS = PROJECT / "tests" / "fixtures" / "datasets"
#: A selection of types. The others have the same rows in other files.
FIXTURES = ("pylance-0.15.0-v2", "pylance-1.0.0-2.0", "pylance-1.0.0-2.1", "pylance-14.0.2-2.2")
#: Releases and the file versions that were stable in them.
RELEASES = [("0.20.0", "2.0"), ("1.0.0", "2.0"), ("1.0.0", "2.1")]


@pytest.fixture(params=RELEASES, ids=lambda pair: "-".join(pair))
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param


@pytest.fixture
def release(pair: tuple[str, str]) -> str:
    return pair[0]


@pytest.fixture
def version(pair: tuple[str, str]) -> str:
    return pair[1]


@pytest.fixture
def run(release: str) -> Run:
    return runner(release)


#: Types that a release does not know: it cannot even open a dataset that has one.
LACKING = {"0.20.0": {"fixed_list_of_fixed_list", "timestamp_offset"}, "1.0.0": {"timestamp_offset"}}

#: Releases that take wrong rows from fragments with deletions, also of their own datasets.
WRONG_TAKES = {"0.20.0"}

KINDS = {
    **{name: kind for name, kind in FLAT_TYPES.items() if name != "fixed_binary_0"},
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "dictionary_small": pa.dictionary(pa.uint8(), pa.string()),
    "null": pa.null(),
    "list": pa.list_(pa.int64()),
    "large_list": pa.large_list(pa.string()),
    "list_of_list": pa.list_(pa.list_(pa.bool_())),
    "list_of_struct": pa.list_(pa.struct([("a", pa.int8()), ("b", pa.string())])),
    "struct": pa.struct([("a", pa.int8()), ("b", pa.list_(pa.float64())), ("c", pa.struct([("d", pa.binary())]))]),
    "fixed_list": pa.list_(pa.float32(), 16),
    "fixed_list_of_bytes": pa.list_(pa.uint8(), 3),
    "list_of_fixed_list": pa.list_(pa.list_(pa.int16(), 3)),
    "fixed_list_of_fixed_list": pa.list_(pa.list_(pa.float64(), 2), 3),
}


def loses_rows(release: str, version: str, lists: pa.ChunkedArray) -> bool:
    """Return True if the release loses rows of the table: 1.0.0 does for some 2.1 pages of lists.

    These are pages whose lists have null items but are themselves neither null nor empty, also of its own files.
    """
    kind = lists.type
    if (release, version) != ("1.0.0", "2.1") or not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    lengths = pc.list_value_length(lists)
    return not pc.any(pc.equal(pc.fill_null(lengths, 0), 0)).as_py() and pc.list_flatten(lists).null_count > 0


def storable(table: pa.Table, version: str) -> pa.Table:
    """Return the table without columns of null structs if the file version has none."""
    null_structs = [
        field.name for field in table.schema if pa.types.is_struct(field.type) and table[field.name].null_count
    ]
    return table.drop_columns(null_structs) if version == "2.0" else table


def rows(release: str, start: int, count: int, nulls: str = "some") -> pa.Table:
    kinds = {name: kind for name, kind in KINDS.items() if name not in LACKING[release]}
    table = random_table(kinds, count, NULLS[nulls], seed=start)
    return table.add_column(0, "id", pa.array(range(start, start + count), pa.int64()))


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("count", [0, 1, 400])
def test_they_read_what_we_write(run: Run, release: str, version: str, tmp_path: Path, count: int, nulls: str) -> None:
    table = rows(release, 0, count, nulls)
    table = table.drop_columns([name for name in table.column_names if loses_rows(release, version, table[name])])
    path = tmp_path / "t"
    lance_dataset.write_dataset(table, path, max_rows_per_file=150, max_page_bytes=1_000, data_storage_version=version)
    check(run, path, table, tmp_path)


def test_turns(run: Run, release: str, version: str, tmp_path: Path) -> None:
    """Release and package create, append and delete in turns; both and the reference read the same after each step."""
    takes = release not in WRONG_TAKES

    def some_rows(start: int, count: int) -> pa.Table:
        table = rows(release, start, count)
        # 0.20.0 appends a dictionary column only if its dictionary is the one it started with.
        return table.drop_columns(["dictionary", "dictionary_small"]) if release == "0.20.0" else table

    path = tmp_path / "t"
    expected = some_rows(0, 100)
    run("write", path, write_ipc(expected, tmp_path / "in"), version)
    assert_both_read(path, expected)
    lance_dataset.write_dataset(some_rows(100, 50), path, mode="append")
    expected = pa.concat_tables([expected, some_rows(100, 50)])
    check(run, path, expected, tmp_path)
    for remove in (lambda predicate: run("delete", path, predicate), lance_dataset.dataset(path).delete):
        first = expected["id"][5].as_py()
        remove(f"id >= {first} and id < {first + 10} or id = {first + 100}")
        gone = [*range(first, first + 10), first + 100]
        expected = expected.filter(pa.array([value not in gone for value in expected["id"].to_pylist()]))
        assert_both_read(path, expected)
        check(run, path, expected, tmp_path, takes=takes)
    run("write", path, write_ipc(some_rows(200, 20), tmp_path / "in"), version)
    expected = pa.concat_tables([expected, some_rows(200, 20)])
    assert_both_read(path, expected)
    run("compact", path, "")
    lance_dataset.write_dataset(some_rows(300, 20), path, mode="append")
    expected = pa.concat_tables([expected, some_rows(300, 20)])
    assert_both_read(path, expected)
    check(run, path, expected, tmp_path, takes=takes)


@pytest.mark.parametrize("fixture", FIXTURES)
def test_fixture_data_written_by_us(run: Run, release: str, version: str, tmp_path: Path, fixture: str) -> None:
    source = pa.ipc.open_file(DATASETS / fixture / "expected.arrow").read_all()
    names = [name for name in lance_dataset.dataset(DATASETS / fixture / "ds.lance").schema.names if name != "id"]
    source = source.select([name for name in names if name in source.column_names and name not in LACKING[release]])
    source = storable(source, version).add_column(0, "id", pa.array(range(source.num_rows), pa.int64()))
    path = tmp_path / "t"
    lance_dataset.write_dataset(source, path, max_rows_per_file=200, data_storage_version=version)
    assert_both_read(path, source)
    check(run, path, source, tmp_path)


def test_they_read_many_deletions_and_other_versions(run: Run, release: str, version: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = pa.table({"id": pa.array(range(20_000), pa.int64())})
    lance_dataset.write_dataset(table, path, enable_v2_manifest_paths=False, data_storage_version=version)
    lance_dataset.dataset(path).delete("id < 6000")
    takes = release not in WRONG_TAKES
    check(run, path, table.slice(6_000), tmp_path, takes=takes)
    lance_dataset.write_dataset(table.slice(0, 10), path, mode="overwrite", data_storage_version=version)
    check(run, path, table.slice(0, 10), tmp_path)
    lance_dataset.dataset(path, version=2).restore()
    check(run, path, table.slice(6_000), tmp_path, takes=takes)
    assert lance.dataset(path).count_rows() == 14_000
