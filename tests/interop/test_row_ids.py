"""Tests of stable row ids and row versions: the same histories by this package, by the reference, and in turn."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import lance as reference
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables.equality import assert_same

import lance_dataset as lance
from lance_dataset._proto import rowids_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.file import LanceFileWriter
from lance_dataset.io.resolve import resolve
from lance_dataset.table.flags import Feature
from lance_dataset.table.fragment import DataFile, Fragment, Spilled
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.lineage.row_versions import RowVersions
from lance_dataset.table.manifest import Manifest, encode_manifest, read_manifest
from lance_dataset.table.versions import locate_version

SYSTEM = ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"]


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"a": np.arange(start, stop)})


def lineage(path: str, library: Any) -> pa.Table:
    return library.dataset(path).to_table(columns=["a", *SYSTEM])


def manifest_of(path: str) -> Manifest:
    store, root = resolve(path)
    return read_manifest(store, locate_version(store, root, lance.dataset(path).version))


def assert_sound(path: str) -> pa.Table:
    """Check that both libraries read the same, and that rows are found by id."""
    expected = lineage(path, reference)
    assert_same(lineage(path, lance), expected)
    dataset = lance.dataset(path)
    ids = expected["_rowid"].to_numpy().copy()
    np.random.default_rng(0).shuffle(ids)
    found = dataset._take_rows(ids, ["_rowid", "a", "_row_last_updated_at_version"])
    assert found["_rowid"].to_pylist() == ids.tolist()
    assert_same(found.sort_by("_rowid"), expected.select(found.column_names).sort_by("_rowid"))
    missing = np.setdiff1d(np.arange(int(ids.max(initial=0)) + 5), ids)
    assert dataset._take_rows(missing, ["a"]).num_rows == 0
    return expected


class Copies:
    """Two copies of a table with the same steps. A step may take a library one or two versions."""

    def __init__(self, path: str, twin: str) -> None:
        self.paths = (path, twin)
        self.versions: tuple[list[int], list[int]] = ([], [])

    def step(self, *actions: Callable[[str, list[int]], object]) -> None:
        """Change each copy (both the same way if one action is given), and compare them."""
        for action, path, versions in zip(actions * (2 // len(actions)), self.paths, self.versions, strict=True):
            action(path, versions)
            versions.append(lance.dataset(path).version)
        found, expected = (
            self._by_step(assert_sound(path), versions)
            for path, versions in zip(self.paths, self.versions, strict=True)
        )
        assert_same(found, expected)
        assert manifest_of(self.paths[0]).next_row_id == manifest_of(self.paths[1]).next_row_id

    @staticmethod
    def _by_step(table: pa.Table, versions: list[int]) -> pa.Table:
        """Return the table with the numbers of steps in place of versions."""
        for name in SYSTEM[3:]:
            steps = np.searchsorted(versions, table[name].to_numpy())
            table = table.set_column(table.column_names.index(name), name, pa.array(steps))
        return table


# -- the same history ------------------------------------------------------------------------------------------------


def append(library: Any, path: str, start: int, stop: int, **options: Any) -> None:
    library.write_dataset(rows(start, stop), path, mode="append", max_rows_per_file=15, **options)


def test_everything_that_both_can(tmp_path: Path) -> None:
    copies = Copies(str(tmp_path / "ours"), str(tmp_path / "theirs"))

    def both(action: Callable[[Any, str, list[int]], object]) -> None:
        copies.step(partial(action, lance), partial(action, reference))

    both(lambda library, path, _: append(library, path, 0, 40, enable_stable_row_ids=True))
    both(lambda library, path, _: append(library, path, 40, 60))
    both(lambda library, path, _: library.dataset(path).delete("a % 7 = 3"))
    both(lambda library, path, _: library.dataset(path).optimize.compact_files())
    both(lambda library, path, _: append(library, path, 60, 70))
    copies.step(lambda path, _: reference.dataset(path).update({"a": "a + 1000"}, where="a % 5 = 1"))
    both(lambda library, path, _: library.dataset(path).optimize.compact_files(target_rows_per_fragment=30))
    both(lambda library, path, _: library.dataset(path).delete("a > 1020"))
    both(lambda library, path, _: library.write_dataset(rows(0, 9), path, mode="overwrite"))
    both(lambda library, path, _: append(library, path, 9, 12))
    both(lambda library, path, versions: library.dataset(path, version=versions[4]).restore())
    both(lambda library, path, _: append(library, path, 200, 210))
    both(lambda library, path, _: library.dataset(path).optimize.compact_files())
    copies.step(lambda path, _: reference.dataset(path).add_columns({"b": "a * 2"}))
    more = rows(0, 9).append_column("b", rows(0, 9)["a"])
    both(lambda library, path, _: library.write_dataset(more, path, mode="append"))
    both(lambda library, path, _: library.dataset(path).delete("true"))
    both(lambda library, path, _: library.write_dataset(more, path, mode="append"))


@pytest.mark.parametrize(
    "predicate", ["a % 10 = 3", "a % 2 = 1", "a >= 500 and a < 1500", "a > 100 and a < 2990", "a < 1000", "false"]
)
def test_compaction_writes_what_the_reference_does(tmp_path: Path, predicate: str) -> None:
    """Row ids after a compaction have the segments that the reference writes, including rows that updates moved."""
    path, twin = str(tmp_path / "t.lance"), str(tmp_path / "twin.lance")
    dataset = reference.write_dataset(rows(0, 3000), path, enable_stable_row_ids=True, max_rows_per_file=1000)
    dataset.delete(predicate)
    dataset.update({"a": "a + 10000"}, where="a % 7 = 5")
    shutil.copytree(path, twin)
    lance.dataset(path).optimize.compact_files()
    reference.dataset(twin).optimize.compact_files()
    assert_same(assert_sound(path), assert_sound(twin))
    ours, theirs = (manifest_of(each).fragments[0].row_ids for each in (path, twin))
    assert isinstance(ours, bytes)
    assert isinstance(theirs, bytes)
    assert rowids_pb2.RowIdSequence.FromString(ours) == rowids_pb2.RowIdSequence.FromString(theirs)


STEPS = ["append", "append", "delete", "delete", "compact", "update", "overwrite", "restore", "merge"]


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3), st.integers(0, 9)), min_size=2, max_size=7))
def test_random_histories(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]) -> None:
    """Random histories give the same on a copy changed by both in turn and on one changed by the reference."""
    folder = tmp_path_factory.mktemp("history")
    copies = Copies(str(folder / "t.lance"), str(folder / "twin.lance"))
    copies.step(
        lambda path, _: append(lance, path, 0, 40, enable_stable_row_ids=True),
        lambda path, _: append(reference, path, 0, 40, enable_stable_row_ids=True),
    )
    following = 40
    handle = lance.dataset(copies.paths[0])
    for step, whose, number in steps:
        mine = partial(_take_step, lance if whose else reference, step, number, following)
        copies.step(mine, partial(_take_step, reference, step, number, following))
        following += number + 1
        handle.checkout_latest()  # its index grows from that of the version before
        expected = lineage(handle.uri, reference)
        assert_same(handle._take_rows(expected["_rowid"].to_pylist(), ["a", *SYSTEM]), expected)


def _take_step(library: Any, step: str, number: int, following: int, path: str, versions: list[int]) -> None:
    if step == "append":
        append(library, path, following, following + number + 1)
    elif step == "delete":
        library.dataset(path).delete(f"a % 10 = {number} or a > {following - number}")
    elif step == "compact":
        library.dataset(path).optimize.compact_files(target_rows_per_fragment=20 + number)
    elif step == "overwrite":
        library.write_dataset(rows(0, number + 20), path, mode="overwrite")
    elif step == "restore":
        library.dataset(path, version=versions[number % len(versions)]).restore()
    elif step == "update":
        reference.dataset(path).update({"a": "a + 3"}, where=f"a % 4 = {number % 4}")
    elif len(set(reference.dataset(path).to_table()["a"].to_pylist())) == reference.dataset(path).count_rows():
        merge = reference.dataset(path).merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(rows(following - number, following + 2))


def test_appends_extend_the_index(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    append(lance, path, 0, 40, enable_stable_row_ids=True)
    handle = lance.dataset(path)
    first = handle.snapshot.reader.row_id_index
    append(reference, path, 40, 60)
    handle.checkout_latest()
    assert handle._take_rows([45, 3], ["a"])["a"].to_pylist() == [45, 3]
    assert handle.snapshot.reader.row_id_index is not first
    second = handle.snapshot.reader.row_id_index
    handle.delete("a = 45")
    assert handle._take_rows([45, 3], ["a"])["a"].to_pylist() == [3]
    assert handle.snapshot.reader.row_id_index is second
    reference.dataset(path).update({"a": "a + 100"}, where="a = 3")
    handle.checkout_latest()
    assert handle._take_rows([45, 3], ["a"])["a"].to_pylist() == [103]
    shutil.rmtree(path)
    lance.write_dataset(rows(500, 510), path, enable_stable_row_ids=True)
    append(lance, path, 510, 540)
    handle.checkout_latest()
    assert handle._take_rows([3, 39], ["a"])["a"].to_pylist() == [503, 539]


def test_rows_that_come_back(tmp_path: Path) -> None:
    """An index without deleted rows is not used for versions in which these rows exist."""
    path = str(tmp_path / "t.lance")
    dataset = reference.write_dataset(rows(0, 100), path, enable_stable_row_ids=True)
    for number in range(2, 12):
        dataset.update({"a": "a + 1000"}, where=f"a % {number} = 1")
    handle = lance.dataset(path)
    handle.delete("a % 5 = 2")
    ids = list(range(100))
    assert handle._take_rows(ids).num_rows == handle.count_rows()
    assert handle.snapshot.reader.row_id_index.trimmed
    lance.dataset(path, version=dataset.version).restore()
    handle.checkout_latest()
    assert handle._take_rows(ids, ["_rowid"])["_rowid"].to_pylist() == ids


# -- lineage in hidden columns ---------------------------------------------------------------------------------------


@pytest.fixture(params=["update", "compaction", "both"])
def spilled(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Make a table with lineage in a separate file, beside user columns, or both."""
    path = str(tmp_path / "t.lance")
    dataset = reference.write_dataset(rows(0, 3000), path, enable_stable_row_ids=True, max_rows_per_file=1000)
    dataset.update_config({"lance.row_lineage.spill": "true", "lance.row_lineage.inline_max_bytes": "16"})
    dataset = reference.dataset(path)
    dataset.update({"a": "a + 10000"}, where="a % 7 = 1")
    if request.param != "update":
        dataset.optimize.compact_files()
    if request.param == "both":
        reference.dataset(path).update({"a": "a + 10000"}, where="a % 5 = 1")
    assert any(_is_spilled(fragment) for fragment in manifest_of(path).fragments)
    return path


