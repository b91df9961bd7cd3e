"""Tests of columns read in encoded form: same values as decoded, each stored once if the file stores it once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.arrays.random_arrays import FLAT_TYPES
from support.arrays.random_columns import Data, random_column
from support.tables.equality import assert_same

import lance_dataset
from lance_dataset.file.column import ColumnReader, NullColumn
from lance_dataset.file.dictionaries import decode_dictionary_array

pytestmark = [
    pytest.mark.filterwarnings("ignore:file version 2.3 is unstable"),
    pytest.mark.filterwarnings("ignore:column .* holds"),
]
ROWS = 6000
VERSIONS = ["legacy", "2.0", "2.1", "2.2", "2.3"]
KINDS = ["few", "runs", "constant", "random"]


def columns(table: pa.Table, path: Path, version: str) -> dict[str, ColumnReader]:
    dataset = lance_dataset.write_dataset(
        table, path, data_storage_version=version, storage_options={"local_fsync": "false"}
    )
    reader = dataset.snapshot.reader
    schema = reader.manifest.schema
    return {name: reader.fragments[0].column(schema.top_level(name)) for name in table.column_names}


def plain(chunks: list[pa.Array], kind: pa.DataType) -> pa.Array:
    decoded = [chunk if chunk.type.equals(kind) else decode_dictionary_array(chunk) for chunk in chunks]
    return pa.concat_arrays(decoded) if decoded else pa.array([], kind)


def storable(name: str, version: str) -> bool:
    if version == "legacy":
        return name in ("int8", "int32", "int64", "float64", "string", "binary", "bool", "date32")
    return version in ("2.0", "2.2") or name != "fixed_binary_0"


@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("version", VERSIONS)
def test_all_types(version: str, nulls: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(int(nulls * 10))
    arrays = {
        f"{name} {values}": random_column(kind, ROWS, Data(nulls, 0.3, values), rng)
        for name, kind in FLAT_TYPES.items()
        for values in KINDS
        if storable(name, version)
    }
    for name, reader in columns(pa.table(arrays), tmp_path, version).items():
        for start, stop in ((0, ROWS), (0, 0), (1234, 5678), (17, 18), (ROWS - 1, ROWS)):
            chunks = reader.read_encoded(start, stop)
            for chunk in chunks:
                chunk.validate(full=True)
                assert chunk.type.equals(reader.arrow_type) or chunk.dictionary.type.equals(reader.arrow_type), name
                assert not pa.types.is_dictionary(chunk.type) or chunk.dictionary.null_count == 0
            found = plain(chunks, reader.arrow_type)
            assert_same(pa.table({name: found}), pa.table({name: reader.read(start, stop)}))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("nulls", [False, True])
def test_strings_of_few_values_stay_encoded(version: str, nulls: bool, tmp_path: Path) -> None:
    words = ["AIR", "RAIL", "SHIP", "TRUCK", None if nulls else "MAIL"]
    values = pa.array([words[number] for number in np.random.default_rng(1).integers(0, 5, ROWS)])
    reader = columns(pa.table({"a": values}), tmp_path, version)["a"]
    (chunk,) = reader.read_encoded(100, 5000)
    assert isinstance(chunk, pa.DictionaryArray)
    assert len(chunk.dictionary) <= 5
    assert chunk.null_count == values.slice(100, 4900).null_count
    assert chunk.dictionary_decode().equals(values.slice(100, 4900))
    again = reader.read_encoded(0, 5000)[0]
    if version != "2.0":
        assert again.dictionary.buffers()[2].address == chunk.dictionary.buffers()[2].address


@pytest.mark.parametrize("kind", [pa.decimal128(12, 2), pa.int64(), pa.date32(), pa.binary(20)])
def test_values_of_one_width(kind: pa.DataType, tmp_path: Path) -> None:
    entries = pa.array([(1 << 50) + 977 * number for number in range(20)], pa.int64())
    if pa.types.is_fixed_size_binary(kind):
        entries = pa.array([b"%020d" % number for number in range(20)], kind)
    elif pa.types.is_date(kind):
        entries = pa.array(np.arange(20, dtype=np.int32) * 100_003, pa.int32()).cast(kind)
    elif pa.types.is_decimal(kind):
        entries = pa.array([977 * number for number in range(20)], pa.int64()).cast(pa.decimal128(21, 2)).cast(kind)
    values = entries.take(pa.array(np.random.default_rng(2).integers(0, 20, 200_000)))
    reader = columns(pa.table({"a": values}), tmp_path, "2.2")["a"]
    chunks = reader.read_encoded(0, len(values))
    assert any(isinstance(chunk, pa.DictionaryArray) for chunk in chunks)
    assert plain(chunks, kind).equals(values)


@pytest.mark.parametrize("value", ["same", 7, b"", True, 1.5])
def test_constant_pages(value: object, tmp_path: Path) -> None:
    values = pa.array([value] * ROWS)
    reader = columns(pa.table({"a": values}), tmp_path, "2.2")["a"]
    (chunk,) = reader.read_encoded(0, ROWS)
    assert plain([chunk], values.type).equals(values)
    if isinstance(chunk, pa.DictionaryArray):
        assert len(chunk.dictionary) == 1


def test_columns_of_nulls() -> None:
    (chunk,) = NullColumn(pa.string(), 10).read_encoded(2, 9)
    assert chunk.equals(pa.nulls(7, pa.string()))


@pytest.mark.parametrize("version", ["2.1", "2.2", "2.3"])
def test_nested_columns_are_read_as_always(version: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    kinds = {
        "struct": pa.struct([("x", pa.string()), ("y", pa.int32())]),
        "list": pa.list_(pa.string()),
        "dictionary": pa.dictionary(pa.int16(), pa.string()),
    }
    arrays = {name: random_column(kind, ROWS, Data(0.2, 0.3, "few"), rng) for name, kind in kinds.items()}
    for reader in columns(pa.table(arrays), tmp_path, version).values():
        chunks = reader.read_encoded(5, 4000)
        assert pa.concat_arrays(chunks).to_pylist() == reader.read(5, 4000).to_pylist()
        assert all(chunk.type.equals(reader.arrow_type) for chunk in chunks)


@pytest.mark.parametrize("count", [0, 5, 3000])
@pytest.mark.parametrize("index", [pa.int8(), pa.uint16(), pa.int64()])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.int32()])
def test_decoding_of_dictionary_arrays(kind: pa.DataType, index: pa.DataType, count: int) -> None:
    entries = pa.array(["a", "", "long enough to be something else", "é", None], pa.string())
    entries = pa.array([1, 2, 3, None, 4], kind) if kind == pa.int32() else entries.cast(kind)
    rng = np.random.default_rng(count)
    for top in (4, 5):
        codes = pa.array([int(code) if code < top else None for code in rng.integers(0, top + 1, count + 7)], index)
        for array in (entries.slice(0, top), entries):
            found = pa.DictionaryArray.from_arrays(codes.slice(7), array)
            assert decode_dictionary_array(found).equals(found.dictionary_decode())
