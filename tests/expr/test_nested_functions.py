"""Tests that functions of lists, maps, structs, vectors and hashes have the reference's values and types."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import random
import uuid
from decimal import Decimal
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import FilterError, LanceError
from lance_dataset.expr.compiled import compile_expression, compile_filter

ROWS = 12
NAN, INF = float("nan"), float("inf")
VALUES = Path(__file__).with_name("nested_functions.txt")
ERRORS = Path(__file__).with_name("nested_function_errors.txt")
RECORD = pa.struct([("x", pa.int32()), ("s", pa.string())])


def _texts(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _cycle(values: list[object], arrow: pa.DataType) -> pa.Array:
    return pa.array([values[row % len(values)] for row in range(ROWS)], arrow)


def build_table() -> pa.Table:
    noon, day = dt.datetime(2024, 1, 1, 12), dt.date(2024, 1, 1)
    money = Decimal("1.50")
    one, other, empty = {"x": 1, "s": "a"}, {"x": 2, "s": "b"}, {"x": None, "s": None}
    integers = [[1, 2, 3], [], None, [4, None], [None], [5], [3, 1, 3, 2, None, 1]]
    floats = [[1.5, NAN, -0.0], [], None, [2.0, None], [0.0, NAN, NAN]]
    vectors = [[1.0, 2.0], [3.0, 4.0], None, [0.0, 0.0]]
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "i": _cycle([1, 2, None, -4, 5, 0, 3], pa.int32()),
            "n": _cycle([0, 1, 2, 3, -1, -2, None, 10, -10], pa.int64()),
            "f": _cycle([1.5, NAN, None, -0.0, 0.0, INF], pa.float64()),
            "s": _cycle(["a", "b", None, "", "c,d", "héé"], pa.string()),
            "ls": _cycle(["a", None, "b"], pa.large_string()),
            "b": _cycle([True, None, False], pa.bool_()),
            "bin": _cycle([b"a", None, b"\xff", b""], pa.binary()),
            "d": _cycle([day, None, dt.date(2024, 3, 1)], pa.date32()),
            "ts": _cycle([noon, None, dt.datetime(2024, 3, 1)], pa.timestamp("us")),
            "dec": _cycle([money, None, Decimal("-3.00")], pa.decimal128(15, 2)),
            "li": _cycle(list(integers), pa.list_(pa.int32())),
            "l2": _cycle([[1, 3], None, [2], [], [4, None, None], [5, 5], [3, 7], [None]], pa.list_(pa.int32())),
            "lw": _cycle(
                [["a", "b"], [], None, ["c", None], [None], ["a"], ["b", "a", "b"]],
                pa.list_(pa.string()),
            ),
            "lf": _cycle(list(floats), pa.list_(pa.float64())),
            "ll": _cycle(list(integers[:6]), pa.large_list(pa.int32())),
            "lb": _cycle([[True, False], [], None, [None, True]], pa.list_(pa.bool_())),
            "ld": _cycle([[day], [], None, [None, dt.date(2020, 1, 1)]], pa.list_(pa.date32())),
            "ldec": _cycle([[money, Decimal("2.00")], [], None, [None, money]], pa.list_(pa.decimal128(15, 2))),
            "nested": _cycle(
                [[[1, 2], [3]], [], None, [None, []], [[None], [4, 5]]],
                pa.list_(pa.list_(pa.int32())),
            ),
            "lst": _cycle([[one, empty], [], None, [None, other]], pa.list_(RECORD)),
            "v": _cycle(list(vectors), pa.list_(pa.float32(), 2)),
            "w": _cycle([[2.0, 1.0], None, [1.0, 1.0], [3.0, NAN], [1.0, 2.0]], pa.list_(pa.float32(), 2)),
            "v8": _cycle(list(vectors), pa.list_(pa.float64(), 2)),
            "v16": _cycle(list(vectors), pa.list_(pa.float16(), 2)),
            "vi": _cycle([[1, 2], [3, 4], None, [0, 0]], pa.list_(pa.int32(), 2)),
            "st": _cycle([one, None, {"x": None, "s": "b"}, {"x": 3, "s": None}], RECORD),
            "m": _cycle(
                [[("a", 1), ("b", None)], [], None, [("c", 3)], [("a", 7)]],
                pa.map_(pa.string(), pa.int32()),
            ),
            "mi": _cycle([[(1, "x"), (2, None)], [], None, [(3, "z")]], pa.map_(pa.int64(), pa.string())),
        }
    )


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return build_table()


@pytest.fixture(scope="module")
def batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]


@pytest.fixture(scope="module")
def path(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("nested") / "nested.lance")
    lance.write_dataset(table, uri, data_storage_version="2.2")
    return uri


@pytest.fixture(scope="module")
def reference(path: str) -> lance.LanceDataset:
    return lance.dataset(path)


def plain(value: object) -> object:
    """Return a value that compares equal if it is the same, NaN included."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.13g}")
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def compare(texts: list[str], batch: pa.RecordBatch, reference: lance.LanceDataset) -> list[object]:
    different: list[object] = []
    for text in texts:
        expected = reference.to_table(columns={"value": text})["value"].combine_chunks()
        compiled = compile_expression(text, batch.schema)
        found = compiled.evaluate(batch)
        found.validate(full=True)
        assert found.type == compiled.type, text
        if found.type != expected.type or plain(found.to_pylist()) != plain(expected.to_pylist()):
            different.append((text, expected.type, found.type, expected.to_pylist(), found.to_pylist()))
    return different


