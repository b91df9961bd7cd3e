"""Arrays of a mapped file stay valid whatever another process writes into that file later, or meanwhile.

Plain values may change under the reader. Everything that other buffers of an array rely on may not: offsets, indices,
validity, text.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.arrays.random_arrays import FLAT_TYPES, random_table
from support.arrays.random_columns import Data, random_column
from support.arrays.type_groups import groups
from support.pages.array_page_cases import CASES, Case
from support.processes.toggled_file import toggled

import lance_dataset
from lance_dataset import file
from lance_dataset.errors import LanceError
from lance_dataset.file.column import ColumnReader

pytestmark = [
    pytest.mark.filterwarnings("ignore:file version 2.3 is unstable"),
    pytest.mark.filterwarnings("ignore:column .* holds"),
]
VERSIONS = ["legacy", "2.0", "2.1", "2.2", "2.3"]
ROWS = 6000
#: Smaller files are read into memory when they are opened.
MAPPED = 40 << 10
#: Arrow calls some plain values of these types invalid, which does no harm.
RANGED = ("date64", "time32", "time64", "decimal")


def overwrite(path: Path) -> None:
    """Invert all bytes of the file in place."""
    content = np.fromfile(path, np.uint8)
    with open(path, "r+b") as handle:
        handle.write((~content).tobytes())


def in_memory(arrays: Sequence[pa.Array]) -> None:
    """Use every buffer of some arrays as Arrow's own functions do, which rely on what was validated before."""
    for array in arrays:
        array.validate(full=True)
        pa.concat_arrays([array, array.slice(len(array) // 2)]).validate(full=True)


def arrays_of(reader: ColumnReader) -> list[pa.Array]:
    rows = np.random.default_rng(1).permutation(reader.num_rows)[:50].astype(np.int64)
    last = reader.num_rows
    found = [reader.read(0, last), reader.read(min(3, last), last), reader.take(rows), reader.take(np.sort(rows))]
    return [*found, *reader.read_chunks(0, last), *reader.read_encoded(0, last)]


@pytest.mark.parametrize("name", CASES)
def test_pages_of_2_0(name: str, tmp_path: Path) -> None:
    case: Case = CASES[name]
    path = replace(case, outside=(*case.outside, bytes(MAPPED))).write(tmp_path / "file.lance")
    reader = file.LanceFileReader(str(path))
    tables = [
        reader.read_all().to_table(),
        reader.read_range(1, max(reader.num_rows() - 1, 0)).to_table() if reader.num_rows() else None,
        reader.take_rows(range(reader.num_rows())).to_table(),
    ]
    arrays = [column.chunk(0) for table in tables if table is not None for column in table.columns if column.num_chunks]
    columns = [array for column in reader._columns() for array in arrays_of(column)]
    expected = [array.null_count for array in [*arrays, *columns]]
    overwrite(path)
    in_memory([*arrays, *columns])
    assert [array.null_count for array in [*arrays, *columns]] == expected


def stored(table: pa.Table, folder: Path, version: str) -> tuple[dict[str, ColumnReader], Path]:
    dataset = lance_dataset.write_dataset(
        table, folder, data_storage_version=version, storage_options={"local_fsync": "false"}
    )
    reader = dataset.snapshot.reader
    schema = reader.manifest.schema
    readers = {name: reader.fragments[0].column(schema.top_level(name)) for name in table.column_names}
    (path,) = (folder / "data").glob("*.lance")
    assert os.path.getsize(path) > MAPPED
    return readers, path


def storable(name: str, version: str) -> bool:
    if name.startswith(RANGED):
        return False
    if version == "legacy":
        return name in ("int8", "int32", "int64", "float64", "string", "binary", "bool", "date32")
    return version in ("2.0", "2.2") or name != "fixed_binary_0"


@pytest.mark.parametrize("nulls", [0.0, 0.3])
@pytest.mark.parametrize("version", VERSIONS)
def test_columns_of_all_versions(version: str, nulls: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    table = pa.table(
        {
            f"{name} {values}": random_column(kind, ROWS, Data(nulls, 0.3, values), rng)
            for name, kind in FLAT_TYPES.items()
            for values in ("few", "constant", "random")
            if storable(name, version)
        }
    )
    readers, path = stored(table, tmp_path, version)
    arrays = [array for reader in readers.values() for array in arrays_of(reader)]
    overwrite(path)
    in_memory(arrays)


@pytest.mark.parametrize("version", VERSIONS[1:])
@pytest.mark.parametrize("group", ["dictionary", "list", "fixed_list_of_fixed_list", "struct", "deep"])
def test_nested_columns_of_all_versions(version: str, group: str, tmp_path: Path) -> None:
    kinds = {
        name: kind
        for title, types in groups(version).items()
        if group == title
        for name, kind in types.items()
        if not any(word in str(kind) for word in RANGED)
    }
    if not kinds:
        return
    readers, path = stored(random_table(kinds, ROWS // 4, 0.2), tmp_path, version)
    arrays = [array for reader in readers.values() for array in arrays_of(reader)]
    overwrite(path)
    in_memory(arrays)


def test_dictionaries_of_2_0(tmp_path: Path) -> None:
    """Indices were views of the file: what Arrow did with them later read behind the dictionary."""
    values = pa.array([f"value {number % 100}" for number in range(50_000)]).dictionary_encode()
    table = lance_dataset.write_dataset(pa.table({"a": values}), tmp_path / "table", data_storage_version="2.0")
    column = table.to_table()["a"]
    (path,) = (tmp_path / "table" / "data").glob("*.lance")
    overwrite(path)
    assert pa.concat_arrays(column.chunks * 2).to_pylist() == values.to_pylist() * 2


@pytest.mark.parametrize("version", VERSIONS)
def test_files_that_change_meanwhile(version: str, tmp_path: Path) -> None:
    """Another process writes other bytes into the pages and puts them back, as fast as it can."""
    kinds = {"text": pa.string(), "binary": pa.binary(), "number": pa.int32(), "flag": pa.bool_()}
    if version != "legacy":
        kinds |= {"list": pa.list_(pa.string()), "dictionary": pa.dictionary(pa.int16(), pa.string())}
    table = random_table(kinds, 2000, 0.0 if version == "legacy" else 0.2)
    readers, path = stored(pa.concat_tables([table] * 3).combine_chunks().unify_dictionaries(), tmp_path, version)
    content = np.fromfile(path, np.uint8)[: os.path.getsize(path) - (8 << 10)]
    places = np.random.default_rng(3).integers(0, len(content), len(content) // 50)
    content[places] ^= 1
    read = refused = 0
    with toggled(path, content.tobytes()):
        stop = time.monotonic() + 0.5
        while time.monotonic() < stop:
            for reader in readers.values():
                try:
                    arrays = arrays_of(reader)
                except LanceError:
                    refused += 1
                    continue
                in_memory(arrays)
                read += 1
    assert read + refused