def _is_spilled(fragment: Fragment) -> bool:
    return isinstance(fragment.row_ids, Spilled)


def test_spilled_lineage(spilled: str, tmp_path: Path) -> None:
    assert_sound(spilled)
    before = manifest_of(spilled)
    append(lance, spilled, 5000, 5100)
    lance.dataset(spilled).delete("a % 3 = 1")
    assert_sound(spilled)
    after = {fragment.id: fragment for fragment in manifest_of(spilled).fragments}
    for fragment in before.fragments:
        kept = after[fragment.id]
        assert (kept.files, kept.row_ids, kept.created_at_versions) == (
            fragment.files,
            fragment.row_ids,
            fragment.created_at_versions,
        )
    assert manifest_of(spilled).reader_flags & Feature.SPILLED_LINEAGE
    lance.dataset(spilled, version=before.version).restore()
    assert_sound(spilled)
    lance.dataset(spilled).delete("a % 11 = 1")
    twin = str(tmp_path / "twin.lance")
    shutil.copytree(spilled, twin)
    lance.dataset(spilled).optimize.compact_files()
    reference.dataset(twin).optimize.compact_files()
    assert_same(assert_sound(spilled), assert_sound(twin))
    reference.dataset(spilled).update({"a": "a + 1"}, where="a % 2 = 0")
    assert_sound(spilled)


