"""Tests of keys of every type in a hash index, compared with pylance's merge_insert and plain Python."""

from __future__ import annotations

import datetime as dt
import decimal
import threading
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset.changes.keys.key_columns import cast_keys, key_columns
from lance_dataset.changes.keys.key_index import KeyIndex, index_size
from lance_dataset.errors import SchemaError, UnsupportedError

NAN, OTHER_NAN = (np.array([bits], np.uint64).view(np.float64)[0] for bits in (0x7FF8 << 48, (0x7FF8 << 48) + 1))
D = decimal.Decimal
STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])
#: Three different keys of each type.
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    **{name: (getattr(pa, name)(), [1, 2, 3]) for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32")},
    **{name: (getattr(pa, name)(), [0, 2**62, 3]) for name in ("int64", "uint64")},
    "half float": (pa.float16(), [np.float16(1), np.float16(2), np.float16("nan")]),
    "float": (pa.float32(), [0.0, -0.0, float("nan")]),
    "double": (pa.float64(), [0.0, -0.0, 1e300]),
    "double nan": (pa.float64(), [NAN, OTHER_NAN, 1.0]),
    "decimal128": (pa.decimal128(10, 2), [D("1.00"), D("-2.00"), D("3.50")]),
    "decimal256": (pa.decimal256(50, 2), [D("1.00"), D("-2.00"), D("3.50")]),
    "date32": (pa.date32(), [dt.date(2020, 1, 1), dt.date(1960, 1, 1), dt.date(2021, 1, 1)]),
    "date64": (pa.date64(), [dt.date(2020, 1, 1), dt.date(1960, 1, 1), dt.date(2021, 1, 1)]),
    "timestamp": (pa.timestamp("us"), [1, 2, 3]),
    "timestamp with time zone": (pa.timestamp("ns", "Europe/Berlin"), [1, 2, 3]),
    "time32": (pa.time32("s"), [1, 2, 3]),
    "time64": (pa.time64("ns"), [1, 2, 3]),
    "duration": (pa.duration("ms"), [1, 2, 3]),
    "string": (pa.string(), ["", "a", "e\u0301"]),
    "large string": (pa.large_string(), ["", "a" * 17, "a" * 16]),
    "binary": (pa.binary(), [b"", b"\0", b"\0\0"]),
    "large binary": (pa.large_binary(), [b"a" * 40, b"b" * 40, b""]),
    "fixed-size binary": (pa.binary(3), [b"abc", b"abd", b"\0\0\0"]),
    "struct": (STRUCT, [{"a": 1, "b": "x"}, {"a": None, "b": "x"}, {"a": 1, "b": None}]),
    "list": (pa.list_(pa.int32()), [[1, 2], [None], []]),
    "list of strings": (pa.list_(pa.string()), [["a", "bc"], ["ab", "c"], ["", "abc"]]),
    "large list of lists": (pa.large_list(pa.list_(pa.int8())), [[[1], [2]], [[1, 2], []], [None]]),
    "fixed-size list": (pa.list_(pa.float32(), 2), [[1.0, 2.0], [1.0, -0.0], [1.0, 0.0]]),
    "map": (pa.map_(pa.string(), pa.int32()), [[("a", 1), ("b", 2)], [("b", 2), ("a", 1)], []]),
}
#: Types that pylance cannot write, or cannot write in this way.
OURS_ONLY = {"large list of lists"}


def index(*columns: Any) -> KeyIndex:
    return KeyIndex(columns)


@pytest.mark.parametrize("name", TYPES)
def test_groups_of_every_type(name: str) -> None:
    kind, values = TYPES[name]
    keys = pa.array([values[0], None, values[1], values[0]], kind)
    found = index(keys)
    assert (found.num_rows, found.num_groups) == (4, 2)
    assert found.groups.tolist() == [0, -1, 1, 0]
    assert (found.group_sizes.tolist(), found.first_rows.tolist()) == ([2, 1], [0, 2])
    target = pa.array([values[2], values[1], None, values[0], None], kind)
    assert found.probe([target]).tolist() == [-1, 1, -1, 0, -1]
    assert found.probe([target.slice(1, 3)]).tolist() == [1, -1, 0]
    assert found.probe([target.slice(0, 0)]).tolist() == []


