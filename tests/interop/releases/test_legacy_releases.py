"""Tests of datasets exchanged with the oldest releases of the reference, which support legacy files only.

`scripts/old_releases.sh` installs them.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.arrays.random_arrays import FLAT_TYPES, random_table, whole
from support.files.legacy_loss import assert_same_but_lost
from support.reference.both_read import assert_both_read
from support.releases.old_release_runs import Run, check, read_dump, runner, write_ipc
from support.tables.equality import assert_same

import lance_dataset

DATASETS = Path(__file__).parents[2] / "fixtures" / "datasets"
#: The oldest release that can be installed, and the last one without later file versions.
RELEASES = ("0.4.21", "0.10.18")
#: Types that a release cannot read in its own files.
LACKING = {"0.4.21": ("fixed_binary_1", "fixed_binary_3", "fixed_binary_40"), "0.10.18": ()}
KINDS = {
    **{name: kind for name, kind in FLAT_TYPES.items() if name not in ("fixed_binary_0", "timestamp_offset")},
    "list": pa.list_(pa.int64()),
    "large_list": pa.large_list(pa.string()),
    "list_of_list": pa.list_(pa.list_(pa.int16())),
    "list_of_struct": pa.list_(pa.struct([("a", pa.int8()), ("b", pa.string())])),
    "struct": pa.struct([("a", pa.int8()), ("b", pa.list_(pa.float64())), ("c", pa.struct([("d", pa.binary())]))]),
    "fixed_list": pa.list_(pa.float32(), 16),
    "fixed_list_of_bytes": pa.list_(pa.uint8(), 3),
    "list_of_fixed_list": pa.list_(pa.list_(pa.int16(), 3)),
}
#: The dictionary of all parts: these releases require the one that the dataset started with.
WORDS = pa.array(["word", "Wörter", "w"])


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def run(release: str) -> Run:
    return runner(release)


def rows(release: str, start: int, count: int, share: float = 0.0) -> pa.Table:
    kinds = {name: kind for name, kind in KINDS.items() if name not in LACKING[release]}
    table = random_table(kinds, count, share, seed=start)
    numbers = range(start, start + count)
    indices = pa.array([number % 3 for number in numbers], pa.uint8())
    table = table.append_column("dictionary", pa.DictionaryArray.from_arrays(indices, WORDS))
    return table.add_column(0, "id", pa.array(numbers, pa.int64()))


def appends_dictionaries(release: str) -> bool:
    """Return True if the release can append to a dataset with dictionary columns."""
    return release != "0.4.21"


def write(table: pa.Table, path: Path, **options: Any) -> None:
    """Write batches of 50 rows in files of 150, as these releases can open them."""
    options = {"data_storage_version": "legacy", "enable_v2_manifest_paths": False, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # columns whose nulls such files cannot store
        lance_dataset.write_dataset(table, path, max_rows_per_group=50, max_rows_per_file=150, **options)


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("count", [1, 400])
def test_they_read_what_we_write(run: Run, release: str, tmp_path: Path, count: int, share: float) -> None:
    table = rows(release, 0, count, share)
    path = tmp_path / "t"
    write(table, path)
    ours = assert_both_read(path)
    assert_same_but_lost(ours, table)
    check(run, path, ours, tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_we_read_what_they_write(run: Run, release: str, tmp_path: Path, share: float) -> None:
    table = rows(release, 0, 400, share)
    path = tmp_path / "t"
    if appends_dictionaries(release):
        run("write", path, write_ipc(table.slice(0, 230), tmp_path / "in"), "legacy")
        run("write", path, write_ipc(table.slice(230), tmp_path / "in"), "legacy")
    else:
        run("write", path, write_ipc(table, tmp_path / "in"), "legacy")
    run("dump", path, tmp_path / "dump")
    theirs = read_dump(f"{tmp_path}/dump.rows")
    dataset = lance_dataset.dataset(path)
    assert_same(dataset.to_table(), theirs)
    assert_same_but_lost(theirs, table)
    chosen = np.random.default_rng(0).integers(0, 400, 40)
    assert_same(dataset.take(chosen), whole(theirs).take(chosen))
    assert_same(
        dataset.to_table(filter="id % 3 = 1 and id >= 40", columns=["id", "string", "double"]),
        theirs.filter([value % 3 == 1 and value >= 40 for value in range(400)]).select(["id", "string", "double"]),
    )


def test_turns(run: Run, release: str, tmp_path: Path) -> None:
    """The release creates; we and it append and, if it can, delete in turns; each reads the other's changes."""
    path = tmp_path / "t"
    parts = [rows(release, start, 80, 0.2) for start in range(0, 320, 80)]
    if not appends_dictionaries(release):
        parts = [part.drop_columns(["dictionary"]) for part in parts]
    run("write", path, write_ipc(parts[0], tmp_path / "in"), "legacy")
    write(parts[1], path, mode="append")
    check(run, path, lance_dataset.dataset(path).to_table(), tmp_path)
    run("write", path, write_ipc(parts[2], tmp_path / "in"), "legacy")
    write(parts[3], path, mode="append")
    expected = pa.concat_tables(parts)
    if release != "0.4.21":  # which has no deletions
        run("delete", path, "id >= 70 and id < 90")
        lance_dataset.dataset(path).delete("id = 200 or id < 3")
        gone = {*range(70, 90), 200, 0, 1, 2}
        expected = expected.filter(pa.array([value not in gone for value in expected["id"].to_pylist()]))
    read = assert_both_read(path)
    assert_same_but_lost(read, expected)
    check(run, path, read, tmp_path)
    assert lance.dataset(path).count_rows() == expected.num_rows


def test_fixture_data_written_by_us(run: Run, release: str, tmp_path: Path) -> None:
    """The release reads columns like those of its own fixture, written by this package, as this package does."""
    source = pa.ipc.open_file(DATASETS / "pylance-14.0.2-2.2" / "expected.arrow").read_all()
    known = pa.ipc.open_file(DATASETS / f"pylance-{release}-default" / "expected.arrow").schema
    source = source.select([name for name in known.names if name in source.column_names and name != "id"])
    source = source.add_column(0, "id", pa.array(range(source.num_rows), pa.int64()))
    path = tmp_path / "t"
    write(source, path)
    read = assert_both_read(path)
    assert_same_but_lost(read, source)
    check(run, path, read, tmp_path)
