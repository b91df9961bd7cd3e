"""Tests of `merge_insert`: the same calls as with the reference, places of new files, and concurrent writers."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.reference.outcomes import Outcome, assert_same_outcome

import lance_dataset
from lance_dataset.errors import CommitConflictError, InvalidInputError, SchemaError

POINT = pa.struct([("x", pa.int64()), ("y", pa.string())])
HALF_POINT = pa.struct([("x", pa.int64())])
TABLE = pa.table(
    {
        "k": pa.array([1, 2, 3, 4, 5], pa.int64()),
        "v": ["a", "b", "c", None, "e"],
        "w": [1.0, 2.0, 3.0, 4.0, None],
        "s": pa.array([{"x": 1, "y": "p"}, {"x": 2, "y": "q"}, None, {"x": 4, "y": None}, None], POINT),
    }
)
SOURCE = pa.table(
    {
        "k": pa.array([9, 4, 2, None], pa.int64()),
        "v": ["I", "D", "B", "N"],
        "w": [9.0, 40.0, None, 0.0],
        "s": pa.array([None, {"x": 40, "y": "Q"}, None, {"x": 0, "y": None}], POINT),
    }
)

Merge = Callable[[Any], Any]


def upsert(dataset: Any, on: Any = "k") -> Any:
    return dataset.merge_insert(on).when_matched_update_all().when_not_matched_insert_all()


def update(dataset: Any, condition: Any = None) -> Any:
    return dataset.merge_insert("k").when_matched_update_all(condition)


def with_fields(table: pa.Table, **types: pa.DataType) -> pa.Table:
    """Return the table with columns cast to other types."""
    for name, kind in types.items():
        table = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
    return table


def partial(*names: str) -> pa.Table:
    return SOURCE.select(list(names))


REQUIRED = pa.table(
    [[2, 7], ["x", "y"]],
    schema=pa.schema([pa.field("k", pa.int64(), False, {"a": "b"}), pa.field("v", pa.string(), False)], {"c": "d"}),
)
HALF = pa.table({"s": pa.array([{"x": 7}, None, {"x": 8}, {"x": 9}], HALF_POINT), "k": pa.array([3, 5, 2, 11])})

MERGES: dict[str, Merge] = {
    "upsert": lambda d: upsert(d).execute(SOURCE),
    "other order of columns": lambda d: upsert(d).execute(SOURCE.select(["s", "w", "k", "v"])),
    "required columns": lambda d: upsert(d).execute(REQUIRED),
    "required columns, deletes": lambda d: d.merge_insert("k").when_matched_delete().execute(REQUIRED),
    "insert": lambda d: d.merge_insert("k").when_not_matched_insert_all().execute(SOURCE),
    "last clause counts": lambda d: update(d).when_matched_delete().execute(SOURCE),
    "and again": lambda d: d.merge_insert("k").when_matched_fail().when_matched_update_all().execute(SOURCE),
    "replace": lambda d: upsert(d).when_not_matched_by_source_delete().execute(SOURCE),
    "replace some": lambda d: upsert(d).when_not_matched_by_source_delete("w > 1 or w is null").execute(SOURCE),
    "nothing to do": lambda d: d.merge_insert("k").execute(SOURCE),
    "fail": lambda d: d.merge_insert("k").when_matched_fail().execute(SOURCE),
    "does not fail": lambda d: d.merge_insert("k").when_matched_fail().execute(SOURCE.slice(0, 1)),
    "empty source": lambda d: upsert(d).execute(SOURCE.slice(0, 0)),
    "empty frame": lambda d: upsert(d).execute(SOURCE[:0].select(["k", "v"]).to_pandas()),
    "empty frame without types": lambda d: upsert(d).execute(pd.DataFrame(columns=["k", "v", "w", "s"])),
    "empty frame replaces": lambda d: (
        upsert(d).when_not_matched_by_source_delete("k > 3").execute(pd.DataFrame(columns=["k", "v"]))
    ),
    "empty table of other types": lambda d: upsert(d).execute(
        pa.table({"k": pa.array([], pa.string()), "v": pa.nulls(0), "w": pa.nulls(0), "s": pa.nulls(0)})
    ),
    "empty source without its keys": lambda d: upsert(d).execute(pa.table({"z": pa.array([], pa.int8())})),
    "empty source with a name twice": lambda d: upsert(d).execute(pa.table([[], [], []], names=["k", "v", "v"])),
    "empty source with an unknown column": lambda d: upsert(d).execute(SOURCE[:0].append_column("z", [[]])),
    "empty source, condition on what it has": lambda d: update(d, "source.v > 'a'").execute(SOURCE[:0]),
    "empty source, condition on what it lacks": lambda d: update(d, "source.v > 'a'").execute(
        SOURCE[:0].select(["k", "w"])
    ),
    "empty source, unknown in condition": lambda d: update(d, "source.z > 'a'").execute(
        SOURCE[:0].append_column("z", [[]])
    ),
    "empty batch": lambda d: upsert(d).execute(SOURCE[:0].select(["v"]).to_batches()[0]),
    "empty stream": lambda d: upsert(d).execute(SOURCE[:0].to_reader()),
    "empty stream of other types": lambda d: upsert(d).execute(with_fields(SOURCE, k=pa.string())[:0].to_reader()),
    "empty stream with an unknown column": lambda d: upsert(d).execute(SOURCE[:0].append_column("z", [[]]).to_reader()),
    "empty source deletes": lambda d: d.merge_insert("k").when_not_matched_by_source_delete().execute(SOURCE[:0]),
    "some columns": lambda d: upsert(d).execute(partial("w", "k")),
    "key only": lambda d: upsert(d).execute(partial("k")),
    "key only deletes": lambda d: d.merge_insert("k").when_matched_delete().execute(partial("k")),
    "delete with other columns": lambda d: d.merge_insert("k").when_matched_delete().execute(partial("k", "v")),
    "delete with unknown columns": lambda d: (
        d.merge_insert("k").when_matched_delete().execute(SOURCE.append_column("z", [[1] * 4]))
    ),
    "some fields": lambda d: upsert(d).execute(HALF),
    "some fields in place": lambda d: update(d).write_mode("rewrite_columns").execute(HALF),
    "in place": lambda d: update(d).write_mode("rewrite_columns").execute(partial("w", "k")),
    "in place, nothing matches": lambda d: (
        update(d).write_mode("rewrite_columns").execute(pa.table({"k": [77], "v": ["x"]}))
    ),
    "in place if": lambda d: update(d, "source.k > 2").write_mode("rewrite_columns").execute(partial("v", "k")),
    "in place, inserts": lambda d: upsert(d).write_mode("rewrite_columns").execute(partial("v", "k")),
    "in place, all columns": lambda d: update(d).write_mode("rewrite_columns").execute(SOURCE),
    "in place, keys only": lambda d: update(d).write_mode("rewrite_columns").execute(partial("k")),
    "in place, delete": lambda d: (
        d.merge_insert("k").when_matched_delete().write_mode("rewrite_columns").execute(partial("v", "k"))
    ),
    "unknown column": lambda d: upsert(d).execute(SOURCE.append_column("z", [[1] * 4])),
    "no key": lambda d: upsert(d).execute(partial("v", "w")),
    "other type": lambda d: upsert(d).execute(with_fields(SOURCE, w=pa.string())),
    "other key type": lambda d: upsert(d).execute(with_fields(SOURCE, k=pa.string())),
    "other key type deletes": lambda d: (
        d.merge_insert("k").when_matched_delete().execute(with_fields(partial("k"), k=pa.int16()))
    ),
    "name twice": lambda d: upsert(d).execute(pa.table([[1], ["a"], ["b"]], names=["k", "v", "v"])),
    "ambiguous": lambda d: update(d).execute(pa.concat_tables([SOURCE, SOURCE])),
    "ambiguous delete": lambda d: d.merge_insert("k").when_matched_delete().execute(pa.table({"k": [1, 1]})),
    "the condition decides": lambda d: update(d, "source.v = 'y'").execute(pa.table({"k": [1, 1], "v": ["x", "y"]})),
    "new ones twice": lambda d: upsert(d).execute(pa.concat_tables([SOURCE[:1], SOURCE[:1]])),
    "condition on both": lambda d: update(d, "source.w > target.w or source.w is null").execute(SOURCE),
    "condition on fields": lambda d: update(d, "source.s.x > target.s.x").execute(SOURCE),
    "condition on what is kept": lambda d: update(d, "target.w > 3").execute(partial("k", "v")),
    "unprefixed where clear": lambda d: update(d, "w > 3").execute(partial("k", "v")),
    "condition in another case": lambda d: update(d, "SOURCE.W > Target.w and source.s.x > 0").execute(SOURCE),
    "field in another case": lambda d: update(d, "source.s.X > 0").execute(SOURCE),
    "addresses": lambda d: update(d, "target._rowaddr > 1").execute(SOURCE),
    "always false": lambda d: update(d, "false").when_not_matched_insert_all().execute(SOURCE),
    "bad condition": lambda d: update(d, "source.w >").execute(SOURCE),
    "unknown in condition": lambda d: update(d, "source.nope > 1").execute(SOURCE),
    "unclear in condition": lambda d: update(d, "w > 1").execute(SOURCE),
    "not a boolean": lambda d: update(d, "source.w").execute(SOURCE),
    "condition is not text": lambda d: update(d, pc.field("w") > 1),
    "bad rest": lambda d: d.merge_insert("k").when_not_matched_by_source_delete("zz > 1"),
    "rest is not a boolean": lambda d: d.merge_insert("k").when_not_matched_by_source_delete("k").execute(SOURCE),
    "prefixed rest": lambda d: d.merge_insert("k").when_not_matched_by_source_delete("target.w > 1"),
    "rest is not text": lambda d: d.merge_insert("k").when_not_matched_by_source_delete(5),
    "two keys": lambda d: upsert(d, ["k", "v"]).execute(pa.table({"v": ["a", "x", None], "k": [1, 2, 4]})),
    "a key twice": lambda d: upsert(d, ("k", "k")).execute(SOURCE),
    "key in another case": lambda d: upsert(d, "K").execute(SOURCE),
    "struct key": lambda d: upsert(d, "s").execute(SOURCE),
    "field as key": lambda d: upsert(d, "s.x").execute(SOURCE),
    "unknown key": lambda d: d.merge_insert("nope"),
    "empty key": lambda d: d.merge_insert(""),
    "no keys": lambda d: d.merge_insert([]),
    "no primary key": lambda d: d.merge_insert(),
    "key is not text": lambda d: d.merge_insert(5),
    "bad mode": lambda d: update(d).write_mode("zz"),
    "mode is not text": lambda d: update(d).write_mode(5),
    "retries": lambda d: upsert(d).conflict_retries(0).retry_timeout(dt.timedelta(0)).execute(SOURCE),
    "negative retries": lambda d: upsert(d).conflict_retries(-1),
    "bad retries": lambda d: upsert(d).conflict_retries("a"),
    "bad timeout": lambda d: upsert(d).retry_timeout(5),
    "negative timeout": lambda d: upsert(d).retry_timeout(dt.timedelta(seconds=-1)),
    "no index": lambda d: upsert(d).use_index(False).execute(SOURCE),
    "bad index": lambda d: upsert(d).use_index(1),
    "unknown version": lambda d: upsert(d).data_storage_version("zz"),
    "older version": lambda d: upsert(d).data_storage_version("2.1").execute(SOURCE),
    "legacy version": lambda d: upsert(d).data_storage_version("legacy").execute(SOURCE),
    "unknown base": lambda d: upsert(d).target_bases(["zz"]).execute(SOURCE),
    "bases are not a list": lambda d: upsert(d).target_bases("zz"),
    "no bases": lambda d: upsert(d).target_bases([]).execute(SOURCE),
    "all bases": lambda d: upsert(d).target_all_bases().execute(SOURCE),
    "all of no bases": lambda d: upsert(d).target_all_bases(False).execute(SOURCE),
    "bases both ways": lambda d: upsert(d).target_bases(["zz"]).target_all_bases().execute(SOURCE),
    "no tables of logs": lambda d: upsert(d).mark_sstables_as_compacted([]).execute(SOURCE),
    "no data": lambda d: upsert(d).execute(None),
    "iterator without schema": lambda d: upsert(d).execute(iter(SOURCE.to_batches())),
    "iterator": lambda d: upsert(d).execute(iter(SOURCE.to_batches()), schema=SOURCE.schema),
    "reader": lambda d: upsert(d).execute(SOURCE.to_reader()),
    "pandas": lambda d: upsert(d).execute(SOURCE.select(["k", "v"]).drop_null().to_pandas()),
    "rows": lambda d: upsert(d).execute(SOURCE.select(["k", "v"]).to_pylist()),
    "batches": lambda d: upsert(d).execute_batches(SOURCE),
    "uncommitted": lambda d: upsert(d).execute_uncommitted(SOURCE)[1],
    "uncommitted batches": lambda d: upsert(d).execute_uncommitted_batches(SOURCE)[1],
    "analyzed": lambda d: len(upsert(d).analyze_plan(SOURCE)) > 100,
    "explained": lambda d: upsert(d).explain_plan()[:11],
    "explains nothing": lambda d: d.merge_insert("k").explain_plan(),
    "explains no schema": lambda d: upsert(d).explain_plan(5),
    "explains a wrong schema": lambda d: upsert(d).explain_plan(pa.schema([("zz", pa.int8())])),
}


@pytest.mark.parametrize("name", MERGES)
def test_like_the_reference(tmp_path: Path, name: str) -> None:
    """Results, errors, rows and lineage match the reference, and the other library reads what each wrote."""
    ends = []
    for library, other in ((lance_dataset, lance), (lance, lance_dataset)):
        path = tmp_path / library.__name__
        lance.write_dataset(TABLE, path, max_rows_per_file=2, enable_stable_row_ids=True)
        dataset = library.dataset(path)
        outcome = Outcome.of(lambda _, handle: MERGES[name](handle), library, dataset)
        if hasattr(outcome.value, "execute"):
            outcome = Outcome("a builder")
        columns = [*TABLE.column_names, "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
        rows = dataset.to_table(columns=columns).to_pylist()
        assert other.dataset(path).to_table(columns=columns).to_pylist() == rows
        ends.append((outcome, sorted(map(repr, rows)), dataset.version))
    assert_same_outcome(ends[0][0], ends[1][0])
    assert ends[0][1:] == ends[1][1:]


def test_order_of_rows(tmp_path: Path) -> None:
    """Updated rows come in the order of the source, and inserted rows last.

    If the source has only some columns, updated rows come in the order of the table.
    """
    source = pa.table({"k": [8, 4, 9, 1, 2], "v": ["h", "d", "i", "a", "b"]})
    dataset = lance_dataset.write_dataset(TABLE.select(["k", "v"]), tmp_path / "whole", max_rows_per_file=2)
    upsert(dataset).execute(source)
    assert dataset.to_table()["k"].to_pylist() == [3, 5, 4, 1, 2, 8, 9]
    dataset = lance_dataset.write_dataset(TABLE, tmp_path / "part", max_rows_per_file=2)
    upsert(dataset).execute(source)
    assert dataset.to_table()["k"].to_pylist() == [3, 5, 1, 2, 4, 8, 9]


def test_one_source_row_for_several_rows(tmp_path: Path) -> None:
    """One source row can update several rows of the table; others match none."""
    dataset = lance_dataset.write_dataset(pa.table({"k": [1, 3, 1], "v": [0, 0, 0]}), tmp_path / "d")
    source = pa.table({"k": [1, 2, 3], "v": [10, 20, 30]})
    assert update(dataset).execute(source)["num_updated_rows"] == 3
    assert dataset.to_table().to_pydict() == {"k": [1, 1, 3], "v": [10, 10, 30]}


def test_columns_called_source_and_target(tmp_path: Path) -> None:
    """Conditions distinguish columns named `source` and `target` from the two sides."""
    table = pa.table({"k": [1, 2, 3], "source": [5, 6, 7], "target": ["q", "r", "s"]})
    newer = pa.table({"k": [1, 2, 3], "source": [5, 9, 1], "target": ["a", "b", "c"]})
    for names in (newer.column_names, ["k", "source"], ["k", "target"]):
        condition = "source.source > target.source" if "source" in names else "target.source > 5"
        ends = []
        for library in (lance_dataset, lance):
            path = tmp_path / f"{library.__name__}-{len(names)}-{names[1]}"
            lance.write_dataset(table, path)
            dataset = library.dataset(path)
            statistics = update(dataset, condition).execute(newer.select(names))
            ends.append((statistics, dataset.to_table().sort_by("k").to_pydict()))
        assert ends[0] == ends[1]


def test_many_rows_of_one_key(tmp_path: Path) -> None:
    """Several source rows for one key raise an error even when there are a huge number of matching pairs."""
    rows = pa.table({"k": pa.repeat(0, 20_000), "v": range(20_000)})
    dataset = lance_dataset.write_dataset(rows, tmp_path)
    with pytest.raises(InvalidInputError, match="multiple source rows"):
        update(dataset, "source.v >= 0").execute(rows)


def test_operation_like_the_reference(tmp_path: Path) -> None:
    """The committed operation matches the reference: fields, mode, offsets, fragments."""
    for build, source in (
        (upsert, SOURCE),
        (upsert, partial("k", "v")),
        (lambda d: update(d).write_mode("rewrite_columns"), partial("k", "s")),
        (lambda d: d.merge_insert("k").when_matched_delete(), partial("k")),
    ):
        found = []
        for library in (lance_dataset, lance):
            path = tmp_path / f"{library.__name__}{len(list(tmp_path.iterdir()))}"
            lance.write_dataset(TABLE, path, max_rows_per_file=2, enable_stable_row_ids=True)
            transaction, _ = build(library.dataset(path)).execute_uncommitted(source)
            operation = transaction.operation
            offsets = operation.updated_fragment_offsets
            updated = sorted(operation.updated_fragments, key=lambda fragment: fragment.id)
            found.append(
                (
                    transaction.read_version,
                    operation.removed_fragment_ids,
                    [(fragment.id, [file.fields for file in fragment.files]) for fragment in updated],
                    [fragment.physical_rows for fragment in operation.new_fragments],
                    sorted(operation.fields_modified),
                    sorted(operation.fields_for_preserving_frag_bitmap),
                    operation.update_mode,
                    None if not offsets else {number: bytes(data) for number, data in offsets.items()},
                )
            )
        assert found[0] == found[1]


def test_uncommitted_then_committed(tmp_path: Path) -> None:
    """A merge that either library made can be committed on top of a later append."""
    for number, library in enumerate((lance_dataset, lance)):
        path = tmp_path / str(number)
        dataset = lance_dataset.write_dataset(TABLE, path, enable_stable_row_ids=True)
        transaction, statistics = upsert(dataset).execute_uncommitted(SOURCE)
        assert (dataset.version, statistics["num_inserted_rows"]) == (1, 2)
        lance.write_dataset(TABLE[:1], path, mode="append")
        if library is lance:
            merged = lance_dataset.LanceDataset.commit(dataset, transaction)
        else:
            merged = lance_dataset.LanceDataset.commit(path, transaction)
        assert lance.dataset(path).to_table(columns=["_rowid", "k"]).to_pydict() == {
            "_rowid": [0, 2, 4, 5, 3, 1, 6, 7],
            "k": [1, 3, 5, 1, 4, 2, 9, None],
        }
        assert merged.version == 3


# -- the primary key ---------------------------------------------------------------------------------------------------


def keyed(path: Path) -> Any:
    """Return a table whose primary key is (j, k)."""
    flag, position = b"lance-schema:unenforced-primary-key", b"lance-schema:unenforced-primary-key:position"
    fields = [
        pa.field("k", pa.int64(), False, {flag: b"true", position: b"2"}),
        pa.field("j", pa.string(), False, {flag: b"true", position: b"1"}),
        pa.field("w", pa.int64()),
    ]
    return lance.write_dataset(pa.table([[1, 2], ["a", "b"], [1, 2]], schema=pa.schema(fields)), path)


def key_filter(path: Path) -> Any:
    from lance_dataset._proto import transaction_pb2

    newest = max((path / "_transactions").iterdir(), key=lambda file: file.stat().st_mtime_ns)
    message = transaction_pb2.Transaction.FromString(newest.read_bytes())
    update = message.update
    return update.inserted_rows.SerializeToString(deterministic=True) if update.HasField("inserted_rows") else None


def test_primary_key(tmp_path: Path) -> None:
    """A merge without keys uses the primary key, and its filter of inserted keys matches the reference."""
    source = pa.table({"w": [3, 4], "k": [2, 5], "j": ["b", "x"]})
    filters = []
    for library in (lance_dataset, lance):
        path = tmp_path / library.__name__
        keyed(path)
        dataset = library.dataset(path)
        assert upsert(dataset, None).execute(source) == {
            "num_inserted_rows": 1,
            "num_updated_rows": 1,
            "num_deleted_rows": 0,
        }
        filters.append(key_filter(path))
        upsert(dataset, ["k"]).execute(source)
        assert key_filter(path) is None
    assert filters[0] is not None
    assert filters[0] == filters[1]


def test_two_inserts_of_the_same_key(tmp_path: Path) -> None:
    """The second of two concurrent inserts of a key updates the row of the first, whichever library wrote it."""
    rows = [pa.table({"k": [7], "j": ["x"], "w": [w]}) for w in (1, 2)]
    for first in (lance_dataset, lance):
        path = tmp_path / first.__name__
        keyed(path)
        slow = lance_dataset.dataset(path)
        refused = upsert(lance_dataset.dataset(path), None).conflict_retries(0)
        upsert(first.dataset(path), None).execute(rows[0])
        with pytest.raises(CommitConflictError):
            refused.execute(rows[1])
        assert upsert(slow, None).execute(rows[1])["num_updated_rows"] == 1
        assert slow.to_table(filter="k = 7").to_pylist() == [{"k": 7, "j": "x", "w": 2}]


# -- other writers -----------------------------------------------------------------------------------------------------


def data_files(path: Path) -> set[str]:
    return {file.name for folder in ("data", "_deletions") for file in (path / folder).glob("*")}


def referenced(path: Path) -> set[str]:
    found = set()
    for version in lance.dataset(path).versions():
        for fragment in lance.dataset(path, version=version["version"]).get_fragments():
            found |= {file.path for file in fragment.metadata.files}
            name = fragment.deletion_file()
            if name is not None:
                found.add(Path(name).name)
    return found


@pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
def test_other_writers(tmp_path: Path, mode: str) -> None:
    """A repeated merge matches rows that others appended, skips rows they deleted, and leaves no unused file."""
    path = tmp_path / "d"
    lance_dataset.write_dataset(TABLE, path, max_rows_per_file=2)
    early = [lance_dataset.dataset(path) for _ in range(3)]
    source = pa.table({"k": [1, 2, 6], "v": ["x", "y", "z"]})
    lance.write_dataset(pa.table({"k": [6], "v": ["f"]}), path, mode="append")
    lance.dataset(path).delete("k = 2")
    with pytest.raises(CommitConflictError):
        update(early[0]).write_mode(mode).conflict_retries(0).execute(source)
    assert data_files(path) == referenced(path)
    assert update(early[1]).write_mode(mode).execute(source)["num_updated_rows"] == 2
    assert early[1].version == 4
    # A second merge from the same old version works too.
    assert update(early[2]).write_mode(mode).execute(source)["num_updated_rows"] == 2
    values = {row["k"]: row["v"] for row in lance.dataset(path).to_table().to_pylist()}
    assert values == {1: "x", 3: "c", 4: None, 5: "e", 6: "z"}
    assert data_files(path) == referenced(path)


def test_nothing_is_left_over_after_errors(tmp_path: Path) -> None:
    path = tmp_path / "d"
    fields = [pa.field("k", pa.int64(), False), pa.field("v", pa.string(), False), pa.field("w", pa.int64())]
    dataset = lance_dataset.write_dataset(pa.table([[1, 2], ["a", "b"], [1, 2]], schema=pa.schema(fields)), path)
    before = data_files(path)
    with pytest.raises(SchemaError, match="'v' is declared not nullable"):
        upsert(dataset).execute(pa.table({"k": [1, 9], "v": ["x", None], "w": [1, 2]}))
    with pytest.raises(SchemaError, match="'v' is declared not nullable"):
        update(dataset).write_mode("rewrite_columns").execute(pa.table({"k": [1], "v": pa.array([None], pa.string())}))
    with pytest.raises(InvalidInputError, match=r"target column\(s\) \['v'\] are non-nullable"):
        upsert(dataset).execute(pa.table({"k": [1, 9], "w": [1, 2]}))
    assert update(dataset).execute(pa.table({"k": [1, 9], "v": ["x", None]}))["num_updated_rows"] == 1
    upsert(dataset).analyze_plan(pa.table({"k": [1, 9], "v": ["x", "y"]}))
    assert before < data_files(path)
    assert data_files(path) == referenced(path)


# -- what is written how -----------------------------------------------------------------------------------------------


def test_wide_rows_stay_in_place(tmp_path: Path) -> None:
    """Columns are rewritten in place without an option if whole rows would take much more."""
    wide = pa.table({"k": range(600), "n": range(600), "wide": [random.randbytes(10_000) for _ in range(600)]})
    path = tmp_path / "d"
    dataset = lance_dataset.write_dataset(wide, path, max_rows_per_file=400)
    source = pa.table({"k": range(0, 600, 2), "n": range(300)})
    assert update(dataset).execute(source)["num_updated_rows"] == 300
    assert [fragment.num_deletions for fragment in dataset.get_fragments()] == [0, 0]
    assert [len(fragment.data_files()) for fragment in dataset.get_fragments()] == [2, 2]
    found = lance.dataset(path).to_table()
    assert found["n"].to_pylist() == [row if row % 2 else row // 2 for row in range(600)]
    assert found["wide"].equals(wide["wide"])
    # A few rows are moved.
    assert update(dataset).execute(source[:1])["num_updated_rows"] == 1
    assert dataset.get_fragments()[0].num_deletions == 1


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2", "2.3"])
@pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
def test_file_versions(tmp_path: Path, version: str, mode: str) -> None:
    """Merges work in tables of every file version, with rows deleted before."""
    table = pa.table({"k": range(10), "v": [f"v{row}" for row in range(10)], "w": range(10)})
    path = tmp_path / "d"
    dataset = lance_dataset.write_dataset(table, path, max_rows_per_file=4, data_storage_version=version)
    dataset.delete("k = 3 or k = 8")
    builder = update(dataset).write_mode(mode)
    assert builder.execute(pa.table({"k": [8, 2, 1, 9], "v": list("abcd")}))["num_updated_rows"] == 3
    if mode == "rewrite_rows":
        upsert(dataset).execute(pa.table({"k": [20], "v": ["new"], "w": [20]}))
    expected = {row: f"v{row}" for row in range(10) if row not in (3, 8)} | {2: "b", 1: "c", 9: "d"}
    expected |= {20: "new"} if mode == "rewrite_rows" else {}
    for library in (lance_dataset, lance):
        if library is lance and version == "2.3":
            continue
        found = library.dataset(path).to_table().to_pylist()
        assert {row["k"]: row["v"] for row in found} == expected
        assert all(row["k"] == row["w"] for row in found)


def test_blobs(tmp_path: Path) -> None:
    """Blobs of the source are written, and updated rows keep their blobs if the source has no such column."""
    blob = pa.field("b", pa.large_binary(), True, {"lance-encoding:blob": "true"})
    schema = pa.schema([("k", pa.int64()), blob, ("w", pa.int64())])
    path = tmp_path / "d"
    dataset = lance_dataset.write_dataset(
        pa.table([[1, 2, 3], [b"aa", b"bb", None], [1, 2, 3]], schema=schema), path, data_storage_version="2.1"
    )
    upsert(dataset).execute(pa.table([[2, 4], [b"BB", b"DD"], [20, 40]], schema=schema))
    upsert(dataset).execute(pa.table({"k": [1, 5], "w": [10, 50]}))
    update(dataset).write_mode("rewrite_columns").execute(pa.table({"k": [2], "w": [21]}))
    keys = dataset.to_table(columns=["k", "w"]).to_pydict()
    assert keys == {"k": [3, 2, 4, 1, 5], "w": [3, 21, 40, 10, 50]}
    found = lance.dataset(path).take_blobs("b", indices=[1, 2, 3])
    assert [each.read() for each in found] == [b"BB", b"DD", b"aa"]
    source = pa.table([[2], [b"x"]], schema=pa.schema([("k", pa.int64()), blob]))
    with pytest.raises(InvalidInputError, match="blob column"):
        update(dataset).write_mode("rewrite_columns").execute(source)


def test_base_paths(tmp_path: Path) -> None:
    """New rows go to the requested base paths in turn."""
    bases = [lance_dataset.DatasetBasePath(str(tmp_path / name), name=name) for name in ("one", "two")]
    dataset = lance_dataset.write_dataset(TABLE, tmp_path / "d", initial_bases=bases, target_bases=["one"])
    upsert(dataset).target_bases(["two"]).execute(SOURCE)
    upsert(dataset).target_all_bases().execute(pa.table({"k": [77], "v": ["x"]}))
    assert [len(list((tmp_path / name).rglob("*.lance"))) for name in ("one", "two", "d/data")] == [1, 1, 1]
    assert lance.dataset(tmp_path / "d").count_rows() == 8


def test_lists_of_structs_are_whole(tmp_path: Path) -> None:
    """A source must have all fields of structs in lists, because items have no keys."""
    table = pa.table({"k": [1], "l": pa.array([[{"x": 1, "y": "p"}]], pa.list_(POINT))})
    dataset = lance_dataset.write_dataset(table, tmp_path / "d")
    with pytest.raises(SchemaError, match=r"no field 'l\.item\.y'"):
        upsert(dataset).execute(pa.table({"k": [1], "l": pa.array([[{"x": 5}]], pa.list_(HALF_POINT))}))


def test_sstables_are_objects(tmp_path: Path) -> None:
    """Progress of a MemWAL is a list of objects with the id of a shard; without a MemWAL it cannot be committed."""
    dataset = lance_dataset.write_dataset(TABLE, tmp_path / "d")
    with pytest.raises(TypeError, match="CompactedSsTable"):
        upsert(dataset).mark_sstables_as_compacted([object()])
    with pytest.raises(InvalidInputError, match="invalid shard id"):
        upsert(dataset).mark_sstables_as_compacted([lance_dataset.CompactedSsTable("x", 1)])
    shard = "11111111-2222-4333-8444-555555555555"
    with pytest.raises(InvalidInputError, match="no MemWAL"):
        upsert(dataset).mark_sstables_as_compacted([lance_dataset.CompactedSsTable(shard, 1)]).execute(TABLE)


def test_plans(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(TABLE, tmp_path / "d", max_rows_per_file=2)
    plan = update(dataset, "target.w > 1").explain_plan(partial("k", "v").schema, verbose=True)
    assert plan.startswith("MergeInsert: on=[k], when_matched=UpdateIf(target.w > 1), when_not_matched=DoNothing")
    assert "kept of updated rows: w, s" in plan
    assert "projection=[k, w]" in plan
    before = data_files(tmp_path / "d")
    plan = upsert(dataset).analyze_plan(SOURCE)
    assert "num_inserted_rows=2, num_updated_rows=2" in plan
    assert "in a hash table of the source of 4 rows" in plan
    assert data_files(tmp_path / "d") == before
    assert dataset.version == 1


def test_some_fields_of_structs_in_lists(tmp_path: Path) -> None:
    """Inserted rows get nulls for missing fields of structs in lists.

    Updates without these fields raise `SchemaError`, as items have no keys that tell which values to keep.
    """
    item = pa.struct([("x", pa.int64()), ("y", pa.string())])
    table = pa.table({"k": [1, 2], "v": pa.array([[{"x": 1, "y": "a"}], None], pa.list_(item))})
    source = pa.table({"k": [2, 3], "v": pa.array([[], [{"x": 3}, None]], pa.list_(HALF_POINT))})
    ends = []
    for library in (lance_dataset, lance):
        dataset = library.write_dataset(table, tmp_path / library.__name__)
        dataset.merge_insert("k").when_not_matched_insert_all().execute(source)
        ends.append(dataset.to_table().to_pydict())
    assert ends[0] == ends[1]
    dataset = lance_dataset.dataset(tmp_path / "lance_dataset")
    with pytest.raises(SchemaError, match=r"no field 'v\.item\.y'"):
        upsert(dataset).execute(source)


@pytest.mark.parametrize("name", ["dictionary", "json", "blob", "fixed-size list", "map"])
def test_empty_source_of_any_type(tmp_path: Path, name: str) -> None:
    """A source without rows works with columns of every type, and may lack required columns."""
    columns = {
        "dictionary": pa.array(["a", "b"]).dictionary_encode(),
        "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', None])),
        "blob": pa.array([b"a", b"b"], pa.large_binary()),
        "fixed-size list": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
        "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    }
    metadata = {"lance-encoding:blob": "true"} if name == "blob" else None
    schema = pa.schema(
        [("k", pa.int64()), pa.field("v", columns[name].type, metadata=metadata), pa.field("w", pa.int8(), False)]
    )
    table = pa.table([[1, 2], columns[name], [0, 0]], schema=schema)
    version = "2.1" if name == "blob" else "2.2"
    dataset = lance_dataset.write_dataset(table, tmp_path, data_storage_version=version)
    statistics = upsert(dataset).when_not_matched_by_source_delete("k > 1").execute(pd.DataFrame({"k": []}))
    assert statistics == {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 1}
    assert lance.dataset(tmp_path).count_rows() == 1