def test_values_and_types(batch, reference):
    assert compare(_texts(VALUES), batch, reference) == []


def test_slices(batch):
    for text in _texts(VALUES):
        compiled = compile_expression(text, batch.schema)
        whole = plain(compiled.evaluate(batch).to_pylist())
        for start, length in [(3, 5), (5, 0), (11, 1)]:
            part = compiled.evaluate(batch.slice(start, length))
            assert part.type == compiled.type, text
            assert plain(part.to_pylist()) == whole[start : start + length], text


@pytest.mark.parametrize("text", _texts(ERRORS))
def test_what_both_refuse(text, batch, reference):
    with pytest.raises((ValueError, OSError)):
        reference.to_table(columns={"value": text})
    with pytest.raises((LanceError, pa.ArrowInvalid)):
        compile_expression(text, batch.schema).evaluate(batch)


# The reference shows the items under a null fixed-size list, is wrong, or has no value at all.
OTHER_VALUES = {
    # Items under a null fixed-size list do not count.
    "array_append(v, 9)": [[1.0, 2.0, 9.0], [3.0, 4.0, 9.0], [9.0], [0.0, 0.0, 9.0]],
    "array_prepend(9, v)": [[9.0, 1.0, 2.0], [9.0, 3.0, 4.0], [9.0], [9.0, 0.0, 0.0]],
    "flatten(make_array(v, v))": [[1.0, 2.0, 1.0, 2.0], [3.0, 4.0, 3.0, 4.0], [], [0.0, 0.0, 0.0, 0.0]],
    # Numbers and decimals can be mixed; the reference refuses.
    "array_append(ldec, 1)": [[Decimal("1.50"), Decimal("2.00"), Decimal(1)], [Decimal(1)], [Decimal(1)],
                              [None, Decimal("1.50"), Decimal(1)]],
    # The reference panics or cannot plan constants.
    "array_length(nested, 2)": [2, 0, None, 0],
    "map('k', i)": [[("k", 1)], [("k", 2)], [("k", None)], [("k", -4)]],
    "generate_series(1, 3)": [[1, 2, 3]] * 4,
    "range(5, 0, -2)": [[5, 3, 1]] * 4,
    "array_repeat('a', 2)": [["a", "a"]] * 4,
    "string_to_array('a,b', ',')": [["a", "b"]] * 4,
    "array_dims([[1, 2], [3, 4]])": [[2, 2]] * 4,
    "array_dims(make_array(nested))": [[1, 2, 2], [1, 0, 0], [1, 0, 0], [1, 2, 0]],
    "flatten([[[1]], [[2]]])": [[[1], [2]]] * 4,
    "map(['a', 'b'], [1, 2])": [[("a", 1), ("b", 2)]] * 4,
    "row(1, 'a')": [{"c0": 1, "c1": "a"}] * 4,
    # Structs are compared as wholes, lists item by item with nulls least.
    "array_max(nested)": [[3], None, None, []],
    "array_min(make_array(li, [0]))": [[0], [], [0], [0]],
    "array_positions(lst, st)": [[1], [], None, []],
    "array_remove(lst, st)": [[{"x": None, "s": None}], None, None, [None, {"x": 2, "s": "b"}]],
}  # fmt: skip


