"""Tests of legacy (0.1) datasets that this package writes, read by the reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.arrays.nested_arrays import nested_tables
from support.files.legacy_model import as_legacy

import lance_dataset

pytestmark = pytest.mark.filterwarnings("ignore:column .* legacy")


def write(table: pa.Table | pa.RecordBatchReader, path: Path, **options: object) -> lance_dataset.LanceDataset:
    return lance_dataset.write_dataset(table, path, data_storage_version="legacy", **options)


def plain(value: object) -> object:
    """Return the value, with NaNs as text so that they compare equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return "NaN" if isinstance(value, np.floating) and np.isnan(value) else value


def rows(table: pa.Table) -> dict[str, object]:
    return {name: plain(table[name].to_pylist()) for name in table.column_names}


def kept(table: pa.Table) -> dict[str, object]:
    """Return the rows as legacy files store them."""
    return {name: plain(as_legacy(table[name], table.schema.field(name)).to_pylist()) for name in table.column_names}


def has_type(kind: pa.DataType, test: Callable[[pa.DataType], bool]) -> bool:
    below = [kind.field(i).type for i in range(kind.num_fields)]
    return test(kind) or any(has_type(child, test) for child in below)


def is_untakeable(kind: pa.DataType) -> bool:
    """Return True for fixed-size lists of bools, of which the reference panics when it takes rows."""
    return pa.types.is_fixed_size_list(kind) and has_type(kind, pa.types.is_boolean)


