"""Tests of scans that read windows of several columns at once: random tables, filters, limits and deletions.

``LANCE_STRESS=1`` tries many tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_dataset
from lance_dataset.scan import window_values

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
ROWS, FRAGMENT = 33_000, 13_000
WRITERS = ["ours 2.1", "ours 2.2", "theirs 2.1", "theirs 2.2"]

Make = Callable[[np.random.Generator, int], pa.Array]


def nullable(rng: np.random.Generator, array: pa.Array) -> pa.Array:
    """Return the array with no nulls, some, many, or nothing else."""
    share = rng.choice([0, 0, 0.1, 0.9, 1])
    if share == 0:
        return array
    missing = pa.array(rng.random(len(array)) < share)
    return pc.if_else(missing, pa.nulls(len(array), array.type), array)


def integers(kind: pa.DataType) -> Make:
    """Return a maker of integers, from a few bits to all, some in runs."""

    def make(rng: np.random.Generator, rows: int) -> pa.Array:
        size = kind.bit_width
        bits = int(rng.choice([1, size // 2, size - 1]))
        numbers = rng.integers(0, 1 << bits, rows, np.uint64)
        if rng.random() < 0.4:
            numbers = np.repeat(numbers[: rows // 50 + 1], 50)[:rows]
        words = numbers.astype(f"u{size // 8}")
        return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(words.tobytes())])

    return make


def reals(rng: np.random.Generator, rows: int) -> pa.Array:
    kind = rng.choice(["f2", "f4", "f8"])
    return pa.array((rng.integers(0, 50, rows) if rng.random() < 0.5 else rng.random(rows)).astype(kind))


def booleans(rng: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(rng.random(rows) < rng.choice([0.01, 0.5]))


def decimals(rng: np.random.Generator, rows: int) -> pa.Array:
    kind = pa.decimal128(24, 2) if rng.random() < 0.5 else pa.decimal256(40, 3)
    return pa.array(rng.integers(-(10**6), 10**6, rows)).cast(kind)


def rows_of_bytes(rng: np.random.Generator, rows: int) -> pa.Array:
    width = int(rng.choice([1, 3, 8, 16, 20]))
    few = rng.integers(0, 256, (rows if rng.random() < 0.5 else 7, width)).astype(np.uint8)
    data = few[rng.integers(0, len(few), rows)]
    return pa.Array.from_buffers(pa.binary(width), rows, [None, pa.py_buffer(data.tobytes())])


def texts(rng: np.random.Generator, rows: int) -> pa.Array:
    """Return strings or binaries: short, long or empty ones, of a few kinds or all different."""
    words = ["", "a", "grün", "a word", "sixteen bytes 16", "thirty-two bytes are the most...", "long " * 30]
    pool = [words, ["abc", "def", "ghi"], ["yes", "no"], ["", ""], ["x"] * 50 + ["much longer than others"]]
    chosen = pool[rng.integers(0, len(pool))]
    found = [chosen[i] for i in rng.integers(0, len(chosen), rows)]
    if rng.random() < 0.5:
        found = [
            f"{text}{number:x}" for text, number in zip(found, rng.integers(0, 1 << 30, rows).tolist(), strict=True)
        ]
    kinds = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
    return pa.array(found).cast(kinds[rng.integers(0, 4)])


def dictionaries(rng: np.random.Generator, rows: int) -> pa.Array:
    entries = pa.array([f"entry {number}" for number in range(20)])
    return pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 20, rows), pa.int8()), entries)


INTEGERS = [
    *(pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()),
    *(pa.date32(), pa.time32("s"), pa.time64("us"), pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.duration("ms")),
]
MAKERS: list[Make] = [*map(integers, INTEGERS), reals, reals, booleans, decimals, rows_of_bytes, rows_of_bytes]
MAKERS += [texts] * 5 + [dictionaries]


def table_of(seed: int) -> pa.Table:
    """Return a table of random columns, and one with each number once."""
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {"key": pa.array(rng.permutation(ROWS).astype(np.int32))}
    for number in rng.permutation(len(MAKERS))[:14].tolist():
        columns[f"c{number}"] = nullable(rng, MAKERS[number](rng, ROWS))
    return pa.table(columns)


def written(path: str, table: pa.Table, writer: str) -> None:
    who, version = writer.split()
    options: dict[str, Any] = {"max_rows_per_file": FRAGMENT, "data_storage_version": version}
    if who == "ours":
        lance_dataset.write_dataset(table, path, max_page_bytes=24_000, **options)
    else:
        lance.write_dataset(table, path, **options)


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare what is read together with columns that are read by themselves."""
    monkeypatch.setenv("LANCE_CHECK_SCANS", "1")


FILTERS = [None, "key < 33", "key < 400", "key < 5000", "key < 20000", "key < 32500", "key >= 0", "key < 0"]