@pytest.mark.parametrize("name", sorted(TYPES.keys() - OURS_ONLY))
def test_the_reference_compares_alike(name: str, tmp_path: Path) -> None:
    kind, values = TYPES[name]
    target = pa.array([values[0], None, values[2], values[0]], kind)
    keys = pa.array([values[1], None, values[0]], kind)
    table = lance.write_dataset(pa.table({"k": target, "v": range(4)}), str(tmp_path), data_storage_version="2.2")
    merge = table.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    counts = merge.execute(pa.table({"k": keys, "v": [10, 11, 12]}))
    found = index(keys)
    hits = found.probe([target])
    assert counts["num_updated_rows"] == np.count_nonzero(hits >= 0)
    matched = np.isin(found.groups, hits[hits >= 0])
    assert counts["num_inserted_rows"] == np.count_nonzero(~matched)


def test_null_type() -> None:
    found = index(pa.nulls(3))
    assert (found.num_groups, found.groups.tolist(), found.probe([pa.nulls(2)]).tolist()) == (0, [-1] * 3, [-1, -1])


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_encodings_do_not_matter(kind: pa.DataType) -> None:
    is_text = pa.types.is_string(kind)
    plain = pa.array(["b", None, "", "a" * 20], kind)
    large, view = (pa.large_string(), pa.string_view()) if is_text else (pa.large_binary(), pa.binary_view())
    # the dictionary has a null, and one entry twice
    dictionary = pa.DictionaryArray.from_arrays(
        pa.array([4, 1, 2, 3], pa.int8()), pa.array(["b", None, "", "a" * 20, "b"], kind)
    )
    for keys in (plain, plain.cast(large), plain.cast(view), dictionary):
        for target in (plain, plain.cast(large), plain.cast(view), dictionary):
            assert index(keys).probe([target]).tolist() == [0, -1, 1, 2]


def test_extension_types() -> None:
    keys = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, None, b"b" * 16], pa.binary(16)))
    assert index(keys).probe([keys]).tolist() == [0, -1, 1]


def test_chunks_need_not_be_cut_alike() -> None:
    first = pa.chunked_array([pa.array([1, 2]), pa.array([], pa.int64()), pa.array([1, None, 1])])
    second = pa.chunked_array([pa.array(["a"]), pa.array(["a", "a", "b", "b"])])
    found = index(first, second)
    assert found.groups.tolist() == [0, 1, 0, -1, 2]
    assert found.probe([pa.array([1, 2, 1]), pa.array(["b", "b", "a"])]).tolist() == [2, -1, 0]


@pytest.mark.parametrize(
    "keys", [pa.chunked_array([], pa.int64()), pa.array([], pa.int64()), pa.array([None], pa.int64())]
)
def test_no_keys(keys: Any) -> None:
    found = index(keys)
    assert (found.num_groups, found.first_rows.tolist(), found.probe([pa.array([1, None])]).tolist()) == (
        0,
        [],
        [-1, -1],
    )


@given(st.lists(st.tuples(st.none() | st.integers(0, 3), st.none() | st.sampled_from("abc"))), st.data())
def test_two_keys(rows: list[tuple], data: st.DataObject) -> None:
    target = data.draw(st.lists(st.tuples(st.none() | st.integers(0, 3), st.none() | st.sampled_from("abcd"))))

    def columns(of: list[tuple]) -> list[pa.Array]:
        return [pa.array([row[0] for row in of], pa.int16()), pa.array([row[1] for row in of], pa.string())]

    found, numbers = KeyIndex(columns(rows)), dict[tuple, int]()
    wanted = [-1 if None in row else numbers.setdefault(row, len(numbers)) for row in rows]
    assert found.groups.tolist() == wanted
    assert found.first_rows.tolist() == [wanted.index(number) for number in range(len(numbers))]
    assert found.group_sizes.tolist() == [wanted.count(number) for number in range(len(numbers))]
    assert found.probe(columns(target)).tolist() == [numbers.get(row, -1) for row in target]


