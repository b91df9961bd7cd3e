"""Tests of tables of old releases, changed by this package and by the reference in turn."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import lance as reference
import numpy as np
import pyarrow as pa
import pytest
from support.releases.old_tables import DATASETS, STABLE_RELEASES, copied
from support.tables.equality import assert_same

import lance_dataset as lance
from lance_dataset._proto import table_pb2
from lance_dataset.errors import UnsupportedError


@pytest.fixture(params=STABLE_RELEASES)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return copied(DATASETS / request.param / "ds.lance", tmp_path / "ds.lance")


def tree(folder: str) -> dict[str, tuple[bytes | None, int]]:
    """Return content and modification time of everything in a folder."""
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else None, path.stat().st_mtime_ns)
        for path in Path(folder).rglob("*")
    }


def ids(dataset: lance.LanceDataset | reference.LanceDataset) -> list[int]:
    return dataset.to_table(columns=["id"])["id"].to_pylist()


def manifests(folder: str) -> list[Path]:
    """Return the manifests, oldest first."""
    found = list(Path(folder, "_versions").glob("*.manifest"))
    return sorted(found, key=lambda path: int(path.stem), reverse=len(found[0].stem) == 20)


# -- as they are -----------------------------------------------------------------------------------------------------


def test_reading_writes_nothing(old: str) -> None:
    before = tree(old)
    dataset = lance.dataset(old)
    for entry in dataset.versions():
        version = dataset.checkout_version(entry["version"])
        assert version.to_table(columns=["id"]).num_rows == version.count_rows()
        version.take([0, 1])
        list(version.to_batches(columns=["id"], filter="id > 3"))
    dataset.validate()
    assert tree(old) == before


def test_counts_of_every_version(old: str) -> None:
    dataset = lance.dataset(old)
    for entry in dataset.versions():
        ours, theirs = dataset.checkout_version(entry["version"]), reference.dataset(old, version=entry["version"])
        assert ours.count_rows() == theirs.count_rows()
        assert ids(ours) == ids(theirs)


def test_changes_in_turn(old: str) -> None:
    """Both libraries delete, append and restore in turn, and each reads the other's changes."""
    ours = lance.dataset(old)
    count, version, files = ours.count_rows(), ours.data_storage_version, ours.version
    ours.delete("id % 7 = 3")
    assert ids(reference.dataset(old)) == ids(ours)
    more = ours.to_table(filter="id < 5")
    ours = lance.write_dataset(more, old, mode="append")
    theirs = reference.dataset(old)
    assert ids(theirs) == ids(ours) == [*ids(ours)[: -more.num_rows], *more["id"].to_pylist()]
    theirs.delete("id % 7 = 4")
    theirs.insert(theirs.to_table(filter="id < 3"))
    ours.checkout_latest()
    assert ids(ours) == ids(theirs)
    lance.dataset(old, version=files).restore()
    assert reference.dataset(old).count_rows() == lance.dataset(old).count_rows() == count
    assert lance.dataset(old).data_storage_version == version == reference.dataset(old).data_storage_version
    assert len({len(path.name) for path in manifests(old) if len(path.name) != 29} or {29}) <= 2
    for fragment, known in zip(ours.get_fragments(), theirs.get_fragments(), strict=True):
        for ours_file, their_file in zip(fragment.metadata.files, known.metadata.files, strict=True):
            assert ours_file.file_size_bytes == their_file.file_size_bytes


def test_migration(old: str) -> None:
    before = [ids(lance.dataset(old, version=entry["version"])) for entry in lance.dataset(old).versions()]
    dataset = lance.dataset(old)
    stale = lance.dataset(old)
    assert dataset.migrate_manifest_paths_v2() is None
    dataset.migrate_manifest_paths_v2()
    assert {len(path.name) for path in manifests(old)} == {29}
    assert not Path(old, "_latest.manifest").exists()
    assert [ids(reference.dataset(old, version=number)) for number in range(1, len(before) + 1)] == before
    stale.delete("id = 5")
    theirs = reference.dataset(old)
    theirs.delete("id = 6")
    assert ids(lance.dataset(old)) == ids(theirs) == [number for number in before[-1] if number not in (5, 6)]
    assert {len(path.name) for path in manifests(old)} == {29}


