"""Tests of properties of a compiled filter: columns, paths, tree."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_dataset.errors import FieldNotFoundError, FilterError
from lance_dataset.expr.compiled import compile_filter
from lance_dataset.expr.tree import And, Call, Column, Comparison, Constant, OneOf, walk


@pytest.mark.parametrize(
    ("text", "columns", "paths"),
    [
        ("i = 1", ("i",), (("i",),)),
        ("s = 'a' AND i = 1 AND i < 9", ("i", "s"), (("i",), ("s",))),
        ("st.x = 1 OR st.`in`.w > 2", ("st",), (("st", "in", "w"), ("st", "x"))),
        ("st IS NULL", ("st",), (("st",),)),
        ("true", (), ()),
        ("CAMELCASE = 1", ("CamelCase",), (("CamelCase",),)),
        ("array_has(words, s)", ("s", "words"), (("s",), ("words",))),
        ("get_field(st, 'x') = li[i]", ("i", "st", "li"), (("i",), ("st", "x"), ("li",))),
    ],
)
def test_columns(text, columns, paths, table):
    compiled = compile_filter(text, table.schema)
    assert compiled.columns == columns
    assert compiled.field_paths == paths
    assert str(compiled) == text


def test_special_columns_are_part_of_the_schema(batch):
    extended = pa.RecordBatch.from_arrays(
        [*batch.columns, pa.array(range(batch.num_rows), pa.uint64())], names=[*batch.schema.names, "_rowid"]
    )
    compiled = compile_filter("_rowid IN (3, 5) AND id >= 0", extended.schema)
    assert compiled.columns == ("id", "_rowid")
    assert compiled.mask(extended).to_pylist().index(True) == 3


def test_tree_has_typed_literals_and_the_column_first(table):
    tree = compile_filter("300 > i AND dec BETWEEN 0.05 AND 0.07", table.schema).tree
    assert isinstance(tree, And)
    first, between = tree.operands
    assert first == Comparison("<", Column(("i",)), Constant(pa.scalar(300, pa.int32())))
    assert isinstance(between, And)
    bounds = [node.value for node in walk(between) if isinstance(node, Constant)]
    assert [bound.type for bound in bounds] == [pa.decimal128(15, 2)] * 2
    assert [node.type for node in walk(tree) if isinstance(node, Column)] == [pa.int32()] + [pa.decimal128(15, 2)] * 2


def test_constants_are_folded(table):
    tree = compile_filter("i = 2 + 3 * 4", table.schema).tree
    assert isinstance(tree, Comparison)
    assert tree.right == Constant(pa.scalar(14, pa.int32())) or tree.right.value.as_py() == 14
    moment = compile_filter("tns > CAST('2020-01-01' AS TIMESTAMP)", table.schema).tree
    assert isinstance(moment, Comparison)
    assert isinstance(moment.left, Column)
    assert moment.right.type == pa.timestamp("ns")


def test_in_list_and_calls_show_their_operands(table):
    tree = compile_filter("i IN (1, 2) AND starts_with(s, 'a')", table.schema).tree
    in_list, call = tree.operands
    assert isinstance(in_list, OneOf)
    assert in_list.values.equals(pa.array([1, 2], table.schema.field("i").type))
    assert isinstance(call, Call)
    assert call.name == "starts_with"
    assert [type(argument) for argument in call.arguments] == [Column, Constant]


def test_wrapped_columns_compare_by_value():
    values = ["a", "b", None, "a"]
    columns = {
        "dictionary": pa.array(values).dictionary_encode(),
        "half": pa.array([1.5, 2.5, None, float("nan")], pa.float16()),
        "encoded": pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array(["a", "b"])),
    }
    if hasattr(pa, "string_view"):
        columns["view"] = pa.array(values, pa.string_view())
    batch = pa.RecordBatch.from_pydict(columns)
    assert compile_filter("dictionary = 'a'", batch.schema).mask(batch).to_pylist() == [True, False, False, True]
    assert compile_filter("dictionary IN ('b')", batch.schema).mask(batch).to_pylist() == [False, True, False, False]
    assert compile_filter("half > 2", batch.schema).mask(batch).to_pylist() == [False, True, False, True]
    assert compile_filter("encoded = 'b'", batch.schema).mask(batch).to_pylist() == [False, False, True, True]
    if "view" in columns:
        assert compile_filter("view LIKE 'a%'", batch.schema).mask(batch).to_pylist() == [True, False, False, True]


#: Expressions with the columns they read, and True if they become a tree, as text does.
ARROW_EXPRESSIONS = [
    (pc.field("i") > 1, ("i",), True),
    ((pc.field("i") > 1) & (pc.field("s") == "a"), ("i", "s"), True),
    (pc.field("st", "x") == 1, ("st",), True),
    (pc.field("st", "in", "w") < 2, ("st",), True),
    (pc.field("s").is_null() | ~pc.field("b"), ("b", "s"), True),
    (pc.field("i").isin([1, 2]), ("i",), True),
    (pc.field("u8").cast(pa.int32()) > 3, ("u8",), True),
    (pc.field("u8").cast(pa.int32()) + pc.field("i8") > 3, ("i8", "u8"), False),
    (pc.starts_with(pc.field("s"), "a"), ("s",), True),
    (pc.field("with space") == 2, ("with space",), True),
    (pc.scalar(True), (), True),
]


@pytest.mark.parametrize(
    ("expression", "columns", "has_tree"), ARROW_EXPRESSIONS, ids=[str(case[0]) for case in ARROW_EXPRESSIONS]
)
def test_arrow_expressions(expression, columns, has_tree, table, batch):
    compiled = compile_filter(expression, table.schema)
    assert compiled.columns == columns
    assert (compiled.tree is not None) == has_tree
    expected = table.filter(expression)["id"].to_pylist() if columns else list(range(table.num_rows))
    mask = compiled.mask(batch)
    assert mask.null_count == 0
    assert [row for row, keep in enumerate(mask.to_pylist()) if keep] == expected
    narrow = batch.select(list(columns)) if columns else batch
    assert compiled.mask(narrow).to_pylist() == mask.to_pylist()
    assert compiled.mask(table).to_pylist() == mask.to_pylist()


def test_arrow_expressions_by_position_read_everything():
    batch = pa.RecordBatch.from_pydict({"a": [1, 2], "b": [3, 4]})
    compiled = compile_filter(pc.field(1) > 3, batch.schema)
    assert compiled.columns == ("a", "b")
    assert compiled.mask(batch).to_pylist() == [False, True]


def test_arrow_expression_errors(table):
    with pytest.raises(FieldNotFoundError, match="did you mean 'words'"):
        compile_filter(pc.field("wrods") == 1, table.schema)
    with pytest.raises(FieldNotFoundError, match=r"'st\.inn' in filter .*; did you mean 'in'"):
        compile_filter(pc.field("st", "inn") == 1, table.schema)
    with pytest.raises(FilterError, match="does not return a boolean"):
        compile_filter(pc.field("i") + 1, table.schema)
    with pytest.raises(FilterError, match="does not fit the schema"):
        compile_filter(pc.field("s") + 1 > 2, table.schema)


def test_findings_are_made_once_for_each_filter(table):
    asked = []

    def count(compiled):
        asked.append(str(compiled))
        return len(asked)

    first, second = compile_filter("i = 1", table.schema), compile_filter("i = 2", table.schema)
    assert [each.finding(count) for each in (first, second, first, second)] == [1, 2, 1, 2]
    assert asked == ["i = 1", "i = 2"]
    assert first.finding(lambda compiled: None) is None
    assert first.finding(count) == 1