@pytest.mark.parametrize("text", OTHER_VALUES)
def test_values_beyond_the_reference(text, batch):
    assert compile_expression(text, batch.schema).evaluate(batch).to_pylist()[:4] == OTHER_VALUES[text]


def test_text_digests_are_plain_strings(batch, reference):
    expected = reference.to_table(columns={"value": "md5(s)"})["value"].cast(pa.string()).to_pylist()
    assert compile_expression("md5(s)", batch.schema).evaluate(batch).to_pylist() == expected


def test_filters_keep_the_rows_of_the_reference(batch, reference):
    filters = [
        "array_append(li, 9) = [1, 2, 3, 9]",
        "array_slice(li, 1, 2) = [1, 2]",
        "range(1, 4) = [1, 2, 3] AND id = 1",
        "cardinality(map('a', 1, 'b', 2)) = 2",
        "map_keys(m) = ['a', 'b']",
        "array_length(array_intersect(li, l2)) > 0",
        "array_distance(v, [1.0, 2.0]) < 2.5",
        "cosine_distance(v, w) < 0.15",
        "array_to_string(li, ',') LIKE '%1%'",
        "digest(s, 'md5') = X'0cc175b9c0f1b6a831c399e269772661'",
        "array_has(map_values(m), 7)",
        "element_at(m, 'a') = [1]",
    ]
    for text in filters:
        expected = reference.to_table(columns=["id"], filter=text)["id"].to_pylist()
        mask = compile_filter(text, batch.schema).mask(batch)
        assert [row for row, keep in enumerate(mask.to_pylist()) if keep] == expected, text


# -- random lists ------------------------------------------------------------------------------------------------------

SEVERAL = [
    "array_concat(a, b)",
    "array_except(a, b)",
    "array_union(a, b)",
    "array_distinct(a)",
    "array_remove_n(a, x, y)",
    "array_replace_n(a, x, y, y)",
    "array_positions(a, x)",
    "array_slice(a, x, y)",
    "array_slice(a, x, y, nullif(x - y, 0))",
    "array_has(a, x)",
    "array_has_any(a, b)",
    "array_has_all(a, b)",
    "array_sort(a, 'DESC', 'NULLS LAST')",
    "array_max(a)",
    "array_reverse(a)",
    "array_resize(a, abs(y), x)",
    "arrays_zip(a, b)",
    "flatten(make_array(a, b))",
    "array_to_string(a, ',', 'N')",
    "array_element(a, x)",
    "range(x, y, nullif(x, 0))",
    "generate_series(y, x, nullif(y, 0))",
]


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.large_list(pa.int64())])
def test_random_lists(kind, tmp_path):
    chance = random.Random(7)

    def numbers() -> list[int | None]:
        return [chance.choice([None, -3, -2, -1, 0, 1, 2, 3, 4]) for _ in range(chance.choice([0, 0, 1, 2, 5, 9]))]

    lists = [[None if chance.random() < 0.15 else numbers() for _ in range(300)] for _ in "ab"]
    values = [[chance.choice([None, -4, -3, -2, -1, 0, 1, 2, 3, 5]) for _ in range(300)] for _ in "xy"]
    table = pa.table(
        [pa.array(lists[0], kind), pa.array(lists[1], kind), *(pa.array(row, pa.int64()) for row in values)],
        ["a", "b", "x", "y"],
    )
    reference = lance.write_dataset(table, str(tmp_path / "random.lance"))
    assert compare(SEVERAL, table.combine_chunks().to_batches()[0], reference) == []


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_digests(batch):
    long = compile_expression("digest(array_to_string(array_repeat('ab', 9000), ''), 'sha512')", batch.schema)
    assert long.evaluate(batch)[0].as_py() == hashlib.sha512(b"ab" * 9000).digest()
    with pytest.raises((FilterError, pa.ArrowInvalid), match="blake3"):
        compile_expression("digest(s, 'crc32')", batch.schema)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("array_append(i, 1)", "array_append needs a list, not int32"),
        ("array_append(li, 'x')", "not int32 and string"),
        ("array_slice(li, 1, 5, 0)", "stride other than 0"),
        ("array_resize(li, -1)", "size of 0 or more"),
        ("range(1, 5, 0)", "step other than 0"),
        ("range(-9223372036854775807, 9223372036854775807)", "more than 2147483647"),
        ("array_repeat(i, 999999999999)", "more than 2147483647"),
        ("generate_series(d, d, INTERVAL '1 hour')", "at least a day"),
        ("map(s, i)", "key of a map is null"),
        ("map(id, i, id, i)", "has the key 0 twice"),
        ("map(li, l2)", "3 keys and 2 values"),
        ("map_keys(st)", "map_keys needs a map"),
        ("union_tag(i)", "union_tag needs a union"),
        ("cosine_distance(li, l2)", "of one length, not of 3 and 2"),
        ("array_distance(lw, lw)", "lists of numbers"),
        ("named_struct(s, i)", "constant strings"),
        ("array_position(li, 3, 7)", "outside the list"),
        ("array_sort(li, 'UP')", "ASC and DESC"),
        ("array_to_string(lst, ',')", "does not print"),
        ("string_to_array(i, ',')", "needs strings"),
        ("arrow_metadata(i, s)", "constants"),
    ],
)
def test_messages(text, words, batch):
    with pytest.raises((FilterError, pa.ArrowInvalid), match=words):
        compile_expression(text, batch.schema).evaluate(batch)


