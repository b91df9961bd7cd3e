"""Tests that the JSON functions have the values that the reference computes over JSON columns."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_dataset
from lance_dataset.errors import CorruptFileError, FilterError, LanceError
from lance_dataset.expr.compiled import compile_expression
from lance_dataset.expr.functions.json import FUNCTIONS
from lance_dataset.file.jsonb import encode_document

VALUES = Path(__file__).with_name("json_functions.txt")
ERRORS = Path(__file__).with_name("json_function_errors.txt")
DOCUMENTS = [
    '{"a":1,"b":"x","c":[1,2,3],"d":{"e":1.5,"f":null},"t":true,"s5":"5","n":null,"fl":2.5,"neg":-3,'
    '"big":18446744073709551615,"ts":"true","arr":["t","u",1,true,null,{"k":1}]}',
    None,
    '[1,"a",null,[2,3],{"a":7}]',
    '"str"',
    "12",
    "null",
    "true",
    "{}",
    "[]",
    '{"a":"5.7","b":[],"c":{"0":9},"d":"no","t":"yes","fl":1e300, "a b":3, "é":"ü\\n\\"q"}',
    "1.5",
    '[{"a":1,"b":2},{"a":5,"b":"z"},{"c":1}]',
]
CONVERSIONS = [
    "2.5", "3.5", "-2.5", "2.0", "1e18", "1e19", "9223372036854775807", "9223372036854775808", "true", "false",
    '"5"', '"5.7"', '"-6.5"', '" 5"', '"+5"', '"5e2"', '"abc"', '""', '"true"', '"TRUE"', '"t"', '"yes"', '"no"',
    '"1"', "1", "0", "2", "null", "[]", "{}", '"nan"', '"inf"', "0.1", "-1", '"1_0"', '"9223372036854775808"',
]  # fmt: skip
_EMPTY = bytes.fromhex("2000000000000000")


def _texts(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _table(documents: list[str | None]) -> pa.Table:
    count = len(documents)
    keys = ["a", "b", "c", "0", None, "a", "b", "c", "0", None, "t", "e"]
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "j": pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(documents)),
            "k": pa.array([keys[row % len(keys)] for row in range(count)]),
            "lb": pa.array([_EMPTY] * count, pa.large_binary()),
        }
    )


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[lance.LanceDataset, lance_dataset.LanceDataset]:
    path = str(tmp_path_factory.mktemp("json") / "json.lance")
    return lance.write_dataset(_table(DOCUMENTS), path, data_storage_version="2.2"), lance_dataset.dataset(path)


def test_values_and_types(pair):
    reference, ours = pair
    different = []
    for text in _texts(VALUES):
        expected = reference.to_table(columns={"value": text})["value"]
        found = ours.to_table(columns={"value": text})["value"]
        if expected.type != found.type or expected.to_pylist() != found.to_pylist():
            different.append((text, expected.type, found.type, expected.to_pylist(), found.to_pylist()))
    assert different == []


@pytest.mark.parametrize("text", _texts(ERRORS))
def test_what_both_refuse(text, pair):
    reference, ours = pair
    with pytest.raises((ValueError, OSError)):
        reference.to_table(columns={"value": text})
    with pytest.raises((FilterError, pa.ArrowInvalid)):
        ours.to_table(columns={"value": text})


@pytest.mark.parametrize("function", ["json_get_string", "json_get_int", "json_get_float", "json_get_bool"])
def test_conversions(function, tmp_path):
    """Conversions match the reference value by value, because one that does not convert fails the query."""
    documents = [f'{{"a":{value}}}' for value in CONVERSIONS]
    reference = lance.write_dataset(_table(documents), str(tmp_path / "conversions.lance"), data_storage_version="2.2")
    ours = lance_dataset.dataset(reference.uri)

    def outcome(dataset, row):
        options = {"columns": {"value": f"{function}(j, 'a')"}, "filter": f"id = {row}"}
        try:
            return repr(dataset.to_table(**options)["value"].to_pylist())
        except pa.ArrowInvalid:
            return "refused"

    different = [
        (value, outcome(reference, row), outcome(ours, row))
        for row, value in enumerate(CONVERSIONS)
        if outcome(reference, row) != outcome(ours, row)
    ]
    assert different == []


def test_filters(pair):
    reference, ours = pair
    for text in [
        "json_get_string(json_get(j, 'd'), 'e') = '1.5' AND id < 2",
        "json_exists(j, '$.c[*] ? (@ > 2)')",
        "json_array_contains(j, '$.arr', 't') OR json_array_length(j, '$') = 3",
        "json_extract(j, '$.a') IS NOT NULL",
        "j IS NULL",
    ]:
        expected = reference.to_table(columns=["id"], filter=text)["id"].to_pylist()
        assert ours.to_table(columns=["id"], filter=text)["id"].to_pylist() == expected, text


def test_paths_beyond_the_reference(pair):
    """Numbers with decimal places can be compared in JSON paths, unlike in the reference."""
    value = pair[1].to_table(columns={"value": "json_extract(j, '$ ? (@.d.e == 1.5).a')"})["value"]
    assert value[0].as_py() == "1"


def test_documents_as_text():
    table = pa.table({"text": [' {"a": [1, {"b": "x"}]}', "[5]", None, "7"], "wrong": ["{", "", "1", "2"]})
    batch = table.to_batches()[0]
    value = lambda text: compile_expression(text, table.schema).evaluate(batch).to_pylist()  # noqa: E731
    assert value("json_extract(text, '$.a[1].b')") == ['"x"', None, None, None]
    assert value("json_get_int(text, '0')") == [None, 5, None, None]
    assert value("json_array_length(text, '$')") == [0, 1, None, 0]
    with pytest.raises(pa.ArrowInvalid, match="not a JSON document"):
        value("json_get(wrong, 'a')")


def test_messages(pair):
    ours = pair[1]
    for text, words in [
        ("json_get_int(j, 'd')", "under 'd' is not a valid integer"),
        ("json_extract(j, '$..a')", r"invalid JSONPath '\$\.\.a'.*character 3"),
        ("json_get(id, 'a')", "json_get needs a JSON column, not int64"),
    ]:
        with pytest.raises((FilterError, pa.ArrowInvalid), match=words):
            ours.to_table(columns={"value": text})


@pytest.mark.parametrize(
    "damaged", [b"\x80\x00\x00\x05", b"\x40\x00\x00\x01\x10\x00\x00\x09\x20\x00\x00\x01a", b"\x80"]
)
@pytest.mark.parametrize("text", ["json_extract(b, '$[*].*')", "json_get(b, 'a')"])
def test_damaged_documents_are_refused(damaged, text):
    batch = pa.record_batch([pa.array([damaged], pa.large_binary())], ["b"])
    with pytest.raises((CorruptFileError, pa.ArrowInvalid)):
        compile_expression(text, batch.schema).evaluate(batch)


def test_numbers_that_json_text_does_not_have(tmp_path: Path) -> None:
    documents = ['{"x":NaN}', '{"x":Infinity}', '{"x":-Infinity}', '{"x":1e400}', '{"x":-0.0}', '{"x":1.5}']
    path = str(tmp_path / "t")
    table = pa.table({"j": pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(documents))})
    theirs = lance.write_dataset(table, path)
    for name in ("float", "string"):
        columns = {"v": f"json_get_{name}(j, 'x')"}
        found = lance_dataset.dataset(path).to_table(columns=columns)["v"].combine_chunks()
        expected = theirs.to_table(columns=columns)["v"].combine_chunks()
        assert found.to_pylist()[1:] == expected.to_pylist()[1:]
        assert str(found[0]) == str(expected[0])


@pytest.mark.parametrize("name", ["int", "float", "bool", "string"])
def test_values_that_need_no_conversion_are_those_of_the_reference(tmp_path: Path, name: str) -> None:
    """Compiled code finds them in columns, also in slices with nulls and under keys that are places, too."""
    documents = [each for each in DOCUMENTS if each is None or each[0] in "[{"] * 40
    path = str(tmp_path / "t")
    theirs = lance.write_dataset(_table(documents), path, max_rows_per_file=90)
    ours = lance_dataset.dataset(path)
    keys = {
        "int": ["a", "0", "neg", "fl"],
        "float": ["fl", "big", "neg"],
        "bool": ["t"],
        "string": ["a", "0", "é", "b"],
    }
    for key in keys[name]:
        columns = {"v": f"json_get_{name}(j, '{key}')"}
        try:
            expected = theirs.to_table(columns=columns, offset=7)["v"].to_pylist()
        except (ValueError, OSError):
            with pytest.raises(pa.ArrowInvalid, match="is not a valid"):
                ours.to_table(columns=columns, offset=7)
        else:
            assert ours.to_table(columns=columns, offset=7)["v"].to_pylist() == expected, key


def _one_by_one(texts: list[str], document: bytes) -> list[object]:
    """Compute functions on a single document, which is read in Python."""
    found: list[object] = []
    for text in texts:
        name, _, rest = text.partition("(b, ")
        function = next(each for each in FUNCTIONS if each.name == name)
        given = [pa.scalar(part.strip("' ")) for part in rest.rstrip(")").split(", '")]
        try:
            found.append(function.kernel(pa.scalar(document, pa.large_binary()), *given).as_py())
        except (pa.ArrowInvalid, LanceError):
            found.append("refused")
    return found


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**65)
    | st.floats()
    | st.sampled_from(["", "x", "7", "2.5e3", "yes"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "0", "é"]), inner, max_size=4)
    ),
    max_leaves=8,
)
CALLS = [
    *(f"json_get{kind}(b, '{key}')" for kind in ("", "_string", "_int", "_float", "_bool") for key in ("a", "0", "é")),
    *(f"json_extract(b, '{path}')" for path in ("$", "$.a", "$.a[0]", "$[*]", "$.*", "$[*].a[*]", "$.a.*.b", "$[1].*")),
    *(f"json_exists(b, '{path}')" for path in ("$", "$.a", "$[*].a", "$.*.*")),
    *(f"json_array_length(b, '{path}')" for path in ("$", "$.a", "$[*]", "$.*")),
    *(
        f"json_array_contains(b, '{path}', '{text}')"
        for path in ("$", "$.a", "$[*]")
        for text in ("x", "7", "null", "[]")
    ),
]


@settings(max_examples=60, deadline=None)
@given(st.lists(json_values, min_size=1, max_size=5), st.data())
def test_columns_have_the_values_of_single_documents(values, data):
    """Compiled code finds in columns, also in damaged documents and in slices, what Python finds one by one."""
    documents = [bytearray(encode_document(json.dumps(value))) for value in values]
    for document in documents:
        if data.draw(st.integers(0, 3)) == 0:
            document[data.draw(st.integers(0, len(document) - 1))] = data.draw(st.sampled_from([0, 1, 0x10, 0x50, 255]))
    texts = data.draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=6, unique=True))
    column = pa.array([b"\x80\0\0\0", *map(bytes, documents), None], pa.large_binary()).slice(1)
    batch = pa.record_batch([column], ["b"])
    expected = [_one_by_one(texts, bytes(document)) for document in documents]
    for number, text in enumerate(texts):
        wanted = [values[number] for values in expected]
        try:
            found = compile_expression(text, batch.schema).evaluate(batch)
        except (pa.ArrowInvalid, LanceError):
            assert "refused" in wanted, text
        else:
            assert repr(found.to_pylist()) == repr([*wanted, None]), text
