"""Tests of damaged tables that `validate` must find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import CorruptFileError, LanceError, MissingFileError
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.lineage.row_versions import RowVersions
from lance_dataset.table.manifest import Manifest, encode_manifest


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64()), "v": [f"s{i}" for i in range(start, stop)]})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make two fragments of ten rows with stable row ids, with a deleted row each."""
    dataset = lance_dataset.write_dataset(rows(0, 20), tmp_path / "t", enable_stable_row_ids=True, max_rows_per_file=10)
    dataset.delete("id in (1, 12)")
    dataset.validate()
    return tmp_path / "t"


def is_broken(fragment: lance_dataset.LanceFragment) -> bool:
    try:
        fragment.validate()
    except LanceError:
        return True
    return False


@pytest.mark.parametrize(
    ("folder", "damage", "error"),
    [
        ("data", Path.unlink, MissingFileError),
        ("data", lambda file: file.write_bytes(file.read_bytes()[:-1]), CorruptFileError),
        ("data", lambda file: file.write_bytes(file.read_bytes() + b"x"), CorruptFileError),
        ("_deletions", Path.unlink, MissingFileError),
        ("_deletions", lambda file: file.write_bytes(file.read_bytes()[:-1]), CorruptFileError),
    ],
)
def test_damaged_files(path: Path, folder: str, damage: Callable[[Path], object], error: type[LanceError]) -> None:
    """`validate` finds damaged files, also on a handle that has the files open already."""
    opened = lance_dataset.dataset(path)
    opened.to_table()
    file = min((path / folder).iterdir())
    damage(file)
    for handle in (lance_dataset.dataset(path), opened):
        with pytest.raises(error, match=file.name):
            handle.validate()
    assert sum(map(is_broken, lance_dataset.dataset(path).get_fragments())) == 1


def test_a_file_in_the_place_of_another(path: Path) -> None:
    """`validate` finds a valid file with another number of rows in place of the right one."""
    lance_dataset.write_dataset(rows(0, 5), path, mode="append")
    last = [each.data_files()[0] for each in lance_dataset.dataset(path).get_fragments()][-1]

    def swapped(fragment: Fragment) -> Fragment:
        return replace(fragment, files=(replace(fragment.files[0], path=last.path, file_size_bytes=None),))

    with pytest.raises(CorruptFileError, match=last.path):
        rewrite(path, with_fragment(swapped, 0)).validate()


def rewrite(path: Path, change: Callable[[Manifest], Manifest]) -> lance_dataset.LanceDataset:
    """Return the dataset with another manifest of its newest version."""
    manifest = lance_dataset.dataset(path).snapshot.manifest
    Path(manifest.path).write_bytes(encode_manifest(change(manifest)))
    return lance_dataset.dataset(path)


def with_fragment(change: Callable[[Fragment], Fragment], fragment_id: int = 1) -> Callable[[Manifest], Manifest]:
    def changed(manifest: Manifest) -> Manifest:
        fragments = [change(each) if each.id == fragment_id else each for each in manifest.fragments]
        return replace(manifest, fragments=tuple(fragments))

    return changed


def other_deletions(fragment: Fragment) -> Fragment:
    assert fragment.deletion_file is not None
    return replace(fragment, deletion_file=replace(fragment.deletion_file, num_deleted_rows=2))


def test_the_helper_changes_nothing_by_itself(path: Path) -> None:
    rewrite(path, lambda manifest: manifest).validate()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda fragment: replace(fragment, physical_rows=9), "10 rows"),
        (lambda fragment: replace(fragment, row_ids=RowIds.from_range(10, 9).encode()), "9 row ids for 10 rows"),
        (lambda fragment: replace(fragment, row_ids=RowIds.from_range(9, 10).encode()), "row id 9 belongs to several"),
        (lambda fragment: replace(fragment, row_ids=RowIds.from_range(15, 10).encode()), "ids would repeat"),
        (
            lambda fragment: replace(
                fragment, row_ids=RowIds.from_values([10, 11, 12, 13, 10, *range(15, 20)]).encode()
            ),
            "row id 10 belongs to several",
        ),
        (
            lambda fragment: replace(fragment, created_at_versions=RowVersions.constant(11, 1).encode()),
            "only 10 are expected",
        ),
        (
            lambda fragment: replace(fragment, last_updated_at_versions=RowVersions.constant(9, 1).encode()),
            "9 row versions for 10 rows",
        ),
        (other_deletions, "its manifest says 2"),
    ],
)
def test_manifests_that_contradict_the_files(path: Path, change: Callable[[Fragment], Fragment], message: str) -> None:
    with pytest.raises(CorruptFileError, match=message):
        rewrite(path, with_fragment(change)).validate()


def test_ids_of_deleted_rows_may_be_taken(path: Path) -> None:
    """`validate` accepts deleted rows whose ids belong to other rows, as after a row moved."""
    taken = RowIds.from_values([1, *range(11, 20)]).encode()
    rewrite(path, with_fragment(lambda fragment: replace(fragment, row_ids=taken))).validate()


def test_tables_of_the_reference(tmp_path: Path) -> None:
    for stable in (True, False):
        dataset = lance.write_dataset(
            rows(0, 50), tmp_path / str(stable), enable_stable_row_ids=stable, max_rows_per_file=20
        )
        dataset.update({"v": "'x'"}, where="id % 3 = 0")
        dataset.delete("id % 7 = 0")
        dataset.add_columns({"w": "id"})
        dataset.drop_columns(["v"])
        dataset.create_scalar_index("id", "BTREE")
        lance_dataset.dataset(tmp_path / str(stable)).validate()


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(file.read_bytes() + b"x")])
def test_files_of_indices(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    lance.write_dataset(rows(0, 50), tmp_path / "t").create_scalar_index("id", "BTREE")
    dataset = lance_dataset.dataset(tmp_path / "t")
    dataset.validate()
    file = min((tmp_path / "t" / "_indices").glob("*/*"))
    damage(file)
    with pytest.raises((MissingFileError, CorruptFileError), match=file.name):
        dataset.validate()