def test_metadata_of_fields():
    schema = pa.schema(
        [
            pa.field("a", pa.int32(), metadata={"unit": "mm", "b": "é"}),
            pa.field("st", pa.struct([pa.field("x", pa.int8(), nullable=False, metadata={"k": "v"})])),
        ]
    )
    batch = pa.record_batch([pa.array([1, 2], pa.int32()), pa.array([{"x": 1}, {"x": 2}], schema[1].type)], schema)
    value = lambda text: compile_expression(text, schema).evaluate(batch).to_pylist()  # noqa: E731
    assert value("arrow_metadata(a)") == [[("b", "é"), ("unit", "mm")]] * 2
    assert value("arrow_metadata(a, 'unit')") == ["mm", "mm"]
    assert value("arrow_metadata(a, 'nope')") == [None, None]
    assert value("arrow_metadata(st.x, 'k')") == ["v", "v"]
    assert value("arrow_field(st.x)")[0] == {
        "name": "x", "data_type": "Int8", "nullable": False, "metadata": [("k", "v")]
    }  # fmt: skip


def test_random_values_differ_from_row_to_row(path):
    ours = lance_dataset.dataset(path)
    found = ours.to_table(columns={"r": "random()", "u": "uuid()", "two": "random() - random()"})
    assert len(set(found["r"].to_pylist())) == len(set(found["u"].to_pylist())) == ROWS
    assert all(0 <= value < 1 for value in found["r"].to_pylist())
    assert all(uuid.UUID(text).version == 4 for text in found["u"].to_pylist())
    assert 0.0 not in found["two"].to_pylist()
    assert ours.to_table(columns=["id"], filter="random() < 2")["id"].to_pylist() == list(range(ROWS))
    assert ours.count_rows("uuid() = uuid()") == 0
    kept = {tuple(ours.to_table(columns=["id"], filter="random() < 0.5")["id"].to_pylist()) for _ in range(20)}
    assert len(kept) > 1
    assert ours.to_table(columns={"v": "version()"})["v"][0].as_py().startswith("lance-dataset ")


def test_computed_columns_of_a_filtered_scan(path, reference):
    options = {"columns": {"joined": "array_concat(li, l2)", "keys": "map_keys(m)"}, "filter": "array_length(li) > 1"}
    assert lance_dataset.dataset(path).to_table(**options).to_pylist() == reference.to_table(**options).to_pylist()