@settings(max_examples=20)
@given(nested_tables("2.1"), st.sampled_from([1, 7, 1000, 1024]), st.sampled_from([5, 1000, 2**20]))
def test_reference_reads_random_tables(
    tmp_path_factory: pytest.TempPathFactory, table: pa.Table, group: int, per_file: int
) -> None:
    path = tmp_path_factory.mktemp("legacy") / "data.lance"
    few = max(1, len(table) // 200)  # otherwise there are too many batches and files for a quick test
    write(table, path, max_rows_per_group=group * few, max_rows_per_file=per_file * few)
    dataset = lance.dataset(path)
    assert dataset.data_storage_version == "0.1"
    assert dataset.schema == table.schema
    expected = kept(table)
    assert rows(lance_dataset.dataset(path).to_table()) == expected
    assert rows(dataset.to_table()) == expected
    names = [field.name for field in table.schema if not has_type(field.type, is_untakeable)]
    if names and len(table):
        chosen = np.random.default_rng(0).integers(0, len(table), 20).tolist()
        taken = rows(dataset.take(chosen, columns=names))
        assert taken == {name: [expected[name][row] for row in chosen] for name in names}


def flat_table(count: int = 5000) -> pa.Table:
    rng = np.random.default_rng(11)
    number = np.arange(count)
    texts = [
        None if item % 9 == 0 else f"{'long' * 20 if item // 600 % 2 else ''}{item:06}" for item in number.tolist()
    ]
    return pa.table(
        {
            "i": pa.array(number - 2500, pa.int32()),
            "u": pa.array(number // 700, pa.uint8()),
            "f": pa.array(np.where(number % 500 == 3, np.nan, number / 100)),
            "b": pa.array(number // 1200 % 2 == 0),
            "s": pa.array(texts),
            "r": pa.array([f"{item}" for item in rng.integers(0, 50, count)]),
            "x": pa.array([f"{item:05}".encode() for item in number.tolist()], pa.large_binary()),
            "day": pa.array(number // 24, pa.int32()).cast(pa.date32()),
            "d": pa.array(number, pa.int64()).cast(pa.decimal128(30, 2)),
            "t": pa.array([{"n": item // 1000, "z": f"{item // 100}"} for item in number.tolist()]),
        }
    )


_FILTERS = [
    "i < -2000",
    "i = 0",
    "i >= 2499",
    "i > 5000",
    "u = 3",
    "u != 3 and i < 0",
    "f > 49.5 and not isnan(f)",  # NaNs are not in the bounds, and greater than any number in the reference
    "f <= 0.0",
    "f = 12.34",
    "b",
    "not b",
    "s is null",
    "s is not null and i < -2400",
    "s < '000100'",
    "s > 'long'",
    "s = 'longlonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglong000700'",
    "s > 'longlonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglong000700'",
    "r = '7'",
    "day >= date '1970-07-01'",
    "d < cast(12 as decimal(30, 2))",
    "t.n = 4",
    "t.z = '44'",
]


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    path = tmp_path_factory.mktemp("filtered") / "data.lance"
    write(flat_table(), path, max_rows_per_group=100, max_rows_per_file=2050)
    return lance.dataset(path)


@pytest.mark.parametrize("filter", _FILTERS)
def test_reference_filters_by_our_statistics(filtered: lance.LanceDataset, filter: str) -> None:
    # The reference does not keep the order of batches when it uses statistics.
    with_statistics = filtered.to_table(filter=filter, use_stats=True).sort_by("i")
    assert rows(with_statistics) == rows(filtered.to_table(filter=filter, use_stats=False).sort_by("i"))
    assert rows(lance_dataset.dataset(filtered.uri).to_table(filter=filter)) == rows(with_statistics)


def dictionary(values: list[str | None], index: pa.DataType | None = None) -> pa.Array:
    return pa.array(values).dictionary_encode().cast(pa.dictionary(index or pa.int32(), pa.string()))


def test_both_append_to_one_dataset(tmp_path: Path) -> None:
    path = tmp_path / "data.lance"
    write(pa.table({"a": [1], "s": ["x"], "d": dictionary(["p"])}), path)
    lance.write_dataset(
        pa.table({"a": [2], "s": pa.array([None], pa.string()), "d": dictionary(["p"])}), path, mode="append"
    )
    more = pa.table({"a": [3, 4], "s": pa.nulls(2, pa.string()), "d": dictionary(["p", "p"])})
    lance_dataset.write_dataset(more, path, mode="append", max_rows_per_group=1)
    expected = {"a": [1, 2, 3, 4], "s": ["x", None, None, None], "d": ["p"] * 4}
    for module in (lance, lance_dataset):
        assert rows(module.dataset(path).to_table()) == expected
    assert lance.dataset(path).count_rows("a > 2") == 2


def test_appends_need_all_columns(tmp_path: Path) -> None:
    """Appends without a column raise `SchemaError`: the reference cannot change tables with such fragments."""
    table = pa.table({"id": [1, 2], "s": ["a", "b"], "t": [{"x": "p", "y": "q"}] * 2})
    lance.write_dataset(table, tmp_path / "d", data_storage_version="0.1")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(lance_dataset.errors.SchemaError, match=r"missing=\[s\]"):
        lance_dataset.write_dataset(table.select(["id", "t"]), tmp_path / "d", mode="append")
    with pytest.raises(lance_dataset.errors.SchemaError, match=r"missing=\[s\]"):
        lance_dataset.fragment.write_fragments(table.select(["id", "t"]), tmp_path / "d", mode="append")
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(OSError):
        lance.write_dataset(table.select(["id", "t"]), tmp_path / "d", mode="append")
    lance_dataset.write_dataset(table, tmp_path / "d", mode="append")
    lance.dataset(tmp_path / "d").alter_columns({"path": "s", "name": "u"})


def test_appended_dictionaries_are_mapped_to_that_of_the_dataset(tmp_path: Path) -> None:
    path = tmp_path / "data.lance"
    lance.write_dataset(pa.table({"d": dictionary(["x", "", "y"])}), path, data_storage_version="legacy")
    dataset = lance_dataset.dataset(path)
    dataset.insert(pa.table({"d": dictionary(["y", None, "x"])}))
    expected = ["x", None, "y", "y", None, "x"]
    for module in (lance, lance_dataset):
        assert module.dataset(path).to_table()["d"].to_pylist() == expected
    assert dataset.to_table()["d"].to_pylist() == expected
    with pytest.raises(lance_dataset.errors.SchemaError, match="'new' are not in the dictionary of the table"):
        lance_dataset.write_dataset(pa.table({"d": dictionary(["y", "new"])}), path, mode="append")
    assert lance.dataset(path).version == 2
    assert len(list((path / "data").iterdir())) == 2


@settings(max_examples=15)
@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "c", "dd", "", None]), max_size=9), min_size=1, max_size=5), st.data()
)
def test_nested_dictionaries_of_many_batches(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[list[str | None]], data: st.DataObject
) -> None:
    """Batches with a dictionary each, inside lists and null structs, are written."""
    chunks = []
    for values in pieces:
        words = dictionary(values, pa.uint8())
        cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), min_size=4, max_size=4)))
        lists = pa.ListArray.from_arrays(pa.array([cuts[0], None, *cuts[2:], len(values)], pa.int32()), words)
        inner = pa.StructArray.from_arrays([lists, words.take(pa.array([None] * 4, pa.int8()))], ["l", "w"])
        mask = pa.array(data.draw(st.lists(st.booleans(), min_size=4, max_size=4)))
        chunks.append(pa.record_batch({"t": pa.StructArray.from_arrays([inner], ["s"], mask=mask), "top": lists}))
    table = pa.Table.from_batches(chunks)
    path = tmp_path_factory.mktemp("nested") / "data.lance"
    write(table, path, max_rows_per_file=6, max_rows_per_group=4)
    expected = kept(table)
    for module in (lance, lance_dataset):
        assert rows(module.dataset(path).to_table()) == expected
    shuffled = table.slice(len(pieces) * 2)
    lance_dataset.write_dataset(shuffled, path, mode="append")
    assert rows(lance.dataset(path).to_table()) == {name: expected[name] + kept(shuffled)[name] for name in expected}