def below(table: pa.Table, where: str | None) -> pa.Table:
    """Return the rows that a filter keeps."""
    if where is None:
        return table
    _, sign, number = where.split()
    return table.filter(
        pc.less(table["key"], int(number)) if sign == "<" else pc.greater_equal(table["key"], int(number))
    )


def decoded(table: pa.Table) -> pa.Table:
    """Return a table without dictionaries, whose entries may have any order."""
    types = [each.type for each in table.schema]
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in types]
    return table.cast(pa.schema(list(zip(table.column_names, kinds, strict=True))))


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("seed", range(20) if THOROUGH else [1])
def test_random_tables(tmp_path: Path, writer: str, seed: int) -> None:
    path, table = str(tmp_path / "t.lance"), table_of(seed + 100 * WRITERS.index(writer))
    written(path, table, writer)
    live = table
    for step in range(2):
        ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
        for where in FILTERS:
            found = ours.to_table(filter=where)
            assert found.equals(below(live, where)), where
            if where in (None, "key < 400", "key < 32500"):
                assert decoded(found).equals(decoded(theirs.to_table(filter=where))), where
            some = ours.to_table(filter=where, limit=9000, offset=4100)
            assert some.equals(below(live, where).slice(4100, 9000)), where
        batches = ours.to_batches(filter="key < 20000", batch_size=5000)
        assert pa.Table.from_batches(batches, table.schema).equals(below(live, "key < 20000"))
        if step == 0:
            lance.dataset(path).delete("key % 7 = 3 OR key < 100")
            keys = live["key"].to_numpy()
            live = live.filter(pa.array(~((keys % 7 == 3) | (keys < 100))))


def test_columns_are_read_in_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scans with and without a filter read these columns together; few rows are taken one by one."""
    path, rng = str(tmp_path / "t.lance"), np.random.default_rng(5)
    table = pa.table(
        {
            "key": pa.array(rng.permutation(ROWS).astype(np.int32)),
            "number": pa.array(rng.integers(0, 9, ROWS), mask=rng.random(ROWS) < 0.1),
            "text": pa.array([f"text {number}" for number in rng.integers(0, 1 << 20, ROWS).tolist()]),
            "few": pa.array([f"few {number}" for number in rng.integers(0, 20, ROWS).tolist()]),
        }
    )
    written(path, table, "ours 2.1")
    counts: list[int] = []
    read = window_values.window_columns

    def counted(*arguments: Any) -> dict[int, pa.Array]:
        found = read(*arguments)
        counts.append(len(found))
        return found

    monkeypatch.setattr(window_values, "window_columns", counted)
    dataset = lance_dataset.dataset(path)
    assert dataset.to_table(filter="key < 9000").equals(below(table, "key < 9000"))
    assert sum(counts) >= 3
    counts.clear()
    assert dataset.to_table(filter="key < 10").equals(below(table, "key < 10"))
    assert not counts


def test_a_damaged_column_is_reported(tmp_path: Path) -> None:
    """A column that a window cannot read is read in another way, which says what is wrong."""
    path = tmp_path / "t.lance"
    content = pa.array([f"{number:06}ö" for number in range(ROWS)])
    table = pa.table({"key": pa.array(np.arange(ROWS, dtype=np.int32)), "text": content})
    lance_dataset.write_dataset(table, str(path), data_storage_version="2.1")
    (file,) = (path / "data").glob("*.lance")
    data = bytearray(file.read_bytes())
    data[data.index("ö".encode())] = 0xFF
    file.write_bytes(data)
    dataset = lance_dataset.dataset(str(path))
    for where in (None, "key < 30000"):
        with pytest.raises(lance_dataset.errors.CorruptFileError, match="text"):
            dataset.to_table(filter=where)
        assert dataset.to_table(columns=["key"], filter=where)["key"].to_pylist() == list(
            range(30_000 if where else ROWS)
        )


def test_conditions_that_are_null(tmp_path: Path) -> None:
    """Rows for which a condition is neither true nor false are not read."""
    path, rng = str(tmp_path / "t.lance"), np.random.default_rng(3)
    numbers = [pa.array(rng.integers(0, 100, ROWS), mask=rng.random(ROWS) < 0.3) for _ in range(2)]
    flags = pa.array(rng.random(ROWS) < 0.5, mask=rng.random(ROWS) < 0.3)
    text = pa.array([str(number) for number in rng.integers(0, 10**6, ROWS).tolist()])
    written(path, pa.table({"a": numbers[0], "b": numbers[1], "flag": flags, "text": text}), "ours 2.1")
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    for where in ["NOT (a < 50)", "a < 50 OR b > 3", "NOT flag", "flag OR a > 3", "a <> b", "text LIKE '1%' OR flag"]:
        assert ours.to_table(filter=where).equals(theirs.to_table(filter=where)), where