# -- with what older releases left out -------------------------------------------------------------------------------


Change = Callable[[table_pb2.Manifest], None]


def edit(path: Path, change: Change) -> None:
    """Change a manifest and leave everything in front of it in place."""
    data = path.read_bytes()
    (position,) = struct.unpack_from("<q", data, len(data) - 16)
    made = table_pb2.Manifest.FromString(data[position + 4 : -16])
    change(made)
    encoded = made.SerializeToString()
    path.write_bytes(data[:position] + struct.pack("<I", len(encoded)) + encoded + data[-16:])


def like_0_4(made: table_pb2.Manifest) -> None:
    like_0_7(made)
    made.ClearField("max_fragment_id")
    made.ClearField("transaction_file")
    made.ClearField("transaction_section")
    for fragment in made.fragments:
        if fragment.HasField("deletion_file"):
            fragment.deletion_file.num_deleted_rows = 0


def like_0_7(made: table_pb2.Manifest) -> None:
    for name in ("writer_version", "data_format"):
        made.ClearField(name)  # type: ignore[arg-type]
    for fragment in made.fragments:
        fragment.physical_rows = 0
        for file in fragment.files:
            file.file_major_version = file.file_minor_version = file.file_size_bytes = 0


def like_0_8_0(made: table_pb2.Manifest) -> None:
    """Edit a manifest as 0.8.0 wrote it, which took the number of live rows for the number of all rows."""
    like_0_7(made)
    for fragment in made.fragments:
        fragment.physical_rows = 90


def rows(start: int, stop: int) -> pa.Table:
    numbers = np.arange(start, stop)
    return pa.table(
        {
            "id": numbers,
            "text": [f"row {number}" for number in numbers],
            "vector": pa.array([[number, number + 0.5] for number in numbers], pa.list_(pa.float32(), 2)),
        }
    )


def legacy_table(path: Path, change: Change) -> str:
    """Make a table of an old release: two fragments, rows deleted in the first, three versions."""
    reference.write_dataset(rows(0, 100), path, data_storage_version="legacy", enable_v2_manifest_paths=False)
    reference.write_dataset(rows(100, 150), path, mode="append")
    reference.dataset(path).delete("id % 10 = 4")
    for name in manifests(str(path)):
        edit(name, change)
    return str(path)


@pytest.mark.parametrize("change", [like_0_4, like_0_7, like_0_8_0])
def test_counts_that_are_missing_or_wrong(tmp_path: Path, change: Change) -> None:
    table = legacy_table(tmp_path / "t.lance", change)
    before = tree(table)
    dataset = lance.dataset(table)
    assert (dataset.count_rows(), dataset.data_storage_version) == (135, "0.1")
    assert_same(dataset.to_table(), reference.dataset(table).to_table())
    assert_same(dataset.take([0, 89, 90, 134]), reference.dataset(table).take([0, 89, 90, 134]))
    assert dataset.count_rows("id < 120") == reference.dataset(table).count_rows("id < 120")
    assert tree(table) == before
    twin = copied(Path(table), tmp_path / "twin.lance")
    dataset.delete("id = 7")
    reference.dataset(twin).delete("id = 7")
    for ours, theirs in zip(lance.dataset(table).get_fragments(), lance.dataset(twin).get_fragments(), strict=True):
        assert ours.metadata.physical_rows == theirs.metadata.physical_rows == len(ours.to_table()) + ours.num_deletions
        assert [file.file_size_bytes for file in ours.data_files()] == [
            os.path.getsize(f"{table}/data/{file.path}") for file in ours.data_files()
        ]
    assert_same(reference.dataset(table).to_table(), dataset.to_table())
    assert reference.dataset(table).count_rows() == 134
    reference.dataset(table).delete("id = 8")
    assert lance.dataset(table).count_rows() == 133


def test_sizes_that_are_wrong(tmp_path: Path) -> None:
    """Wrong sizes of legacy files, which release 1.0 noted, are ignored."""

    def wrong(made: table_pb2.Manifest) -> None:
        for fragment in made.fragments:
            fragment.files[0].file_size_bytes -= 9

    table = legacy_table(tmp_path / "t.lance", wrong)
    assert_same(lance.dataset(table).to_table(), reference.dataset(table).to_table())
    lance.dataset(table).delete("id = 7")
    assert reference.dataset(table).count_rows() == 134


