"""Changes of a dataset that a crash may interrupt, and the visible state of a dataset.

A new operation is one entry of `OPERATIONS`.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import tempfile
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_dataset
import lance_dataset.optimize
from lance_dataset.io.resolve import resolve
from lance_dataset.table.indices.coverage import parse_indices
from support.tables.equality import assert_same

__all__ = [
    "OPERATIONS",
    "Operation",
    "Place",
    "Seen",
    "check_between",
    "check_cleaned",
    "check_goes_on",
    "fitting",
    "observe",
    "operation_names",
    "rows",
]

CLONE = "clone.lance"


@dataclass(frozen=True)
class Place:
    """Location of a dataset and the options to open it.

    Attributes
    ----------
    base
        URI of the folder with the dataset and its clones.
    options
        Keyword arguments of `dataset` and `write_dataset`: session, storage options.
    """

    base: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        return f"{self.base}/t.lance"

    def open(self, version: Any = None, name: str = "t.lance") -> lance_dataset.LanceDataset:
        return lance_dataset.dataset(f"{self.base}/{name}", version=version, **self.options)

    def write(self, data: pa.Table, mode: str = "create", **given: Any) -> lance_dataset.LanceDataset:
        return lance_dataset.write_dataset(data, self.uri, mode=mode, **self.options, **given)


def rows(start: int, count: int) -> pa.Table:
    """Return `count` rows with ids from `start`; all other values follow from the id."""
    ids = np.arange(start, start + count, dtype=np.int64)
    return pa.table(
        {"id": ids, "text": pa.array([f"row {value}" for value in ids.tolist()], pa.string()), "check": ids * 7 + 1}
    )


def fitting(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns of a schema; missing ones are null."""
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True)
class Operation:
    """Change that can be interrupted.

    Attributes
    ----------
    prepare
        Creates what has to exist before.
    run
        The change.
    removes
        True if old versions may be gone afterwards.
    repair
        Repair that a user has to make after a crash before anything else can be written.
    """

    prepare: Callable[[Place], object]
    run: Callable[[Place], object]
    removes: bool = False
    repair: Callable[[Place], object] | None = None


def _nothing(place: Place) -> None:
    pass


def _empty(place: Place) -> None:
    place.write(rows(0, 0))


def _table(place: Place, **options: Any) -> None:
    """Make a table of three versions and three fragments, one with deleted rows."""
    place.write(rows(0, 60), max_rows_per_file=30, **options)
    place.write(rows(100, 20), "append")
    place.open().delete("id % 10 = 3 and id < 30")


def _old_names(place: Place) -> None:
    _table(place, enable_v2_manifest_paths=False)


def _stable(place: Place) -> None:
    _table(place, enable_stable_row_ids=True)


