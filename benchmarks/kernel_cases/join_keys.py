from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec import join_keys

#: Number of keys to look up among the rows of a case; half of them exist.
KEYS = 100_000


def words(values: np.ndarray) -> Any:
    return values.itemsize, False, None, 0, values, 0, None, False


def texts(numbers: np.ndarray) -> Any:
    """Return strings of 20 bytes."""
    data = np.full((len(numbers), 20), ord("-"), np.uint8)
    data[:, 4:12] = numbers.astype(np.int64).view(np.uint8).reshape(-1, 8)
    ends = np.arange(len(numbers) + 1, dtype=np.int32) * 20
    return join_keys.TEXTS, False, None, 0, data.tobytes(), 0, ends, False


COLUMNS: dict[str, Callable[[np.ndarray], list[Any]]] = {
    "int32": lambda numbers: [words(numbers.astype(np.int32))],
    "int64": lambda numbers: [words(numbers)],
    "strings": lambda numbers: [texts(numbers)],
    "two columns": lambda numbers: [words(numbers), texts(numbers)],
}


def table(columns: list[Any], rows: int) -> join_keys.KeyTable:
    made = join_keys.KeyTable()
    made.add(columns, rows, np.empty(rows, np.int64))
    return made


def size(kind: str) -> int:
    return {"int32": 4, "int64": 8, "strings": 20, "two columns": 28}[kind]


def add(kind: str) -> Case:
    columns = COLUMNS[kind](rng().permutation(VALUES))
    return Case(lambda: table(columns, VALUES), VALUES * size(kind))


def find(kind: str) -> Case:
    keys = rng().choice(2 * VALUES, min(KEYS, VALUES), replace=False)
    known = table(COLUMNS[kind](keys), len(keys))
    columns, places, out = COLUMNS[kind](np.arange(VALUES)), np.empty(VALUES, np.int64), np.empty(VALUES, np.int64)
    return Case(lambda: known.find(columns, VALUES, places, out), VALUES * size(kind))


def parts(kind: str) -> Case:
    columns, out = COLUMNS[kind](np.arange(VALUES)), np.empty(VALUES, np.int64)
    divided = join_keys.KeyParts(16)
    return Case(lambda: divided.numbers(columns, VALUES, out), VALUES * size(kind))


def pack() -> Case:
    columns, ends = COLUMNS["two columns"](np.arange(VALUES)), np.empty(VALUES + 1, np.int64)
    return Case(lambda: join_keys.pack(columns, VALUES, ends), VALUES * 36)


def measure_groups() -> Case:
    columns, groups = COLUMNS["int64"](rng().integers(0, VALUES, VALUES)), np.empty(VALUES, np.int64)
    made = join_keys.KeyTable()
    made.add(columns, VALUES, groups)
    first, sizes = np.empty(len(made), np.int64), np.empty(len(made), np.int64)
    return Case(lambda: join_keys.measure_groups(groups, first, sizes), groups.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "join_keys.KeyTable.find, int64": lambda: find("int64"),
    "join_keys.KeyTable.find, int32": lambda: find("int32"),
    "join_keys.KeyTable.find, strings": lambda: find("strings"),
    "join_keys.KeyTable.find, two columns": lambda: find("two columns"),
    "join_keys.KeyTable.add, int64": lambda: add("int64"),
    "join_keys.KeyTable.add, strings": lambda: add("strings"),
    "join_keys.KeyParts, int64": lambda: parts("int64"),
    "join_keys.pack": pack,
    "join_keys.measure_groups": measure_groups,
}
