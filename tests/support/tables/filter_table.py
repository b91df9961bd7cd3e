"""Table of every type that filters meet, and the reference implementation over the same rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal

import lance
import pyarrow as pa
import pytest

ROWS = 48
NAN, INF = float("nan"), float("inf")


def _cycle(values: list[object], arrow: pa.DataType, shift: int = 0) -> pa.Array:
    return pa.array([values[(row * 7 + row // 5 + shift) % len(values)] for row in range(ROWS)], arrow)


def _moments() -> list[dt.datetime | None]:
    return [
        dt.datetime(2024, 1, 1, 12, 0, 0, 123456),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        None,
        dt.datetime(2020, 2, 29, 1, 2, 3),
        dt.datetime(2024, 1, 2),
        dt.datetime(1900, 1, 1),
        dt.datetime(2030, 7, 4, 18, 30, 15, 5000),
    ]


def build_table() -> pa.Table:
    text = ["a", "", None, "Éa_b%", "héllo wörld", "A", "abc", "  pad ", "日本語", "b\\c", "línea\ndos"]
    struct = pa.struct([("x", pa.int32()), ("y-z", pa.string()), ("in", pa.struct([("w", pa.float64())]))])
    records = [
        {"x": 1, "y-z": "q", "in": {"w": 2.5}},
        {"x": 2, "y-z": None, "in": None},
        None,
        {"x": None, "y-z": "q", "in": {"w": NAN}},
        {"x": 5, "y-z": "é", "in": {"w": None}},
    ]
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "i8": _cycle([1, -128, None, 127, 0, 5], pa.int8()),
            "i16": _cycle([1, -32768, None, 32767, 0, 5, 7], pa.int16(), 1),
            "i": _cycle([1, 2, None, -4, 5, 7, 0, 2**31 - 1], pa.int32()),
            "big": _cycle([1, 2, None, 2**60, -(2**62), 7, 0], pa.int64(), 2),
            "u8": _cycle([1, 2, None, 4, 200, 255, 0], pa.uint8()),
            "u32": _cycle([1, 2, None, 4, 200, 2**32 - 1, 0], pa.uint32(), 3),
            "u64": _cycle([1, 2, None, 2**63, 2**64 - 1, 7, 0], pa.uint64()),
            "f4": _cycle([1.5, NAN, None, -0.0, 0.1, -INF, 0.0, 3.0], pa.float32()),
            "f": _cycle([1.5, NAN, None, -0.0, 0.0, INF, 2.5, -7.25, 0.1], pa.float64()),
            "b": _cycle([True, False, None], pa.bool_()),
            "b2": _cycle([True, None, None, False], pa.bool_()),
            "s": _cycle(list(text), pa.string()),
            "ls": _cycle(list(text), pa.large_string(), 3),
            "bin": _cycle([b"a", b"", None, b"ab", b"\xff", b"A"], pa.binary()),
            "fsb": _cycle([b"ab", None, b"\x00\xff", b"zz"], pa.binary(2)),
            "d": _cycle([moment and moment.date() for moment in _moments()], pa.date32()),
            "ts": _cycle(list(_moments()), pa.timestamp("us"), 2),
            "tms": _cycle([m and m.replace(microsecond=0) for m in _moments()], pa.timestamp("ms"), 2),
            "tns": _cycle(list(_moments()), pa.timestamp("ns"), 4),
            "tz": _cycle(list(_moments()), pa.timestamp("us", "UTC"), 5),
            "ny": _cycle(list(_moments()), pa.timestamp("us", "America/New_York")),
            "dec": _cycle(
                [Decimal(text) for text in ("1.50", "0.05", "-3.00", "0.07", "0.06")] + [None],
                pa.decimal128(15, 2),
            ),
            "st": _cycle(list(records), struct),
            "li": _cycle([[1, 2, 3], [], None, [4, None], [None], [5]], pa.list_(pa.int32())),
            "words": _cycle([["a", "b"], [], None, ["c", None], [None], ["a"]], pa.list_(pa.string())),
            "vec": _cycle([[1, 2], [3, 4], None, [5, 6]], pa.list_(pa.float32(), 2)),
            "CamelCase": _cycle([1, 2, 3], pa.int32()),
            "with space": _cycle([1, 2, 3], pa.int32()),
            "order": _cycle([1, 2, 3, 4], pa.int32()),
        }
    )


@pytest.fixture(scope="session")
def table() -> pa.Table:
    return build_table()


@pytest.fixture(scope="session")
def batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]


@pytest.fixture(scope="session")
def reference(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    return lance.write_dataset(table, str(tmp_path_factory.mktemp("query") / "reference.lance"))


@pytest.fixture(scope="session")
def reference_rows(reference: lance.LanceDataset) -> Callable[[object], list[int]]:
    """Return a function from a filter to the row numbers that the reference keeps."""
    return lambda filter: reference.to_table(columns=["id"], filter=filter)["id"].to_pylist()