def _numbers(path: str, name: str, values: pa.Array) -> DataFile:
    """Return a data file of one hidden column."""
    schema = pa.schema([pa.field(name, pa.uint64())])
    with LanceFileWriter(f"{path}/data/{name}.lance", schema, version="2.2") as writer:
        writer.write_batch(pa.table([values], schema=schema))
    return DataFile(f"{name}.lance", (-3,), (0,), 2, 2)


def _damaged(path: str, change: Callable[[Fragment], Fragment]) -> None:
    """Change the last fragment in the manifest."""
    manifest = manifest_of(path)
    fragments = (*manifest.fragments[:-1], change(manifest.fragments[-1]))
    store, _ = resolve(path)
    store.put(manifest.path, encode_manifest(replace(manifest, fragments=fragments)))


@pytest.mark.parametrize("spilled", ["update"], indirect=True)
@pytest.mark.parametrize("damage", ["no file", "two files", "nulls", "short", "no column", "legacy"])
def test_damaged_hidden_columns(spilled: str, damage: str) -> None:
    count = manifest_of(spilled).fragments[-1].physical_rows
    plain = pa.array(np.arange(count, dtype=np.uint64))
    made = {
        "two files": plain,
        "nulls": pa.array([None, *range(count - 1)], pa.uint64()),
        "short": plain.slice(1),
        "no column": plain,
        "legacy": plain,
    }

    def change(fragment: Fragment) -> Fragment:
        users = tuple(file for file in fragment.files if -3 not in file.fields)
        hidden = tuple(file for file in fragment.files if -3 in file.fields)
        extra = (_numbers(spilled, damage.replace(" ", "_"), made[damage]),) if damage in made else ()
        if damage == "no column":
            extra = (replace(extra[0], column_indices=(-1,)),)
        if damage == "legacy":
            extra = (replace(extra[0], column_indices=(), file_major_version=0, file_minor_version=2),)
        kept = hidden if damage == "two files" else ()
        return replace(fragment, files=(*users, *kept, *extra))

    _damaged(spilled, change)
    with pytest.raises(CorruptFileError, match=r"_rowid|rows|cannot be mixed"):
        lance.dataset(spilled).to_table(columns=["_rowid"])


# -- damaged sequences -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["longer", "shorter", "twice", "versions", "unset", "bytes"])
def test_damaged_sequences(tmp_path: Path, what: str) -> None:
    path = str(tmp_path / "t.lance")
    append(lance, path, 0, 30, enable_stable_row_ids=True)

    def change(fragment: Fragment) -> Fragment:
        if what == "versions":
            return replace(fragment, created_at_versions=RowVersions.constant(14, 1).encode())
        if what == "unset":
            return replace(fragment, row_ids=b"\x0a\x00")
        if what == "bytes":
            return replace(fragment, row_ids=b"\x0a\x7f\x01")
        ids = {"longer": range(16), "shorter": range(14), "twice": [3] * 15}[what]
        return replace(fragment, row_ids=RowIds.from_values(list(ids)).encode())

    _damaged(path, change)
    dataset = lance.dataset(path)
    assert dataset.to_table(columns=["a"]).num_rows == 30
    if what != "twice":
        with pytest.raises(CorruptFileError, match="fragment 1"):
            dataset.to_table(columns=["_rowid", "_row_created_at_version"])
    if what != "versions":
        with pytest.raises(CorruptFileError, match="fragment 1"):
            dataset._take_rows([20])
