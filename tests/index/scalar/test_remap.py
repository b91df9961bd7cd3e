"""Tests of scalar indices of compacted tables: the files equal those of the reference, and it uses them."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.indices import IndexConfig
from support.tables.equality import assert_same
from support.tables.index_content import index_content, index_entries

import lance_dataset
from lance_dataset._proto import transaction_pb2
from lance_dataset.errors import LanceError
from lance_dataset.index.files import IndexFolder, NewIndexFolder
from lance_dataset.index.remap import _REMAPS
from lance_dataset.io.local import LocalStore
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.indices.coverage import index_kind
from lance_dataset.table.indices.moved_rows import MovedRows, Relocation, RewrittenGroup
from lance_dataset.table.operations import CreateIndex
from lance_dataset.table.roaring import encode_bitmap, encode_treemap
from lance_dataset.table.transaction import Transaction

ROWS = 60
Values = Callable[[np.ndarray], pa.Array]


def _with_nulls(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([None if number % 7 == 3 else value for number, value in enumerate(values)], kind)


def _floats(kind: pa.DataType) -> Values:
    special = [float("nan"), float("-inf"), float("inf"), -0.0, 0.0]

    def make(numbers: np.ndarray) -> pa.Array:
        values = [special[number % 11] if number % 11 < 5 else number % 9 / 4 for number in numbers.tolist()]
        return _with_nulls(np.array(values, kind.to_pandas_dtype()).tolist(), kind)

    return make


def _made(kind: pa.DataType, make: Callable[[int], Any]) -> Values:
    return lambda numbers: _with_nulls([make(number) for number in numbers.tolist()], kind)


#: A column of each type, and literals of it for filters.
TYPES: dict[str, tuple[Values, tuple[str, ...]]] = {
    "bool": (_made(pa.bool_(), lambda n: n % 3 == 0), ("true", "false")),
    "int8": (_made(pa.int8(), lambda n: n % 50 - 20), ("-5", "12")),
    "uint64": (_made(pa.uint64(), lambda n: n % 9 + (1 << 63)), (str((1 << 63) + 2),)),
    "int64": (_made(pa.int64(), lambda n: n * 7 % 23), ("0", "5", "22", "100")),
    "float": (_floats(pa.float32()), ("cast('NaN' as float)", "0.5", "0.0")),
    "double": (_floats(pa.float64()), ("cast('NaN' as double)", "0.5", "-0.0")),
    "string": (_made(pa.string(), lambda n: f"{n % 13}" * (n % 4)), ("''", "'11'", "'9'")),
    "large_string": (_made(pa.large_string(), lambda n: f"{n % 13}" * (n % 4)), ("''", "'11'")),
    "binary": (_made(pa.binary(), lambda n: bytes([n % 5]) * (n % 3)), ("x'01'", "x'0202'")),
    "fixed_binary": (_made(pa.binary(2), lambda n: bytes([n % 5, n % 2])), ()),
    "decimal": (_made(pa.decimal128(9, 2), lambda n: decimal.Decimal(n % 17) / 4), ()),
    "decimal256": (_made(pa.decimal256(50, 2), lambda n: decimal.Decimal(n % 17) / 4), ()),
    "half": (_made(pa.float16(), lambda n: np.float16(n % 9 / 2)), ("1.5",)),
    "date": (_made(pa.date32(), lambda n: dt.date(2000, 1, n % 20 + 1)), ("date '2000-01-05'",)),
    "timestamp": (
        _made(pa.timestamp("us", "UTC"), lambda n: dt.datetime(2000, 1, n % 20 + 1, tzinfo=dt.timezone.utc)),
        (),
    ),
    "time": (_made(pa.time64("us"), lambda n: dt.time(n % 20)), ()),
    "duration": (_made(pa.duration("ms"), lambda n: dt.timedelta(seconds=n % 20)), ()),
    "all_null": (lambda numbers: pa.nulls(len(numbers), pa.int32()), ("1",)),
}


def _filters(literals: tuple[str, ...]) -> list[str]:
    compared = [f"v {sign} {literal}" for literal in literals for sign in ("=", "!=", "<", ">=")]
    several = [f"v in ({', '.join(literals)})"] if literals else []
    return ["v is null", "v is not null", *compared, *several]


def _table(values: Values, start: int, rows: int = ROWS) -> pa.Table:
    numbers = np.arange(start, start + rows)
    table = pa.table({"n": numbers, "v": values(numbers)})
    if values is not _points:
        return table
    point = pa.field("v", POINT, metadata={"ARROW:extension:name": "geoarrow.point"})
    return table.cast(pa.schema([table.schema.field("n"), point]))


def _append(path: Path, table: pa.Table, **options: Any) -> None:
    mode = "append" if path.exists() else "create"
    lance.write_dataset(table, str(path), mode=mode, **options)


def _fragments(path: Path, values: Values, count: int = 3, **options: Any) -> lance.LanceDataset:
    for number in range(count):
        _append(path, _table(values, number * ROWS), **options)
    return lance.dataset(str(path))


def _compacted(path: Path, **options: Any) -> Path:
    """Compact a table with this package, and a copy of it with the reference, and return the path of the copy."""
    copy = Path(f"{path}-copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path, copy)
    theirs = lance.dataset(str(copy)).optimize.compact_files(**options)
    ours = lance_dataset.dataset(path).optimize.compact_files(**options)
    assert ours.fragments_removed == theirs.fragments_removed > 0
    return copy


def _check_same(path: Path, copy: Path) -> None:
    ours, theirs = index_content(path), index_content(copy)
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    for (name, left), (_, right) in zip(ours, theirs, strict=True):
        assert left.files.keys() == right.files.keys()
        for file, content in left.files.items():
            expected = right.files[file]
            assert content.rows.schema.equals(expected.rows.schema, check_metadata=True), (name, file)
            assert_same(pa.table(content.rows), pa.table(expected.rows))
            assert content.metadata == expected.metadata, (name, file)
            assert content.buffers == expected.buffers, (name, file)
            assert content.version == expected.version, (name, file)
        assert (left.version, left.read_version, left.details, left.coverage) == (
            right.version,
            right.read_version,
            right.details,
            right.coverage,
        )


def _check_queries(path: Path, filters: list[str], plan: str | None = "ScalarIndexQuery") -> None:
    """Check that the reference finds the same rows with the index as without."""
    dataset = lance.dataset(str(path))
    for condition in filters:
        expected = dataset.scanner(filter=condition, columns=["n"], use_scalar_index=False)
        found = dataset.scanner(filter=condition, columns=["n"])
        assert found.to_table().sort_by("n").equals(expected.to_table().sort_by("n")), condition
        if plan is not None:
            assert plan in found.explain_plan(), (condition, found.explain_plan())


def _check_goes_on(
    path: Path, values: Values, filters: list[str], plan: str | None = "ScalarIndexQuery", *, optimized: bool = True
) -> None:
    """Check that the reference appends, optimizes, deletes, compacts, and still finds the right rows."""
    _append(path, _table(values, 10 * ROWS))
    dataset = lance.dataset(str(path))
    if optimized:
        dataset.optimize.optimize_indices()
    _check_queries(path, filters, plan)
    dataset = lance.dataset(str(path))
    dataset.delete("n % 5 = 1")
    dataset.optimize.compact_files()
    _check_queries(path, filters, plan)


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
@pytest.mark.parametrize("name", TYPES)
def test_types(tmp_path: Path, name: str, kind: str) -> None:
    """Indices of values of any type, with nulls, are remapped, with pages divided anew after rows were removed."""
    values, literals = TYPES[name]
    path = tmp_path / "t"
    dataset = _fragments(path, values)
    options = {"zone_size": 16} if kind == "BTREE" else {}
    dataset.create_scalar_index("v", IndexConfig(kind.lower(), options))
    dataset.delete("n % 4 = 1 or n % 23 < 4")
    copy = _compacted(path)
    _check_same(path, copy)
    plan = None if "NaN" in str(literals) else "ScalarIndexQuery"
    _check_queries(path, _filters(literals), plan)


def _lists(kind: pa.DataType) -> Values:
    made: list[Any] = [None, [], ["a"], ["a", None], [None], ["b", "b"], ["a", "b", "c"]]
    return lambda numbers: pa.array([made[number % 7] for number in numbers.tolist()], kind)


def _texts(numbers: np.ndarray) -> pa.Array:
    made = [None, "", "x", "Hello World", "straße 12", "the quick brown fox", "jumps over {}"]
    texts = [made[number % 7] for number in numbers.tolist()]
    return pa.array([text and text.format(number) for text, number in zip(texts, numbers.tolist(), strict=True)])


def _documents(numbers: np.ndarray) -> pa.Array:
    made = [None, "{}", '{"x": null}', '{"x": %d}']
    texts = [made[number % 4] for number in numbers.tolist()]
    texts = [text % number if text and "%" in text else text for text, number in zip(texts, numbers, strict=True)]
    return pa.ExtensionArray.from_storage(pa.json_(pa.utf8()), pa.array(texts, pa.utf8()))


def _points(numbers: np.ndarray) -> pa.Array:
    return pa.array([None if n % 7 == 3 else {"x": float(n), "y": float(n * 7 % 13)} for n in numbers.tolist()], POINT)


POINT = pa.struct([("x", pa.float64()), ("y", pa.float64())])
LABELS = ("array_has(v, 'a')", "array_has_any(v, ['b', 'c'])", "array_has_all(v, ['a', 'b'])", "not array_has(v, 'a')")
NUMBERS = tuple(f"json_get_int(v, 'x') {test}" for test in ("= 7", "> 50", "is null", "in (3, 11, 15, 19)"))
#: Column, index, filters that it serves.
KINDS: dict[str, tuple[Values, Any, tuple[str, ...]]] = {
    "btree": (TYPES["int64"][0], IndexConfig("btree", {"zone_size": 8}), tuple(_filters(("3", "11")))),
    "bitmap": (TYPES["string"][0], "BITMAP", tuple(_filters(("'11'",)))),
    "label_list": (_lists(pa.list_(pa.string())), "LABEL_LIST", LABELS),
    "large_label_list": (_lists(pa.large_list(pa.large_string())), "LABEL_LIST", LABELS),
    "ngram": (_texts, "NGRAM", ("contains(v, 'ello')", "contains(v, 'ass')", "contains(v, 'zzz')")),
    "json_btree": (_documents, IndexConfig("json", {"target_index_type": "btree", "path": "x"}), NUMBERS),
    "json_bitmap": (_documents, IndexConfig("json", {"target_index_type": "bitmap", "path": "x"}), NUMBERS),
}
#: Indices that no compaction changes.
FIXED: dict[str, tuple[Values, Any, tuple[str, ...]]] = {
    "zonemap": (TYPES["int64"][0], "ZONEMAP", ("v = 3", "v is null")),
    "bloomfilter": (TYPES["int64"][0], "BLOOMFILTER", ("v = 3", "v is null")),
    "fm": (_texts, IndexConfig("fm", {}), ("contains(v, 'ello')",)),
    "rtree": (_points, "RTREE", ("n > 3",)),
    "json_zonemap": (_documents, IndexConfig("json", {"target_index_type": "zonemap", "path": "x"}), NUMBERS[:1]),
}


@pytest.mark.parametrize("name", KINDS | FIXED)
def test_kinds(tmp_path: Path, name: str) -> None:
    """Indices of all kinds are remapped after rows were deleted."""
    values, index, filters = (KINDS | FIXED)[name]
    path = tmp_path / "t"
    dataset = _fragments(path, values)
    dataset.create_scalar_index("v", index)
    dataset.delete("n % 4 = 1 or n % 23 < 4")
    before = index_content(path)
    copy = _compacted(path)
    _check_same(path, copy)
    plan = None if name in FIXED else "ScalarIndexQuery"
    assert (index_content(path) == before) == (name in FIXED)
    _check_queries(path, list(filters), plan)
    # The reference cannot extend bitmaps of values in JSON.
    _check_goes_on(path, values, list(filters), plan, optimized=name != "json_bitmap")


@pytest.mark.parametrize("name", ["btree", "bitmap", "label_list", "ngram"])
def test_values_that_went(tmp_path: Path, name: str) -> None:
    """Values without any row left are removed, and then an index without any row left is remapped."""
    values, index, filters = KINDS[name]
    path = tmp_path / "t"
    dataset = _fragments(path, values)
    dataset.create_scalar_index("v", index)
    dataset.delete("n % 7 != 2 or n > 100" if name != "btree" else "v >= 3 or v is null")
    copy = _compacted(path)
    _check_same(path, copy)
    _check_queries(path, list(filters))
    for each in (path, copy):
        lance.dataset(str(each)).delete("n < 1000")
        _append(each, _table(values, 0, 5))
        lance.dataset(str(each)).delete("n = 3")
    copy = _compacted(path)
    _check_same(path, copy)
    _check_queries(path, list(filters), None)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "json_bitmap"])
def test_segments(tmp_path: Path, name: str) -> None:
    """An index of two segments, with fragments without index, is compacted by both libraries in turn."""
    values, index, filters = KINDS[name]
    path = tmp_path / "t"
    dataset = _fragments(path, values, 2)
    dataset.create_scalar_index("v", index)
    for start in (2, 3):
        _append(path, _table(values, start * ROWS))
    dataset = lance.dataset(str(path))
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    for start in (4, 5):
        _append(path, _table(values, start * ROWS))
    lance.dataset(str(path)).delete("n % 3 = 1")
    copy = _compacted(path)
    _check_same(path, copy)
    _check_queries(path, list(filters))
    lance.dataset(str(path)).optimize.optimize_indices(num_indices_to_merge=0)
    _append(path, _table(values, 6 * ROWS))
    lance.dataset(str(path)).delete("n % 5 = 1")
    copy = _compacted(path)
    _check_same(path, copy)
    _check_queries(path, list(filters))
    _check_goes_on(path, values, list(filters))


@pytest.mark.parametrize("name", KINDS)
def test_untrained(tmp_path: Path, name: str) -> None:
    """An index without rows stays unchanged."""
    values, index, filters = KINDS[name]
    path = tmp_path / "t"
    dataset = _fragments(path, values)
    dataset.create_scalar_index("v", index, train=False)
    dataset.delete("n % 4 = 1")
    copy = _compacted(path)
    _check_same(path, copy)
    _check_queries(path, list(filters), None)


@pytest.mark.parametrize("name", ["btree", "bitmap", "label_list", "ngram"])
def test_stable_row_ids(tmp_path: Path, name: str) -> None:
    """In a table with stable row ids, only B-trees have addresses."""
    values, index, filters = KINDS[name]
    path = tmp_path / "t"
    dataset = _fragments(path, values, enable_stable_row_ids=True)
    dataset.create_scalar_index("v", index)
    dataset.delete("n % 4 = 1 or n % 23 < 4")
    before = index_content(path)
    copy = _compacted(path)
    _check_same(path, copy)
    assert (index_content(path)[0][1].files == before[0][1].files) == (name != "btree")
    _check_queries(path, list(filters))
    _check_goes_on(path, values, list(filters))


def test_minhash(tmp_path: Path) -> None:
    """Deleted documents leave no gap, and pages of bands get other last keys."""
    path = tmp_path / "t"
    dataset = _fragments(path, _texts)
    dataset.create_scalar_index("v", IndexConfig("minhashlsh", {"num_hashes": 8, "num_bands": 4}))
    dataset.delete("n % 4 = 1 or n % 23 < 4")
    _check_same(path, _compacted(path))
    dataset = lance.dataset(str(path))
    dataset.delete("n > 10")
    _append(path, _table(_texts, 2))
    _check_same(path, _compacted(path))


@pytest.mark.parametrize("name", ["bitmap", "label_list", "ngram"])
def test_many_rows_of_a_value(tmp_path: Path, name: str) -> None:
    """Sets of rows stored as bits are remapped, in fragments that are rewritten and in one that is not."""
    path = tmp_path / "t"
    texts = np.array(["abc", "xyz", "abcdef"])
    for number in range(4):
        numbers = np.arange(number * 30_000, (number + 1) * 30_000)
        values = pa.array(texts[numbers * numbers // 7 % 3])
        if name == "label_list":
            values = pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1), pa.int32()), values)
        _append(path, pa.table({"n": numbers, "v": values}))
    dataset = lance.dataset(str(path))
    dataset.create_scalar_index("v", KINDS[name][1])
    dataset.delete("n % 1000 = 1 and n < 60000")
    options = {"target_rows_per_fragment": 30_000, "materialize_deletions_threshold": 0.0}
    _check_same(path, _compacted(path, **options))
    assert len(lance.dataset(str(path)).get_fragments()) == 3
    _check_same(path, _compacted(path))
    filters = {
        "bitmap": ("v = 'abc'", "v != 'xyz'", "v is null"),
        "label_list": ("array_has(v, 'abc')", "not array_has(v, 'xyz')"),
        "ngram": ("contains(v, 'abc')", "contains(v, 'cde')"),
    }
    _check_queries(path, list(filters[name]))


def test_after_deferred_compactions(tmp_path: Path) -> None:
    """Rows that moved twice before their index was updated are found."""
    values, index, filters = KINDS["bitmap"]
    path = tmp_path / "t"
    dataset = _fragments(path, values)
    dataset.create_scalar_index("v", index)
    dataset.delete("n % 4 = 1")
    dataset.optimize.compact_files(defer_index_remap=True)
    dataset = lance.dataset(str(path))
    dataset.delete("n % 3 = 1")
    lance_dataset.dataset(path).optimize.compact_files(materialize_deletions_threshold=0.0)
    content = dict(index_content(path))["v_idx"].files["bitmap_page_lookup.lance"].rows
    fragments = {fragment.fragment_id for fragment in lance.dataset(str(path)).get_fragments()}
    assert {int.from_bytes(rows[4:8], "little") for rows in content["bitmaps"].to_pylist()} == fragments
    _check_queries(path, list(filters))


OLD = Path(__file__).parents[2] / "fixtures" / "indices"


@pytest.mark.parametrize("name", ["pylance-0.10.18", "pylance-0.20.0", "pylance-1.0.0"])
def test_old_releases(tmp_path: Path, name: str) -> None:
    """Indices of old releases get the values, pages and rows that the reference writes, in files of version 2.0."""
    path = tmp_path / "t"
    shutil.copytree(OLD / name, path)
    dataset = lance_dataset.dataset(path)
    dataset.delete("n % 9 = 4 or (v > 500 and v < 1700)")
    copy = _compacted(path)
    changes = [transaction_pb2.Transaction.FromString(file.read_bytes()) for file in path.glob("_transactions/*.txn")]
    followed = [index for change in changes for index in change.rewrite.rewritten_indices]
    assert followed
    assert all(index.new_index_details.type_url for index in followed)  # the reference needs it to read the rewrite
    ours, theirs = dict(index_content(path)), dict(index_content(copy))
    assert ours.keys() == theirs.keys()
    for index, content in ours.items():
        for file, left in content.files.items():
            right = theirs[index].files[file]
            assert left.version == right.version == "2.0"
            rows, expected = pa.table(left.rows), pa.table(right.rows)
            if "keys" in rows.column_names:  # which the reference sorts
                rows, expected = (table.sort_by("keys") for table in (rows, expected))
            assert_same(rows, expected)
            assert left.metadata.items() <= right.metadata.items()
    filters = ["v = 7", "v is null", "v < 100", "s = 'x'", "s > 'x'", "s is null", "array_has(l, 'b')"]
    _check_queries(path, filters[:3], "MaterializeIndex" if "0.10" in name else "ScalarIndexQuery")
    _check_queries(path, filters, None)
    lance.dataset(str(path)).delete("n % 5 = 1")
    lance.dataset(str(path)).optimize.compact_files()
    _check_queries(path, filters, None)


def test_values_in_several_files(tmp_path: Path) -> None:
    """A B-tree whose values are spread over files by range is remapped."""
    values, index, filters = KINDS["btree"]
    path = tmp_path / "t"
    dataset = _fragments(path, values)
    dataset.create_scalar_index("v", index)
    _spread(path, [0, 50, 81])
    _check_queries(path, list(filters))
    dataset = lance.dataset(str(path))
    dataset.delete("n % 4 = 1 or n % 23 < 4")
    copy = _compacted(path)
    left, right = (index_content(each)[0][1].files for each in (path, copy))
    assert "page_data.lance" in left
    parts = [content.rows for file, content in sorted(right.items()) if file.endswith("page_data.lance")]
    assert left["page_data.lance"].rows.equals(pa.Table.from_batches(parts).combine_chunks().to_batches()[0])
    _check_queries(path, list(filters))
    _check_goes_on(path, values, list(filters))


def _spread(path: Path, starts: list[int]) -> None:
    """Spread the values of a B-tree over files that start at the given values."""
    [entry] = index_entries(path)
    store, folder = LocalStore(), f"{path}/_indices/{entry.uuid}"
    source = IndexFolder(store, folder)
    data, lookup = source.open("page_data.lance"), source.open("page_lookup.lance")
    size = int(lookup.metadata["batch_size"])
    uuid = str(uuid4())
    target = NewIndexFolder(store, f"{path}/_indices/{uuid}")
    parts, pages = [], []
    for number, (start, stop) in enumerate(pairwise([*starts, data.num_rows])):
        part = number << 32
        target.write(f"part_{part}_page_data.lance", data.schema, "2.2", [data.read(start, stop)])
        cut = [data.read(low, min(low + size, stop)).column(0) for low in range(start, stop, size)]
        parts.append((part, len(cut)))
        pages += [(page[0].as_py(), page[-1].as_py(), page.null_count) for page in cut]
    firsts, lasts, nulls = zip(*pages, strict=True)
    schema = lookup.schema.storage_arrow.remove_metadata()
    columns = (firsts, lasts, nulls, range(len(pages)))
    batch = pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )
    metadata = {"batch_size": str(size), "range_partitioned": "true", "page_num_per_range_partition": json.dumps(parts)}
    target.write("page_lookup.lance", lookup.schema, "2.2", [batch], metadata)
    dataset = lance_dataset.dataset(path)
    change = CreateIndex((replace(entry, uuid=uuid, files=target.files),), (entry,))
    commit_transaction(dataset.snapshot.store, dataset.snapshot.root, Transaction(dataset.version, change))


@pytest.mark.parametrize("name", [*KINDS, "minhash"])
def test_damaged_files(tmp_path: Path, name: str) -> None:
    """Remapping an index file with any damage ends, with a result or a clear error."""
    minhash = (_texts, IndexConfig("minhashlsh", {"num_hashes": 8, "num_bands": 4}), ())
    values, index, _ = (KINDS | {"minhash": minhash})[name]
    path = tmp_path / "t"
    _fragments(path, values, 2).create_scalar_index("v", index)
    [entry] = index_entries(path)
    surviving = encode_treemap({number: encode_bitmap(np.arange(0, ROWS, 2)) for number in range(2)})
    moved = Relocation((MovedRows([RewrittenGroup(surviving, ((0, ROWS), (1, ROWS)), ((2, ROWS),))], "moved"),))
    remap = _REMAPS[index_kind(entry.to_proto()) or ""]
    files = {file.path: (path / "_indices" / entry.uuid / file.path).read_bytes() for file in entry.files}
    random = np.random.default_rng(5)
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    store = LocalStore(fsync=False)
    refused = 0
    for number in range(40):
        for file, content in files.items():
            changed = bytearray(content)
            for place in random.integers(0, len(changed), random.integers(0, 3)):
                changed[place] ^= int(random.integers(1, 256))
            (damaged / file).write_bytes(changed)
        try:
            remap(IndexFolder(store, str(damaged)), NewIndexFolder(store, f"{tmp_path}/{number}"), moved, entry)
        except LanceError:
            refused += 1
    assert 0 < refused < 40