def test_nothing_but_the_latest_copy(tmp_path: Path) -> None:
    table = legacy_table(tmp_path / "t.lance", like_0_4)
    expected = lance.dataset(table).to_table()
    shutil.copy(f"{table}/_versions/3.manifest", f"{table}/_latest.manifest")
    shutil.rmtree(f"{table}/_versions")
    before = tree(table)
    dataset = lance.dataset(table)
    assert_same(dataset.to_table(), expected)
    assert dataset.version == dataset.latest_version == lance.dataset(table, version=3).version == 3
    assert [entry["version"] for entry in dataset.versions()] == [3]
    assert tree(table) == before
    dataset.delete("id = 7")
    theirs = reference.dataset(table)
    assert theirs.count_rows() == 134
    assert [entry["version"] for entry in theirs.versions()] == [3, 4]
    assert Path(f"{table}/_latest.manifest").read_bytes() == Path(f"{table}/_versions/4.manifest").read_bytes()


# -- legacy files beside later ones ----------------------------------------------------------------------------------


def test_wrong_format_is_repaired(tmp_path: Path) -> None:
    """A commit repairs a wrong format; the reference cannot change such a table before."""
    table = str(tmp_path / "t.lance")
    reference.write_dataset(rows(0, 100), table, data_storage_version="2.0", enable_v2_manifest_paths=False)
    edit(manifests(table)[0], lambda made: setattr(made.data_format, "version", "0.1"))
    dataset = lance.dataset(table)
    assert dataset.data_storage_version == "2.0"
    assert_same(dataset.to_table(), reference.dataset(table).to_table())
    with pytest.raises(OSError, match="mixture"):
        reference.write_dataset(rows(100, 110), table, mode="append")
    lance.write_dataset(rows(100, 110), table, mode="append")
    assert reference.dataset(table).data_storage_version == "2.0"
    reference.write_dataset(rows(110, 120), table, mode="append")
    assert_same(lance.dataset(table).to_table(), rows(0, 120))


def mixture(folder: Path) -> str:
    table, other = folder / "t.lance", folder / "other.lance"
    reference.write_dataset(rows(0, 50), table, data_storage_version="2.0", enable_v2_manifest_paths=False)
    reference.write_dataset(rows(50, 80), other, data_storage_version="legacy", enable_v2_manifest_paths=False)
    (file,) = (other / "data").iterdir()
    shutil.copy(file, table / "data" / file.name)
    (fragment,) = reference.dataset(other).get_fragments()

    def add(made: table_pb2.Manifest) -> None:
        made.data_format.version, made.max_fragment_id = "0.1", 1
        added = made.fragments.add(id=1, physical_rows=30)
        stored = added.files.add(path=file.name, fields=fragment.metadata.files[0].fields)
        stored.file_minor_version = 2

    edit(manifests(str(table))[0], add)
    return str(table)


def test_mixture(tmp_path: Path) -> None:
    table = mixture(tmp_path)
    dataset = lance.dataset(table)
    assert_same(dataset.to_table(), rows(0, 80))
    assert_same(dataset.to_table(), reference.dataset(table).to_table())
    assert_same(dataset.take([49, 50, 79]), rows(0, 80).take([49, 50, 79]))
    before = tree(table)
    for change in (lambda: dataset.delete("id = 3"), lambda: dataset.restore()):
        with pytest.raises(UnsupportedError, match="mixed by mistake"):
            change()
    assert {name for name in tree(table) if "." in name} >= {name for name in before if "." in name}
    assert dataset.latest_version == 1
    dataset.delete("id >= 50")
    assert reference.dataset(table).data_storage_version == "2.0"
    assert_same(reference.dataset(table).to_table(), rows(0, 50))


