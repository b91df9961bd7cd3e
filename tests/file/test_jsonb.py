"""Tests of JSON columns: text to binary form and back, with the reference as the other writer and reader."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import lance
import lance.file
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lance_dataset
from lance_dataset import file
from lance_dataset.errors import CorruptFileError, FilterError, SchemaError, UnsupportedError
from lance_dataset.file.json_columns import decode_array, encode_array
from lance_dataset.file.jsonb import decode_document, encode_document

VERSIONS = ["2.0", "2.1", "2.2"]
JSON = pa.field("j", pa.json_())
BINARY = pa.field(
    "j", pa.large_binary(), metadata={"ARROW:extension:name": "lance.json", "ARROW:extension:metadata": ""}
)

#: From the format chapter: text, binary form, and the text that comes back if it differs.
GOLDEN = [
    ("null", "2000000000000000", None),
    ("true", "2000000040000000", None),
    ("false", "2000000030000000", None),
    ("0", "200000002000000100", None),
    ("1", "20000000200000025001", None),
    ("-1", "200000002000000240ff", None),
    ("128", "20000000200000025080", None),
    ("256", "2000000020000003500100", None),
    ("-129", "200000002000000340ff7f", None),
    ("1.5", "2000000020000009603ff8000000000000", None),
    ("-0.0", "2000000020000009608000000000000000", None),
    ("1e3", "200000002000000960408f400000000000", "1000.0"),
    ("18446744073709551616", "20000000200000096043f0000000000000", "1.8446744073709552e+19"),
    ('"é"', "2000000010000002c3a9", None),
    ('""', "2000000010000000", None),
    ("[]", "80000000", None),
    ("{}", "40000000", None),
    ("[[]]", "800000015000000480000000", None),
    ('{"b":1,"a":2}', "4000000210000001100000012000000220000002616250025001", '{"a":2,"b":1}'),
]

ZOO = [
    *(text for text, _, _ in GOLDEN),
    *("-0", "127", "-128", "255", "65535", "65536", "4294967295", "4294967296", "-2147483648", "-2147483649"),
    *("18446744073709551615", "-9223372036854775808", "-9223372036854775809", "123456789012345678901234567890"),
    *("1" * 400, "0." + "1" * 400, "1E3", "1e-7", "1e15", "1e16", "1e17", "1e21", "1e22", "1e23", "0.1", "1e308"),
    *("1e400", "-1e400", "5e-324", "1e-400", "1.0", "100.0", "1e5", "0.001", "0.0001", "0.00001", "0.000001"),
    *("-0.00001", "1.25e-5", "-1.25e-5", "-1.25e-10", "1.7976931348623157e308", "2.2250738585072011e-308"),
    *("9007199254740993", "9007199254740993.0", "12345678901234567890.5", "4.35", "123456789.123456789", "-0e0"),
    *("NaN", "Infinity", "-Infinity", "[NaN]", '{"a":Infinity}', "", "  ", "\n"),
    *(r'"\u00e9"', r'"\n\t\"\\\/\b\f\r"', r'"\u0000"', r'"\u0001\u001f\u007f"', r'"\ud83d\ude00"', '"😀é\u2028"'),
    *(r'"\ud83d"', r'"\uD83D"', r'"\ud83d\u0041"', r'"\udc00"', r'"a\ud83dx"', r'"\\ud83d"', r'"\\\ud83d"'),
    *('"\t"', '"\n"', '"\x7f"', '"\u0080"', '"{}[]:,"'),
    *('[1,"a",null,true,false,[2,[3]],{"x":1}]', '{"b":{"z":1,"y":[1,2]},"a":null}', ' { "a" : [ 1 , 2 ] } '),
    *(
        '{"é":1,"z":2,"":3,"B":4,"aa":5,"a":6,"b":7}',
        r'{"\ud83d\ude00":1,"\uffee":2}',
        "[1.0,2.50]",
        "[" * 90 + "]" * 90,
    ),
]


def texts(documents: list[str | None], kind: pa.DataType | None = None) -> pa.Array:
    kind = kind or pa.string()
    return pa.ExtensionArray.from_storage(pa.json_(kind), pa.array(documents, kind))


# -- documents ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "stored", "shown"), GOLDEN)
def test_golden(text: str, stored: str, shown: str | None) -> None:
    assert encode_document(text).hex() == stored
    assert decode_document(bytes.fromhex(stored)) == (shown or text)


def test_bytes_and_text_of_the_reference(tmp_path: Path) -> None:
    path = str(tmp_path / "a.lance")
    with lance.file.LanceFileWriter(path, pa.schema([JSON]), version="2.1") as writer:
        writer.write_batch(pa.table([texts(ZOO)], schema=pa.schema([JSON])))
    stored = lance.file.LanceFileReader(path).read_all().to_table()["j"].to_pylist()
    shown = lance.write_dataset(pa.table([texts(ZOO)], schema=pa.schema([JSON])), tmp_path / "ds").to_table()["j"]
    for text, binary, back in zip(ZOO, stored, shown.to_pylist(), strict=True):
        assert encode_document(text).hex() == binary.hex(), text
        assert decode_document(binary) == back, text


def values() -> st.SearchStrategy[Any]:
    numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    names = st.text(st.characters(exclude_categories=["Cs"]))
    leaves = st.none() | st.booleans() | numbers | names
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner) | st.dictionaries(names, inner),
    )


def as_stored(value: Any) -> Any:
    """Return a document after a round trip: large integers become floating-point numbers."""
    if isinstance(value, dict):
        return {name: as_stored(item) for name, item in value.items()}
    if isinstance(value, list):
        return [as_stored(item) for item in value]
    outside = type(value) is int and not -(2**63) <= value < 2**64
    return float(value) if outside else value


@given(values())
def test_round_trip(value: Any) -> None:
    binary = encode_document(json.dumps(value))
    found = json.loads(decode_document(binary))
    assert found == as_stored(value)
    assert encode_document(decode_document(binary)) == binary
    assert encode_document(json.dumps(value, ensure_ascii=False, indent=2)) == binary


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(values(), min_size=1, max_size=20))
def test_random_documents_of_the_reference(tmp_path: Path, documents: list[Any]) -> None:
    given_texts = [json.dumps(value) for value in documents]
    path = str(tmp_path / "a.lance")
    with lance.file.LanceFileWriter(path, pa.schema([JSON]), version="2.1") as writer:
        writer.write_batch(pa.table([texts(given_texts)], schema=pa.schema([JSON])))
    stored = lance.file.LanceFileReader(path).read_all().to_table()["j"].to_pylist()
    assert [encode_document(text) for text in given_texts] == stored


@given(st.floats())
def test_numbers(number: float) -> None:
    text = decode_document(struct.pack(">IIBd", 0x20000000, 0x20000009, 0x60, number))
    if math.isfinite(number):
        assert json.loads(text) == number
    else:
        assert text == "null"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a":1,"a":2}', "key 'a' twice"),
        ('[{"é":{"b":1,"c":2,"b":3}}]', "key 'b' twice"),
        ("[1", "not valid JSON"),
        ("1 2", "not valid JSON.*'1 2'"),
        ("nul", "not valid JSON"),
        ('"\\x"', "not valid JSON"),
        ("{}{}", "not valid JSON"),
        ("\ufeff1", "not valid JSON"),
    ],
)
def test_texts_that_are_no_json(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        encode_document(text)
    with pytest.raises(SchemaError, match=f"column 'j', value 2 of a batch: .*{message}"):
        encode_array(pa.array(["1", None, text]), "column 'j'")
    with pytest.raises(OSError):
        lance.write_dataset(pa.table([texts([text])], schema=pa.schema([JSON])), "memory://refused")


def test_depth() -> None:
    assert decode_document(encode_document("[" * 390 + "]" * 390)) == "[" * 390 + "]" * 390
    for depth in (402, 100_000):
        with pytest.raises(UnsupportedError, match="nested more than"):
            encode_document("[" * depth + "]" * depth)
    nested = struct.pack(">I", 0x80000000)
    for _ in range(2000):
        nested = struct.pack(">II", 0x80000001, 0x50000000 | len(nested)) + nested
    with pytest.raises(UnsupportedError, match="nested more than"):
        decode_document(nested)


@pytest.mark.parametrize(
    "binary",
    [
        "20",
        "20000000",
        "2000000020000000",
        "20000000200000025001ff",
        "2000000020000005ff",
        "0000000000000000",
        "a000000000000000",
        "2000000100000000",
        "80000002",
        "9fffffff",
        "5fffffff",
        "40000001200000015000000180000000",
        "2000000070000000",
        "2000000090000000",
        "2000000010000001ff",
        "200000000000000161",
        "2000000040000001ff",
        "2000000020000003500102ff",
        "2000000020000004500102ff",
        "200000002000000150",
        "2000000020000005600000000000",
        "2000000020000002ff01",
        "80000001500000080000000000000000",
        "8000000150000008800000000000000000",
        "7878",
    ],
)
def test_malformed_documents(binary: str) -> None:
    with pytest.raises(CorruptFileError):
        decode_document(bytes.fromhex(binary))


@given(st.binary(max_size=80) | st.binary(max_size=40).map(lambda data: b"\x20\0\0\0" + data))
def test_any_bytes(binary: bytes) -> None:
    try:
        text = decode_document(binary)
    except (CorruptFileError, UnsupportedError):
        return
    json.loads(text)


@given(values(), st.data())
def test_damaged_documents(value: Any, data: st.DataObject) -> None:
    binary = bytearray(encode_document(json.dumps(value)))
    binary[data.draw(st.integers(0, len(binary) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    test_any_bytes.hypothesis.inner_test(bytes(binary))


@pytest.mark.parametrize("binary", ["20000000600000051000000001", "200000002000000a7000000000000000fb02"])
def test_values_that_json_does_not_have(binary: str) -> None:
    with pytest.raises(UnsupportedError):
        decode_document(bytes.fromhex(binary))


def test_nulls() -> None:
    given_texts = pa.array(["1", None, "null", ""], pa.large_string())
    stored = encode_array(given_texts, "x")
    assert stored.type == pa.large_binary()
    assert stored.is_null().to_pylist() == [False, True, False, False]
    assert decode_array(stored, "x").to_pylist() == ["1", None, "null", "null"]
    assert decode_document(b"") == "null"


# -- columns -----------------------------------------------------------------------------------------------------

DOCUMENTS = ['{"b": 1}', None, "3", "null", "[1, 2]", '"text"']


def build_table(version: str) -> pa.Table:
    column = texts(DOCUMENTS)
    count = len(DOCUMENTS)
    offsets = pa.array([0, 2, 2, *range(3, count), count], pa.int32())
    mask = None if version == "2.0" else pa.array([row == 2 for row in range(count)])
    columns = {
        "i": pa.array(range(count)),
        "j": column,
        "large": texts(DOCUMENTS[::-1], pa.large_string()),
        "s": pa.StructArray.from_arrays([column, pa.array(range(count))], ["j", "n"], mask=mask),
        "l": pa.ListArray.from_arrays(offsets, column),
        "ll": pa.LargeListArray.from_arrays(offsets.cast(pa.int64()), pa.StructArray.from_arrays([column], ["x"])),
    }
    if version == "2.2":
        keys = pa.array([f"k{row}" for row in range(count)])
        columns["m"] = pa.MapArray.from_arrays(offsets, keys, column)
    return pa.table(columns)


def shown(table: pa.Table) -> list[Any]:
    return table.to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
def test_either_writes_for_either(tmp_path: Path, version: str) -> None:
    table = build_table(version)
    theirs = lance.write_dataset(table, tmp_path / "theirs", data_storage_version=version)
    mine = lance_dataset.write_dataset(table.slice(0, 2), tmp_path / "mine", data_storage_version=version)
    mine.insert(table.slice(2))
    expected = theirs.to_table()
    for path in ("theirs", "mine"):
        for module in (lance, lance_dataset):
            dataset = module.dataset(tmp_path / path)
            found = dataset.to_table()
            found.validate(full=True)
            assert found.to_pylist() == expected.to_pylist()
            assert found.schema.equals(expected.schema, check_metadata=True)
            assert dataset.schema.equals(theirs.schema, check_metadata=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_reading(tmp_path: Path, version: str) -> None:
    table = build_table(version)
    theirs = lance.write_dataset(table, tmp_path / "a", data_storage_version=version, max_rows_per_file=4)
    mine = lance_dataset.dataset(tmp_path / "a")
    assert mine.take([5, 0, 0]).to_pylist() == theirs.take([5, 0, 0]).to_pylist()
    assert mine.to_table(offset=1, limit=3).to_pylist() == theirs.to_table(offset=1, limit=3).to_pylist()
    for columns in (["s.j"], ["l"], {"x": "j"}, ["s"]):
        assert mine.to_table(columns=columns).equals(theirs.to_table(columns=columns))
    for condition in ("j IS NULL", "j IS NOT NULL", "s.j IS NULL", "i > 2"):
        assert mine.to_table(filter=condition).to_pylist() == theirs.to_table(filter=condition).to_pylist()
    batches = pa.Table.from_batches(mine.to_batches(batch_size=2))
    assert batches.to_pylist() == theirs.to_table().to_pylist()
    assert mine.to_pandas()["j"].tolist() == theirs.to_pandas()["j"].tolist()
    fragment = mine.get_fragments()[1]
    assert fragment.take([0]).to_pylist() == theirs.take([4]).to_pylist()


@pytest.mark.parametrize("condition", ["j = '3'", "j < 'a'", "j IN ('3')", "lower(j) = 'a'", "s.j = '1'"])
def test_filters_on_text_are_refused(tmp_path: Path, condition: str) -> None:
    theirs = lance.write_dataset(build_table("2.0"), tmp_path / "a", data_storage_version="2.0")
    with pytest.raises(ValueError):
        theirs.to_table(filter=condition)
    with pytest.raises(FilterError):
        lance_dataset.dataset(tmp_path / "a").to_table(filter=condition)


@pytest.mark.parametrize("version", VERSIONS)
def test_single_files_keep_the_binary_form(tmp_path: Path, version: str) -> None:
    table = build_table(version)
    found = []
    for module in (lance.file, file):
        path = str(tmp_path / f"{module.__name__}.lance")
        with module.LanceFileWriter(path, table.schema, version=version) as writer:
            writer.write_batch(table)
        found += [reader.LanceFileReader(path).read_all().to_table() for reader in (lance.file, file)]
        schemas = [reader.LanceFileReader(path).metadata().schema for reader in (lance.file, file)]
        assert schemas[0].equals(schemas[1], check_metadata=True)
    for other in found[1:]:
        assert other.to_pylist() == found[0].to_pylist()
        assert other.schema.equals(found[0].schema, check_metadata=True)
    assert found[0]["j"].to_pylist()[2] == encode_document("3")


def test_binary_input(tmp_path: Path) -> None:
    stored = [encode_document("[1, NaN]"), None]
    table = pa.table([pa.array(stored, pa.large_binary())], schema=pa.schema([BINARY]))
    dataset = lance_dataset.write_dataset(table, tmp_path / "a")
    assert dataset.schema.field("j").type == pa.json_()
    for module in (lance, lance_dataset):
        assert module.dataset(tmp_path / "a").to_table()["j"].to_pylist() == ["[1,null]", None]
    with pytest.raises(SchemaError, match="should have type json"):
        dataset.insert(pa.table({"j": pa.array([1])}))


def test_malformed_column(tmp_path: Path) -> None:
    table = pa.table([pa.array([encode_document("1"), b"\x01\x02"], pa.large_binary())], schema=pa.schema([BINARY]))
    dataset = lance_dataset.write_dataset(table, tmp_path / "a")
    with pytest.raises(CorruptFileError, match="column 'j', value 1 of a batch"):
        dataset.to_table()


def test_invalid_text_leaves_nothing_behind(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"j": texts(["1"])}), tmp_path / "a")
    with pytest.raises(SchemaError, match="column 'j', value 1 of a batch: not valid JSON"):
        dataset.insert(pa.table({"j": texts(["1", "{"])}))
    assert dataset.latest_version == 1


def test_metadata_of_the_field_stays(tmp_path: Path) -> None:
    table = pa.table([texts(["1"])], schema=pa.schema([JSON.with_metadata({"k": "v"})]))
    mine = lance_dataset.write_dataset(table, tmp_path / "a")
    theirs = lance.dataset(tmp_path / "a")
    assert mine.schema.field("j").metadata == theirs.schema.field("j").metadata == {b"k": b"v"}


def test_sliced_input(tmp_path: Path) -> None:
    table = build_table("2.0").slice(1, 4)
    dataset = lance_dataset.write_dataset(table, tmp_path / "a")
    theirs = lance.write_dataset(table, tmp_path / "b", data_storage_version="2.0")
    assert dataset.to_table().to_pylist() == theirs.to_table().to_pylist()


def test_many_keys_and_one_of_them_twice() -> None:
    """In time that grows with the keys, not with their square."""
    keys = [f'"key {number}":0' for number in range(200_000)]
    with pytest.raises(SchemaError, match="key 'key 199999' twice"):
        encode_document("{" + ",".join([*keys, keys[-1]]) + "}")
    with pytest.raises(SchemaError, match=r"key 'kkk[k]*'\.\.\. twice"):
        encode_document(json.dumps({"k" * 10_000: 1})[:-1] + f', "{"k" * 10_000}": 2}}')