def test_dictionaries_of_an_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "data.lance"
    chunks = [dictionary(["a", "b"]), dictionary(["c", None]), dictionary(["b", "d"])]
    table = pa.table({"s": [{"d": value} for value in range(6)], "d": pa.chunked_array(chunks)})
    write(table, path, max_rows_per_file=3)
    assert len(lance.dataset(path).get_fragments()) == 2
    assert lance.dataset(path).to_table()["d"].to_pylist() == ["a", "b", "c", None, "b", "d"]
    lance_dataset.write_dataset(pa.table({"d": dictionary(["q"])}), path, mode="overwrite")
    assert lance.dataset(path).data_storage_version == "0.1"
    assert lance.dataset(path).to_table()["d"].to_pylist() == ["q"]
    assert lance.dataset(path, version=1).to_table()["d"].to_pylist() == ["a", "b", "c", None, "b", "d"]


def test_empty_tables(tmp_path: Path) -> None:
    path = tmp_path / "data.lance"
    nested = pa.array([{"d": "x", "n": 1}], pa.struct([("d", pa.dictionary(pa.int8(), pa.string())), ("n", pa.int8())]))
    table = pa.table({"a": [1], "t": nested, "d": dictionary(["p"])})
    created = write(table.slice(0, 0), path)
    assert created.get_fragments() == []
    assert lance.dataset(path).count_rows() == 0
    assert lance.dataset(path).schema == table.schema
    lance_dataset.write_dataset(table.slice(0, 0), path, mode="append")
    lance_dataset.write_dataset(table, path, mode="append")
    expected = rows(table)
    for module in (lance, lance_dataset):
        assert rows(module.dataset(path).to_table()) == expected
    assert created.version == 1
    assert lance.dataset(path).data_storage_version == "0.1"


def test_only_one_writer_fills_an_empty_dataset(tmp_path: Path) -> None:
    """Only one of two writers may fill an empty dataset, because the first rows define the dictionaries."""
    path = tmp_path / "data.lance"
    table = pa.table({"d": dictionary(["p"])})
    before = write(table.slice(0, 0), path)
    target = lance_dataset.changes.write.target.WriteTarget.of(before.snapshot, None, None, as_shown=False)
    schema, version = target.plan(table.schema, "append", None)
    options = lance_dataset.changes.write.fragment_files.WriteOptions(version)
    fragments, filled = lance_dataset.changes.write.fragment_files.write_fragment_files(
        target.store, target.root, schema, table.to_batches(), options
    )
    lance_dataset.write_dataset(pa.table({"d": dictionary(["other"])}), path, mode="append")
    overwrite = lance_dataset.table.operations.Overwrite(filled, tuple(fragments), storage_version=version)
    with pytest.raises(lance_dataset.errors.CommitConflictError):
        target.commit("append", overwrite, lance_dataset.changes.write.target.CommitOptions())
    assert lance.dataset(path).to_table()["d"].to_pylist() == ["other"]


def test_fragments_find_their_dictionaries(tmp_path: Path) -> None:
    path = tmp_path / "data.lance"
    table = pa.table({"d": dictionary(["p", "q", None])})
    write_fragments = lance_dataset.fragment.write_fragments
    options = {"data_storage_version": "legacy", "mode": "overwrite"}
    first = write_fragments(table, path, max_rows_per_file=2, **options)
    operation = lance_dataset.LanceOperation.Overwrite(table.schema, first)
    lance_dataset.LanceDataset.commit(path, operation)
    second = write_fragments(pa.table({"d": dictionary(["q", "p"])}), path)
    lance_dataset.LanceDataset.commit(path, lance_dataset.LanceOperation.Append(second), read_version=1)
    for module in (lance, lance_dataset):
        assert module.dataset(path).to_table()["d"].to_pylist() == ["p", "q", None, "q", "p"]
    transaction = write_fragments(table.slice(1, 1), path, mode="overwrite", return_transaction=True)
    lance_dataset.LanceDataset.commit(path, transaction)
    assert lance.dataset(path).to_table()["d"].to_pylist() == ["q"]