@functools.cache
def _indexed_files() -> dict[str, bytes]:
    """Return the files of a table with indices made by the reference."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder)
        _table(place)
        indexed = lance.dataset(place.uri)
        indexed.create_scalar_index("id", "BTREE")
        indexed.create_scalar_index("check", "BITMAP")
        root = Path(place.uri)
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _indexed(place: Place) -> None:
    """Make a table with indices of two columns."""
    store, root = resolve(place.uri, place.options.get("storage_options"), place.options.get("session"))
    for path, content in _indexed_files().items():
        store.put(f"{root}/{path}", content)


def _delete_behind(place: Place) -> None:
    """Delete through a handle that has not seen the newest delete in the same fragment."""
    place.open(2).delete("id = 5 or id = 105")


def _pictures(start: int, count: int) -> pa.Table:
    """Return rows with blobs, most of them in files beside the data file."""
    table = rows(start, count)
    field = lance_dataset.blob_field("picture", inline_size_threshold=10, dedicated_size_threshold=100)
    values = [None if number % 5 == 0 else b"p" * (number % 4 * 40) for number in range(start, start + count)]
    return table.append_column(field, lance_dataset.blob_array(values))


def _album(place: Place) -> None:
    place.write(_pictures(0, 20), max_rows_per_file=10)
    place.open().delete("id = 3")


def _append_behind(place: Place) -> None:
    lance_dataset.write_dataset(rows(200, 10), place.open(2), mode="append")


def _compact(place: Place) -> None:
    place.open().optimize.compact_files()


def _compact_later(place: Place) -> None:
    """Compact without changing the indices; their readers get a list of moved rows."""
    place.open().optimize.compact_files(defer_index_remap=True)


def _cleanup(place: Place) -> None:
    place.open().cleanup_old_versions(older_than=dt.timedelta(0), delete_unverified=True)


def _many_versions(place: Place) -> None:
    _table(place)
    place.write(rows(300, 30), "overwrite")
    place.open().delete("id = 301")


def _tagged(place: Place) -> None:
    _table(place)
    place.open().tags.create("first", 1)


def _branched(place: Place) -> None:
    _table(place)
    place.open().create_branch("side", 2)


def _migrate(place: Place) -> None:
    place.open().migrate_manifest_paths_v2()


def _finish_branch(place: Place) -> None:
    """Delete the remains of an unfinished branch, which block a new branch of that name."""
    dataset = place.open()
    if "side" not in dataset.branches.list():
        with contextlib.suppress(ValueError):
            dataset.branches.delete("side")


def _commit_of_files(place: Place) -> None:
    fragments = lance_dataset.fragment.write_fragments(rows(500, 20), place.open(), max_rows_per_file=10)
    append = lance_dataset.LanceOperation.Append(fragments)
    lance_dataset.LanceDataset.commit(place.open(), append, read_version=2)


def _updates(place: Place) -> None:
    place.open().update({"check": "check + 1", "text": "'new'"}, "id % 7 = 1 or id = 105")


def _update_behind(place: Place) -> None:
    """Update through a handle that has not seen the newest delete in the same fragment."""
    place.open(2).update({"check": "0"}, "id = 5 or id = 105")


def _merge(place: Place) -> None:
    """Replace and insert rows."""
    merge = place.open().merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(rows(50, 30).set_column(2, "check", pa.nulls(30, pa.int64())))


def _merge_of_a_column(place: Place) -> None:
    """Merge one column; rows keep their positions."""
    source = rows(0, 110).select(["id"]).append_column("check", pa.nulls(110, pa.int64()))
    place.open().merge_insert("id").when_matched_update_all().execute(source)


def _synchronize(place: Place) -> None:
    """Replace, insert and delete rows."""
    merge = place.open().merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.when_not_matched_by_source_delete().execute(rows(20, 50))


def _add_nulls(place: Place) -> None:
    place.open().add_columns(pa.schema([("more", pa.int32())]))


def _backfill(place: Place) -> None:
    """Add a column with a function that keeps its progress in a checkpoint file beside the table."""

    @lance_dataset.batch_udf(output_schema=pa.schema([("size", pa.int64())]), checkpoint_file=_checkpoints(place))
    def size(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"size": pa.compute.utf8_length(batch["text"]).cast(pa.int64())})

    place.open().add_columns(size, read_columns=["text"], batch_size=16)


def _checkpoints(place: Place) -> str | None:
    return None if "://" in place.base else f"{place.base}/done.sqlite"


def _cast(place: Place) -> None:
    place.open().alter_columns({"path": "check", "data_type": pa.int32()})


def _compact_in_steps(place: Place) -> None:
    """Compact with tasks and results passed between processes as text."""
    optimize, dataset = lance_dataset.optimize, place.open()
    plan = optimize.Compaction.plan(dataset, {"target_rows_per_fragment": 1000})
    tasks = [optimize.CompactionTask.from_json(task.json()) for task in plan.tasks]
    results = [optimize.RewriteResult.from_json(task.execute(dataset).json()) for task in tasks]
    optimize.Compaction.commit(place.open(), results)


OPERATIONS: dict[str, Operation] = {
    "create": Operation(_nothing, lambda place: place.write(rows(0, 40), max_rows_per_file=25)),
    "create without rows": Operation(_nothing, lambda place: place.write(rows(0, 0))),
    "first append": Operation(_empty, lambda place: place.write(rows(0, 10), "append")),
    "append": Operation(_table, lambda place: place.write(rows(200, 30), "append", max_rows_per_file=20)),
    "append, old names": Operation(_old_names, lambda place: place.write(rows(200, 10), "append")),
    "append, stable row ids": Operation(_stable, lambda place: place.write(rows(200, 10), "append")),
    "append, legacy files": Operation(
        lambda place: _table(place, data_storage_version="legacy", enable_v2_manifest_paths=False),
        lambda place: place.write(rows(200, 10), "append"),
    ),
    "append behind others": Operation(_table, _append_behind),
    "commit of written files": Operation(_table, _commit_of_files),
    "overwrite": Operation(_table, lambda place: place.write(rows(200, 30), "overwrite")),
    "first delete": Operation(
        lambda place: place.write(rows(0, 60), max_rows_per_file=30), lambda place: place.open().delete("id % 7 = 1")
    ),
    "delete": Operation(_table, lambda place: place.open().delete("id % 7 = 1")),
    "delete of fragments": Operation(_table, lambda place: place.open().delete("id >= 30")),
    "delete behind others": Operation(_table, _delete_behind),
    "delete, stable row ids": Operation(_stable, lambda place: place.open().delete("id % 7 = 1")),
    "update": Operation(_table, _updates),
    "update, stable row ids": Operation(_stable, _updates),
    "update behind others": Operation(_table, _update_behind),
    "update of all rows": Operation(_table, lambda place: place.open().update({"check": "0"})),
    "merge": Operation(_table, _merge),
    "merge, stable row ids": Operation(_stable, _merge),
    "merge of a column": Operation(_table, _merge_of_a_column),
    "merge with deletes": Operation(_table, _synchronize),
    "new column": Operation(_table, lambda place: place.open().add_columns({"twice": "id * 2"})),
    "new column of nulls": Operation(_table, _add_nulls),
    "joined column": Operation(
        _table, lambda place: place.open().merge(pa.table({"id": [1, 5, 105], "more": ["a", "b", "c"]}), "id")
    ),
    "backfill by a function": Operation(_table, _backfill),
    "column renamed": Operation(_table, lambda place: place.open().alter_columns({"path": "check", "name": "sum"})),
    "column cast": Operation(_table, _cast),
    "column dropped": Operation(_table, lambda place: place.open().drop_columns(["text"])),
    "compaction in steps": Operation(_table, _compact_in_steps),
    "restore": Operation(_table, lambda place: place.open(1).restore()),
    "compaction": Operation(_table, _compact),
    "compaction, stable row ids": Operation(_stable, _compact),
    "compaction with indices": Operation(_indexed, _compact),
    "compaction with indices that stay": Operation(_indexed, _compact_later),
    "append of blobs": Operation(_album, lambda place: place.write(_pictures(200, 8), "append")),
    "compaction of blobs": Operation(_album, _compact),
    "migration of names": Operation(_old_names, _migrate, repair=_migrate),
    "config": Operation(_table, lambda place: place.open().update_config({"a": "1"})),
    "cleanup": Operation(_many_versions, _cleanup, removes=True),
    "tag": Operation(_table, lambda place: place.open().tags.create("first", 1)),
    "tag moved": Operation(_tagged, lambda place: place.open().tags.update("first", 2)),
    "tag removed": Operation(_tagged, lambda place: place.open().tags.delete("first")),
    "branch": Operation(_table, lambda place: place.open().create_branch("side", 2), repair=_finish_branch),
    "branch removed": Operation(_branched, lambda place: place.open().branches.delete("side"), repair=_finish_branch),
    "shallow clone": Operation(_table, lambda place: place.open().shallow_clone(f"{place.base}/{CLONE}", 2)),
    "deep clone": Operation(_table, lambda place: place.open().deep_clone(f"{place.base}/{CLONE}", 2)),
}


def operation_names() -> list[str]:
    """Return the names of the operations, for parametrizing."""
    return list(OPERATIONS)


# -- looking -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """State of a dataset that a user can see.

    Attributes
    ----------
    versions
        Rows and config by version; empty without a dataset.
    others
        Rows of clones and branches, and versions of tags, by name.
    """

    versions: dict[int, tuple[pa.Table, dict[str, str]]]
    others: dict[str, Any]

    @property
    def latest(self) -> int:
        """Newest version; 0 if the dataset does not exist."""
        return max(self.versions, default=0)


def observe(place: Place) -> Seen:
    """Read all versions, tags, branches and clones, and validate them."""
    versions, others = {}, {}
    newest = _opened(place, "t.lance")
    if newest is not None:
        for entry in newest.versions():
            version = newest if entry["version"] == newest.version else place.open(entry["version"])
            version.validate()
            versions[version.version] = (_values(version), version.config())
        assert newest.version == max(versions)
        others |= _references(newest)
    clone = _opened(place, CLONE)
    if clone is not None:
        clone.validate()
        others["clone"] = clone.to_table()
    return Seen(versions, others)


def _values(dataset: lance_dataset.LanceDataset) -> pa.Table:
    return dataset.to_table(blob_handling="all_binary")


def _opened(place: Place, name: str) -> lance_dataset.LanceDataset | None:
    try:
        return place.open(name=name)
    except lance_dataset.errors.DatasetNotFoundError:
        return None


def _references(dataset: lance_dataset.LanceDataset) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in dataset.tags.list():
        found[f"tag {name}"] = dataset.checkout_version(name).to_table()
    for name in dataset.branches.list():
        branch = dataset.checkout_version((name, None))
        branch.validate()
        found[f"branch {name}"] = branch.to_table()
    return found


# -- judging -----------------------------------------------------------------------------------------------------


def check_between(seen: Seen, before: Seen, after: Seen, *, done: bool, removes: bool = False) -> None:
    """Assert that the state after a crash is a complete one of two; the later one if the change had returned."""
    assert before.latest <= seen.latest <= after.latest
    for version, (table, config) in seen.versions.items():
        expected_table, expected_config = (after if version in after.versions else before).versions[version]
        assert_same(table, expected_table)
        assert config == expected_config
    kept = set(before.versions) & set(after.versions) if removes else set(before.versions)
    assert kept <= set(seen.versions), f"versions {kept - set(seen.versions)} are gone"
    for name in before.others.keys() | after.others.keys() | seen.others.keys():
        states = [_plain(each.others.get(name)) for each in (before, after)]
        assert _plain(seen.others.get(name)) in (states[1:] if done else states), name
    if done:
        assert set(seen.versions) >= set(after.versions), (
            f"of versions {list(after.versions)} there are {seen.versions.keys()}"
        )


def _plain(value: Any) -> Any:
    return value.to_pylist() if isinstance(value, pa.Table) else value


def check_goes_on(place: Place, seen: Seen) -> None:
    """Assert that later writers work after a crash, and lose nothing."""
    new = rows(10_000, 7)
    if not seen.versions:
        place.write(new)
        expected = new
    else:
        before = seen.versions[seen.latest][0]
        place.write(fitting(new, place.open().schema), "append")
        expected = pa.concat_tables([before, fitting(new, before.schema)])
    place.open().delete("id = 10001")
    expected = expected.filter(pa.compute.not_equal(expected["id"], 10_001))
    assert_same(_values(place.open()), expected)
    for version, (table, _) in seen.versions.items():
        assert_same(_values(place.open(version)), table)


def check_cleaned(place: Place) -> None:
    """Assert that a cleanup removes the remains of crashes, and nothing that is needed."""
    before = observe(place)
    place.open().cleanup_old_versions(
        older_than=dt.timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    )
    seen = observe(place)
    assert seen.latest == before.latest
    for version, (table, config) in seen.versions.items():
        assert_same(table, before.versions[version][0])
        assert config == before.versions[version][1]
    assert {name: _plain(value) for name, value in seen.others.items()} == {
        name: _plain(value) for name, value in before.others.items()
    }
    newest = place.open()
    if not _references(newest):
        listed = {
            info.path[len(newest.snapshot.root) + 1 :] for info in newest.snapshot.store.list_tree(newest.snapshot.root)
        }
        # A cleanup considers neither references nor branches.
        foreign = ("_refs/", "tree/", "_versions/latest_version_hint.json")
        left = {path for path in listed - _needed(newest) if not path.startswith(foreign)}
        assert not left, f"nobody needs {left}"


def _needed(dataset: lance_dataset.LanceDataset) -> set[str]:
    """Return the files of the open version."""
    manifest = dataset.snapshot.manifest
    found = {
        manifest.path[len(dataset.snapshot.root) + 1 :],
        "_latest.manifest",
        f"_transactions/{manifest.transaction_file}",
    }
    indices = {str(uuid.UUID(bytes=index.uuid.uuid)) for index in parse_indices(manifest.index_section)}
    listed = (
        info.path[len(dataset.snapshot.root) + 1 :]
        for info in dataset.snapshot.store.list_tree(f"{dataset.snapshot.root}/_indices")
    )
    found |= {path for path in listed if path.split("/")[1] in indices}
    root = dataset.snapshot.root
    side_files = {
        info.path[len(root) + 1 :]
        for info in dataset.snapshot.store.list_tree(f"{root}/data")
        if info.name.endswith(".blob")
    }
    for fragment in manifest.fragments:
        found |= {f"data/{file.path}" for file in fragment.files}
        beside = {f"data/{file.path.removesuffix('.lance')}/" for file in fragment.files}
        found |= {path for path in side_files if path.startswith(tuple(beside))}
        deletion = fragment.deletion_file
        if deletion is not None:
            suffix = "arrow" if deletion.file_type.name.startswith("ARROW") else "bin"
            found.add(f"_deletions/{fragment.id}-{deletion.read_version}-{deletion.id}.{suffix}")
    return found