def test_threads_probe_at_once() -> None:
    keys = pa.array(np.random.default_rng(0).permutation(100_000))
    found, results = index(keys), list[Any]()
    threads = [threading.Thread(target=lambda: results.append(found.probe([keys]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all((result == found.groups).all() for result in results)


def test_other_types_are_refused() -> None:
    found = index(pa.array([1, 2]))
    for target in (
        pa.array([1], pa.int32()),
        pa.array([1.0]),
        pa.array([1], pa.timestamp("us")),
        pa.array([1], pa.uint64()),
    ):
        with pytest.raises(SchemaError, match="cast"):
            found.probe([target])
    with pytest.raises(UnsupportedError):
        key_columns([pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])])


@pytest.mark.parametrize("kind", [pa.list_view(pa.int32()), pa.large_list_view(pa.int32())], ids=str)
def test_list_views(kind: pa.DataType) -> None:
    keys = pa.array([[1, 2], None, [], [3]], kind)
    assert index(keys).probe([pa.array([[3], [1, 2], [1], None], pa.list_(pa.int32()))]).tolist() == [2, 0, -1, -1]


def test_the_size_of_an_index_is_known_before() -> None:
    assert index_size(10_000_000, 80_000_000) < 1 << 30


# -- keys of another type ----------------------------------------------------------------------------------------

CASTS = [
    (pa.array([1.0, 2.5, -0.0, float("nan"), 1e300]), pa.int64(), [1, None, None, None, None]),
    (pa.array([1, 2**60 + 1, None]), pa.float64(), [1.0, None, None]),
    (pa.array([1, 2**64 - 1], pa.uint64()), pa.int64(), [1, None]),
    (pa.array([1, -1], pa.int64()), pa.uint64(), [1, None]),
    (pa.array([1, 2**40, -1]), pa.int32(), [1, None, -1]),
    (pa.array([0.1, 1.0]), pa.float32(), [None, 1.0]),
    (pa.array([D("1.0000"), D("1.0001")]), pa.decimal128(10, 2), [D("1.00"), None]),
    (pa.array([1, 2]), pa.decimal128(10, 2), [D("1.00"), D("2.00")]),
    (pa.array([D("1.00"), D("1.50")]), pa.int64(), [1, None]),
    (pa.array([1000, 2001], pa.timestamp("us")), pa.timestamp("ms"), [dt.datetime(1970, 1, 1, 0, 0, 1), None]),
    (pa.array([2**60], pa.timestamp("s")), pa.timestamp("us"), [None]),
    (pa.array([86_400_000, 1], pa.date64()), pa.date32(), [dt.date(1970, 1, 2), None]),
    (pa.array([b"aa", b"b", None]), pa.binary(2), [b"aa", None, None]),
    (pa.array([7, None]).dictionary_encode(), pa.int32(), [7, None]),
    (pa.nulls(2), pa.int32(), [None, None]),
    (pa.array([[0.1], [1.0], None]), pa.large_list(pa.float32()), [None, [1.0], None]),
    (pa.array([{"a": 1}]), pa.struct([("a", pa.int8())]), [{"a": 1}]),
]


@pytest.mark.parametrize(("keys", "kind", "wanted"), CASTS, ids=lambda value: str(getattr(value, "type", value))[:40])
def test_keys_are_cast_exactly(keys: pa.Array, kind: pa.DataType, wanted: list[Any]) -> None:
    cast = cast_keys(pa.chunked_array([keys]), kind, "k")
    assert cast.type == kind
    if pa.types.is_timestamp(kind) and wanted[0] is not None:
        wanted = [wanted[0].replace(second=0, microsecond=1000), *wanted[1:]]
    assert cast.to_pylist() == wanted
    assert index(cast).probe([pa.array([], kind)]).tolist() == []


def test_keys_that_need_no_cast_stay_as_they_are() -> None:
    keys = pa.chunked_array([pa.array(["a", "b"]).dictionary_encode()])
    assert cast_keys(keys, pa.large_string(), "k") is keys


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        (pa.array([1]), pa.string()),
        (pa.array(["1"]), pa.int64()),
        (pa.array([True]), pa.int64()),
        (pa.array([1], pa.timestamp("us")), pa.timestamp("us", "UTC")),
        (pa.array([1], pa.date32()), pa.timestamp("us")),
        (pa.array([[1]]), pa.int64()),
        (pa.array([{"a": 1}]), pa.struct([("b", pa.int64())])),
        (pa.array([[2**40]]), pa.list_(pa.int32())),
    ],
    ids=str,
)
def test_keys_that_are_never_equal_are_refused(keys: pa.Array, kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="key column 'the_key'"):
        cast_keys(pa.chunked_array([keys]), kind, "the_key")