def test_fragments_with_different_dictionaries_do_not_go_together(tmp_path: Path) -> None:
    path = tmp_path / "data.lance"
    write_fragments = lance_dataset.fragment.write_fragments
    options = {"data_storage_version": "legacy", "mode": "overwrite"}
    table = pa.table({"d": dictionary(["p"])})
    fragments = [write_fragments(pa.table({"d": dictionary([text])}), path, **options)[0] for text in ("p", "q")]
    commit = lance_dataset.LanceDataset.commit
    operation = lance_dataset.LanceOperation.Overwrite(table.schema, fragments)
    with pytest.raises(lance_dataset.errors.SchemaError, match="written with different dictionaries"):
        commit(path, operation)
    commit(path, lance_dataset.LanceOperation.Overwrite(table.schema, fragments[:1]))
    with pytest.raises(lance_dataset.errors.SchemaError, match=r"'d'.*written with another dictionary"):
        commit(path, lance_dataset.LanceOperation.Append(fragments[1:]), read_version=1)
    assert lance.dataset(path).to_table()["d"].to_pylist() == ["p"]


def test_fragment_create_cuts_batches(tmp_path: Path) -> None:
    created = lance_dataset.LanceFragment.create(
        tmp_path / "data.lance", pa.table({"a": range(10)}), max_rows_per_group=4, data_storage_version="legacy"
    )
    assert created.files[0].column_indices == []
    operation = lance_dataset.LanceOperation.Overwrite(pa.schema([("a", pa.int64())]), [created])
    lance_dataset.LanceDataset.commit(tmp_path / "data.lance", operation)
    batches = list(lance.dataset(tmp_path / "data.lance").to_batches())
    assert [len(batch) for batch in batches] == [4, 4, 2]


def test_failed_writes_leave_nothing(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int8(), nullable=False)])

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(10):
            yield pa.record_batch([pa.array([number] * 100, pa.int8())], schema=schema)
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        write(pa.RecordBatchReader.from_batches(schema, batches()), tmp_path / "d.lance", max_rows_per_file=300)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_json_columns(tmp_path: Path) -> None:
    values = pa.array(['{"a":[1,2]}', None, "3"]).cast(pa.json_(pa.string()))
    path = tmp_path / "data.lance"
    write(pa.table({"j": values}), path)
    for module in (lance, lance_dataset):
        assert module.dataset(path).to_table()["j"].to_pylist() == ['{"a":[1,2]}', None, "3"]


def test_use_legacy_format(tmp_path: Path) -> None:
    """`use_legacy_format` wins over the newer parameter if it is true, and means the default version if false."""
    table = pa.table({"a": [1, 2, 3]})
    for module in (lance_dataset, lance):
        path = str(tmp_path / module.__name__)
        module.write_dataset(table, path, use_legacy_format=True, data_storage_version="2.0")
        assert module.dataset(path).data_storage_version == "0.1"
        with pytest.raises((OSError, ValueError)):
            module.write_dataset(table, path, mode="append", use_legacy_format=False)
        module.write_dataset(table, path, mode="overwrite", use_legacy_format=False)
        assert module.dataset(path).data_storage_version == "2.2"


def test_files_are_cut_by_bytes_between_batches(tmp_path: Path) -> None:
    table = pa.table({"a": range(20_000), "b": range(20_000)})
    path = str(tmp_path / "t")
    lance_dataset.write_dataset(table, path, data_storage_version="legacy", max_bytes_per_file=100_000)
    fragments = lance_dataset.dataset(path).get_fragments()
    assert [fragment.count_rows() for fragment in fragments] == [7 * 1024, 7 * 1024, 20_000 - 14 * 1024]
    assert lance.dataset(path).to_table() == table


def test_warnings_come_from_the_caller(tmp_path: Path) -> None:
    """Warnings point to the caller, so that Python shows them once for each place in a program."""
    table = pa.table({"a": pa.array([1, None])})
    with pytest.warns(UserWarning, match=r"column 'a' holds nulls.*later data_storage_version") as caught:
        lance_dataset.write_dataset(table, str(tmp_path / "t"), data_storage_version="legacy")
    assert caught[0].filename == __file__