# -- fields in several files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["legacy", "2.0"])
def test_repeated_fields(tmp_path: Path, version: str) -> None:
    """A commit repairs repeated fields, as in `corrupt_schema` of release 0.10.5.

    Until then the reference reads the first file.
    """
    table = tmp_path / "t.lance"
    right = {"b": [0, 4, 8, 12], "c": [0, 5, 10, 15]}
    parts = [{"a": [0, 1, 2, 3]}, {"x": [7] * 4, "b": [8] * 4}, {"c": [9] * 4}, right]
    stored: list[str] = []
    for number, (part, ids_of) in enumerate(zip(parts, ([0], [1, 2], [3], [2, 3]), strict=True)):
        folder = table if number == 0 else tmp_path / str(number)
        reference.write_dataset(pa.table(part), folder, data_storage_version=version, enable_v2_manifest_paths=False)
        (file,) = (folder / "data").iterdir()
        if number:
            shutil.copy(file, table / "data" / file.name)
        stored.append(file.name)
        assert len(ids_of) == len(part)

    def repeat(made: table_pb2.Manifest) -> None:
        template = table_pb2.DataFile.FromString(made.fragments[0].files[0].SerializeToString())
        del made.fragments[0].files[:]
        for name, ids_of in zip(stored, ([0], [1, 2], [3], [2, 3]), strict=True):
            file = made.fragments[0].files.add()
            file.CopyFrom(template)
            file.path, file.fields[:], file.file_size_bytes = name, ids_of, 0
            file.column_indices[:] = range(len(ids_of)) if version != "legacy" else []
        for name, field_id in (("b", 2), ("c", 3)):
            made.fields.add(name=name, id=field_id, parent_id=-1, logical_type="int64", nullable=True, encoding="PLAIN")

    edit(manifests(str(table))[0], repeat)
    dataset = lance.dataset(table)
    expected = pa.table({"a": [0, 1, 2, 3], **right})
    assert_same(dataset.to_table(), expected)
    assert reference.dataset(table).to_table() != expected
    dataset.delete("a = 2")
    left = expected.take([0, 1, 3])
    assert_same(dataset.to_table(), left)
    assert_same(lance.dataset(table).to_table(), left)
    assert_same(reference.dataset(table).to_table(), left)
    assert [file.fields for file in dataset.get_fragments()[0].data_files()] == [[0], [4, 5]]
    reference.dataset(table).add_columns({"d": "b + c"})
    assert lance.dataset(table).to_table()["d"].to_pylist() == [0, 9, 27]


# -- dictionaries ----------------------------------------------------------------------------------------------------


def words(values: list[str], positions: list[int]) -> pa.Table:
    word = pa.DictionaryArray.from_arrays(pa.array(positions, pa.int8()), pa.array(values))
    number = pa.DictionaryArray.from_arrays(pa.array(positions, pa.int16()), pa.array([7, -8, 9], pa.int64()))
    inner = pa.StructArray.from_arrays([word], ["word"])
    return pa.table({"id": range(len(positions)), "word": word, "number": number, "inner": inner})


def test_dictionaries_stay(tmp_path: Path) -> None:
    table = str(tmp_path / "t.lance")
    data = words(["x", "yy", "zzz"], [0, 1, 2, 2, 1, 0, 2])
    reference.write_dataset(data, table, data_storage_version="legacy", enable_v2_manifest_paths=False)
    expected = [data.to_pylist()]
    dataset = lance.dataset(table)
    assert dataset.to_table().to_pylist() == expected[0]

    def check(wanted: list[dict]) -> None:
        for found in (reference.dataset(table), lance.dataset(table)):
            assert found.to_table().to_pylist() == wanted
        # by itself, without the state of the handle
        names = manifests(table)
        assert Path(f"{table}/_latest.manifest").read_bytes() == names[-1].read_bytes()

    dataset.delete("id = 3")
    left = [row for row in expected[0] if row["id"] != 3]
    check(left)
    lance.write_dataset(data, table, mode="append")
    check([*left, *expected[0]])
    reference.dataset(table).delete("id = 0")
    dataset = lance.dataset(table)
    dataset.delete("id = 1")
    check([row for row in [*left, *expected[0]] if row["id"] > 1])
    lance.dataset(table, version=1).restore()
    check(expected[0])
    other = words(["other", "", "values"], [2, 0, 0])
    lance.write_dataset(other, table, mode="overwrite")
    check(reference.dataset(table).to_table().to_pylist())
    assert [row["number"] for row in lance.dataset(table).to_table().to_pylist()] == [9, 7, 7]
    assert lance.dataset(table).data_storage_version == "0.1"
    lance.write_dataset(other, table, mode="overwrite", data_storage_version="2.0")
    assert reference.dataset(table).to_table().to_pylist() == other.to_pylist()
